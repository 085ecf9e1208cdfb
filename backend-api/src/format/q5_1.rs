//! Q5_1: `x = d * q + m`; file block: d f16, m f16, the fifth bits (bit e for element e), 16 bytes of nibbles.

use super::{FormatSpec, PlaneSpec, sort_nibbles32};

pub(super) static SPEC: FormatSpec = FormatSpec {
    name: "Q5_1",
    ggml_id: 7,
    block_len: 32,
    block_bytes: 24,
    pack_len: 32,
    planes: &[
        PlaneSpec { name: "quants", bytes: 16 },
        PlaneSpec { name: "fifth bits", bytes: 4 },
        PlaneSpec { name: "d, m", bytes: 4 },
    ],
    repack: |pack, planes| {
        sort_nibbles32(&pack[8..24], planes[0]);
        planes[1].copy_from_slice(&pack[4..8]);
        planes[2].copy_from_slice(&pack[..4]);
    },
    halves: &[0, 2],
};
