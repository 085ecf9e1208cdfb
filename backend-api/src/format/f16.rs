//! F16: IEEE binary16, in packs of 32 (two a word, the first in the low half).

use super::{FormatSpec, PlaneSpec};

pub(super) static SPEC: FormatSpec = FormatSpec {
    name: "F16",
    ggml_id: 1,
    block_len: 1,
    block_bytes: 2,
    pack_len: 32,
    planes: &[PlaneSpec { name: "values", bytes: 64 }],
    repack: |pack, planes| planes[0].copy_from_slice(pack),
    halves: &[0],
};
