//! Q4_1: `x = d * q + m`; file block: d f16, m f16, 16 bytes of nibbles (low halves first).

use super::{FormatSpec, PlaneSpec, sort_nibbles32};

pub(super) static SPEC: FormatSpec = FormatSpec {
    name: "Q4_1",
    ggml_id: 3,
    block_len: 32,
    block_bytes: 20,
    pack_len: 32,
    planes: &[PlaneSpec { name: "quants", bytes: 16 }, PlaneSpec { name: "d, m", bytes: 4 }],
    repack: |pack, planes| {
        sort_nibbles32(&pack[4..20], planes[0]);
        planes[1].copy_from_slice(&pack[..4]);
    },
    halves: &[0, 2],
};
