//! Q4_0: `x = d * (q - 8)`; file block: d f16, 16 bytes of nibbles (low halves first).

use super::{FormatSpec, PlaneSpec, sort_nibbles32};

pub(super) static SPEC: FormatSpec = FormatSpec {
    name: "Q4_0",
    ggml_id: 2,
    block_len: 32,
    block_bytes: 18,
    pack_len: 32,
    planes: &[PlaneSpec { name: "quants", bytes: 16 }, PlaneSpec { name: "d", bytes: 2 }],
    repack: |pack, planes| {
        sort_nibbles32(&pack[2..18], planes[0]);
        planes[1].copy_from_slice(&pack[..2]);
    },
    halves: &[0],
};
