//! F32: plain IEEE binary32, in packs of 32.

use super::{FormatSpec, PlaneSpec};

pub(super) static SPEC: FormatSpec = FormatSpec {
    name: "F32",
    ggml_id: 0,
    block_len: 1,
    block_bytes: 4,
    pack_len: 32,
    planes: &[PlaneSpec { name: "values", bytes: 128 }],
    repack: |pack, planes| planes[0].copy_from_slice(pack),
    halves: &[],
};
