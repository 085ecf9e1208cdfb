//! Q5_0: `x = d * (q - 16)`; file block: d f16, the fifth bits (bit e for element e), 16 bytes of nibbles.

use super::{FormatSpec, PlaneSpec, sort_nibbles32};

pub(super) static SPEC: FormatSpec = FormatSpec {
    name: "Q5_0",
    ggml_id: 6,
    block_len: 32,
    block_bytes: 22,
    pack_len: 32,
    planes: &[
        PlaneSpec { name: "quants", bytes: 16 },
        PlaneSpec { name: "fifth bits", bytes: 4 },
        PlaneSpec { name: "d", bytes: 2 },
    ],
    repack: |pack, planes| {
        sort_nibbles32(&pack[6..22], planes[0]);
        planes[1].copy_from_slice(&pack[2..6]);
        planes[2].copy_from_slice(&pack[..2]);
    },
    halves: &[0],
};
