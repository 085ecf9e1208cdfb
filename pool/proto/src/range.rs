//! A part of a model, and what crosses its borders.

use crate::{ProtoError, check::Check, limits};

/// Blocks [first, end), with the embedding before them or the head after them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Message)]
pub struct Range {
    /// The first block.
    #[prost(uint32, tag = "1")]
    pub first: u32,
    /// The block after the last.
    #[prost(uint32, tag = "2")]
    pub end: u32,
    /// Whether token ids come in, and not activations.
    #[prost(bool, tag = "3")]
    pub embedding: bool,
    /// Whether a token comes out, and not activations.
    #[prost(bool, tag = "4")]
    pub head: bool,
}

impl Range {
    /// A whole model of so many blocks.
    pub fn whole(blocks: u32) -> Range {
        Range { first: 0, end: blocks, embedding: true, head: true }
    }

    /// Its number of blocks.
    pub fn blocks(&self) -> u32 {
        self.end.saturating_sub(self.first)
    }

    /// Whether this has all of `other`.
    pub fn covers(&self, other: &Range) -> bool {
        self.first <= other.first
            && other.end <= self.end
            && (self.embedding || !other.embedding)
            && (self.head || !other.head)
    }

    pub(crate) fn check(&self) -> Result<(), ProtoError> {
        let check = Check("Range");
        check.at_most("end", self.end.into(), limits::BLOCKS.into())?;
        check.holds("first", self.first <= self.end, "must not be after end")?;
        check.holds(
            "first",
            self.first < self.end || self.embedding || self.head,
            "must leave something to compute",
        )?;
        check.holds("embedding", !self.embedding || self.first == 0, "comes before block 0")
    }
}

/// Number format of activations between two stages. A pool has one: rounding at seams is part of what it computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Seam {
    /// Not said; refused.
    Unspecified = 0,
    /// 32 bits.
    F32 = 1,
    /// 16 bits, IEEE 754.
    F16 = 2,
}

impl Seam {
    /// Bytes of a number.
    pub fn bytes(self) -> u32 {
        match self {
            Seam::Unspecified => 0,
            Seam::F32 => 4,
            Seam::F16 => 2,
        }
    }

    pub(crate) fn check(seam: i32, check: &Check) -> Result<Seam, ProtoError> {
        let known = Seam::try_from(seam).unwrap_or(Seam::Unspecified);
        check.holds("seam", known != Seam::Unspecified, "must be f32 or f16")?;
        Ok(known)
    }
}
