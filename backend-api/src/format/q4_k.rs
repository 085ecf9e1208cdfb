//! Q4_K: `x = (d * sc) * q - (dmin * m)`, 8 sub-blocks of 32; file block: d f16, dmin f16, 12 bytes of 6-bit
//! scales and minima, 128 bytes of nibbles (in each 32 bytes: low halves one sub-block, high halves the next).
//!
//! The 16 bytes of scales are one texel as they are: word 0 = d, dmin; words 1..3 = the 6-bit fields.

use super::{FormatSpec, PlaneSpec};

pub(super) static SPEC: FormatSpec = FormatSpec {
    name: "Q4_K",
    ggml_id: 12,
    block_len: 256,
    block_bytes: 144,
    pack_len: 256,
    planes: &[PlaneSpec { name: "quants", bytes: 128 }, PlaneSpec { name: "d, dmin, scales", bytes: 16 }],
    repack: |pack, planes| {
        let qs = &pack[16..144];
        let at = |e: usize| (qs[e / 64 * 32 + e % 32] >> (e % 64 / 32 * 4)) & 15;
        for (i, byte) in planes[0].iter_mut().enumerate() {
            *byte = at(2 * i) | at(2 * i + 1) << 4;
        }
        planes[1].copy_from_slice(&pack[..16]);
    },
    halves: &[0, 2],
};
