//! Q8_0: `x = d * q`; file block: d f16, 32 signed bytes.

use super::{FormatSpec, PlaneSpec};

pub(super) static SPEC: FormatSpec = FormatSpec {
    name: "Q8_0",
    ggml_id: 8,
    block_len: 32,
    block_bytes: 34,
    pack_len: 32,
    planes: &[PlaneSpec { name: "quants", bytes: 32 }, PlaneSpec { name: "d", bytes: 2 }],
    repack: |pack, planes| {
        planes[0].copy_from_slice(&pack[2..34]);
        planes[1].copy_from_slice(&pack[..2]);
    },
    halves: &[0],
};
