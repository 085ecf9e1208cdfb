//! Q6_K: `x = (d * scale) * (q - 32)`, 16 sub-blocks of 16; file block: 128 bytes of low nibbles, 64 bytes of
//! high bit pairs, 16 signed scales, d f16.
//!
//! Low nibbles and high pairs are put into element order, so a group of 32 is 4 words of nibbles and 2 of pairs.

use super::{FormatSpec, PlaneSpec};

pub(super) static SPEC: FormatSpec = FormatSpec {
    name: "Q6_K",
    ggml_id: 14,
    block_len: 256,
    block_bytes: 210,
    pack_len: 256,
    planes: &[
        PlaneSpec { name: "low nibbles", bytes: 128 },
        PlaneSpec { name: "high pairs", bytes: 64 },
        PlaneSpec { name: "scales", bytes: 16 },
        PlaneSpec { name: "d", bytes: 2 },
    ],
    repack: |pack, planes| {
        let low = |e: usize| {
            let (n, k, l) = (e / 128, e % 128 / 32, e % 32);
            (pack[64 * n + 32 * (k & 1) + l] >> (4 * (k / 2))) & 15
        };
        let high = |e: usize| {
            let (n, k, l) = (e / 128, e % 128 / 32, e % 32);
            (pack[128 + 32 * n + l] >> (2 * k)) & 3
        };
        for (i, byte) in planes[0].iter_mut().enumerate() {
            *byte = low(2 * i) | low(2 * i + 1) << 4;
        }
        for (i, byte) in planes[1].iter_mut().enumerate() {
            *byte = high(4 * i) | high(4 * i + 1) << 2 | high(4 * i + 2) << 4 | high(4 * i + 3) << 6;
        }
        planes[2].copy_from_slice(&pack[192..208]);
        planes[3].copy_from_slice(&pack[208..210]);
    },
    halves: &[208],
};
