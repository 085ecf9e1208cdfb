//! Floats, in packs of 32; of the shorter ones two share a word, the first in the low half.

use super::{Family, FormatSpec, GROUP, PlaneSpec, planes};

/// A family: floats that need widening at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floats {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// The upper half of a binary32.
    BF16,
}

const fn row(name: &'static str, ggml_id: u32, block_bytes: usize, floats: Floats) -> FormatSpec {
    let values = PlaneSpec::copied("VALUES", 0, block_bytes * GROUP);
    let family = Family::Floats(floats);
    FormatSpec { name, ggml_id, block_len: 1, block_bytes, pack_len: GROUP, planes: planes(&[values]), family }
}

pub(super) const F32: FormatSpec = row("F32", 0, 4, Floats::F32);
pub(super) const F16: FormatSpec = row("F16", 1, 2, Floats::F16);
pub(super) const BF16: FormatSpec = row("BF16", 30, 2, Floats::BF16);
