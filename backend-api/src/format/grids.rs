//! Grids: `x = scale * level`, and the codes of levels are entries of a codebook, several neighbours at a time.

use super::{Codebook, Family, FormatSpec, MAX_PLANES, PlaneSpec, TEXEL, codebook, planes};

/// A family: blocks of 256 in groups of 32, of which every eight neighbours have their codes from a codebook and a pattern
/// of signs. A code and its sign stand for a level.
///
/// Scales are `d * (0.5 + s) * quarters / 4` with small integers s. Products with levels need no more bits than an f32 has,
/// so their order does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// The codebook.
    pub codebook: &'static Codebook,
    /// Where the indices of entries lie.
    pub indices: Indices,
    /// Where the bits of indices lie that are above [`Indices::Bytes`].
    pub high: Option<High>,
    /// Where the signs lie.
    pub signs: Signs,
    /// Where the integers s lie.
    pub steps: Steps,
    /// Where the f16 d lies.
    pub d: Factor,
    /// Factor of the scales, in quarters.
    pub quarters: u8,
}

/// Where the indices of entries lie. *Units*: byte offsets in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indices {
    /// A byte each.
    Bytes {
        /// Those of the first group.
        at: usize,
        /// From one group to the next.
        apart: usize,
    },
    /// The lower 9 bits of a u16 each.
    Nines {
        /// The first one.
        at: usize,
    },
}

/// Where the bits of indices lie that are above the lower 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct High {
    /// The byte where those of the first group begin.
    pub at: usize,
    /// Bytes of a group: 1 or 2.
    pub bytes: usize,
    /// Bits from one index to the next, the first one's being the lowest.
    pub pitch: usize,
    /// Bits of an index.
    pub bits: usize,
}

/// Where the signs of every eight neighbours lie: a bit each, set for the other sign. *Units*: byte offsets in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signs {
    /// Seven bits of each pattern in a u32 for each group. The eighth makes the number of bits that are set even.
    Sevens {
        /// The u32 of the first group.
        at: usize,
        /// From one group to the next.
        apart: usize,
    },
    /// Seven bits above the nine of [`Indices::Nines`]. The eighth makes the number of bits that are set even.
    Nines {
        /// The first u16.
        at: usize,
    },
    /// A byte for each pattern.
    Bytes {
        /// The first one.
        at: usize,
    },
    /// All eight have the same one: a bit among those of [`High`].
    High {
        /// That of the first pattern of a group.
        bit: usize,
        /// Bits from one to the next.
        pitch: usize,
    },
}

/// Where the integers lie that scales are made of. *Units*: byte offsets in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    /// 4 bits for a group, above its [`Signs::Sevens`].
    Sevens {
        /// The u32 of the first group.
        at: usize,
        /// From one group to the next.
        apart: usize,
    },
    /// 4 bits for each half of a group, the first half in the lower ones of a byte.
    Halves {
        /// The byte of the first group.
        at: usize,
    },
    /// 3 bits for a group, bits 12 to 14 among those of [`High`].
    High,
    /// 4 bits for a group, the first group in the lower ones of a byte.
    Groups {
        /// The byte of the first two groups.
        at: usize,
    },
    /// 3 bits for each half of a group, two groups one above the other in a u16.
    Threes {
        /// The u16 of the first two groups.
        at: usize,
    },
}

/// Where an f16 lies that all scales of a block are multiplied by. *Units*: byte offsets in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factor {
    /// By itself.
    Half {
        /// Its first byte.
        at: usize,
    },
    /// 4 bits at a time, the lowest ones first, atop the four u16 of [`Steps::Threes`].
    Nibbles {
        /// The first u16.
        at: usize,
    },
}

impl Factor {
    /// Where it lies, if by itself.
    pub(super) const fn half(&self) -> Option<usize> {
        match *self {
            Factor::Half { at } => Some(at),
            Factor::Nibbles { .. } => None,
        }
    }
}

impl Grid {
    /// Bytes that the indices of a group take, with what lies between them and those of the next.
    pub(super) const fn apart(&self) -> usize {
        match self.indices {
            Indices::Bytes { apart, .. } => apart,
            Indices::Nines { .. } => 8,
        }
    }

    /// Whether each group has a word of signs, and those of a block lie behind all of its indices.
    pub(super) const fn signs_apart(&self) -> bool {
        matches!(self.signs, Signs::Sevens { apart: 4, .. } | Signs::Bytes { .. })
    }

    /// Texels of a block's indices.
    pub(super) const fn index_texels(&self) -> usize {
        8 * self.apart() / TEXEL
    }

    const fn planes(&self) -> [PlaneSpec; MAX_PLANES] {
        let (Indices::Bytes { at, .. } | Indices::Nines { at }) = self.indices;
        let words = match self.signs {
            Signs::Sevens { at: signs, .. } | Signs::Bytes { at: signs } if self.signs_apart() => {
                PlaneSpec::joined("WORDS", [(at, 8 * self.apart()), (signs, 32)])
            }
            _ => PlaneSpec::copied("WORDS", at, 8 * self.apart()),
        };
        let high = match self.high {
            Some(high) => PlaneSpec::copied("HIGH", high.at, 8 * high.bytes),
            None => PlaneSpec::NONE,
        };
        let scales = match self.steps {
            Steps::Sevens { .. } | Steps::High => PlaneSpec::NONE,
            Steps::Halves { at } | Steps::Threes { at } => PlaneSpec::copied("SCALES", at, 8),
            Steps::Groups { at } => PlaneSpec::copied("SCALES", at, 4),
        };
        let factors = match self.d {
            Factor::Half { at } => PlaneSpec::copied("FACTORS", at, 2),
            Factor::Nibbles { .. } => PlaneSpec::NONE,
        };
        planes(&[words, high, scales, factors])
    }
}

const fn row(name: &'static str, ggml_id: u32, bytes: usize, grid: Grid) -> FormatSpec {
    let (planes, family) = (grid.planes(), Family::Grid(grid));
    FormatSpec { name, ggml_id, block_len: 256, block_bytes: bytes, pack_len: 256, planes, family }
}

pub(super) const IQ2_XXS: FormatSpec = row(
    "IQ2_XXS",
    16,
    66,
    Grid {
        codebook: &codebook::IQ2_XXS,
        indices: Indices::Bytes { at: 2, apart: 8 },
        high: None,
        signs: Signs::Sevens { at: 6, apart: 8 },
        steps: Steps::Sevens { at: 6, apart: 8 },
        d: Factor::Half { at: 0 },
        quarters: 1,
    },
);

pub(super) const IQ2_XS: FormatSpec = row(
    "IQ2_XS",
    17,
    74,
    Grid {
        codebook: &codebook::IQ2_XS,
        indices: Indices::Nines { at: 2 },
        high: None,
        signs: Signs::Nines { at: 2 },
        steps: Steps::Halves { at: 66 },
        d: Factor::Half { at: 0 },
        quarters: 1,
    },
);

pub(super) const IQ2_S: FormatSpec = row(
    "IQ2_S",
    22,
    82,
    Grid {
        codebook: &codebook::IQ2_S,
        indices: Indices::Bytes { at: 2, apart: 4 },
        high: Some(High { at: 66, bytes: 1, pitch: 2, bits: 2 }),
        signs: Signs::Bytes { at: 34 },
        steps: Steps::Halves { at: 74 },
        d: Factor::Half { at: 0 },
        quarters: 1,
    },
);

pub(super) const IQ3_XXS: FormatSpec = row(
    "IQ3_XXS",
    18,
    98,
    Grid {
        codebook: &codebook::IQ3_XXS,
        indices: Indices::Bytes { at: 2, apart: 8 },
        high: None,
        signs: Signs::Sevens { at: 66, apart: 4 },
        steps: Steps::Sevens { at: 66, apart: 4 },
        d: Factor::Half { at: 0 },
        quarters: 2,
    },
);

pub(super) const IQ3_S: FormatSpec = row(
    "IQ3_S",
    21,
    110,
    Grid {
        codebook: &codebook::IQ3_S,
        indices: Indices::Bytes { at: 2, apart: 8 },
        high: Some(High { at: 66, bytes: 1, pitch: 1, bits: 1 }),
        signs: Signs::Bytes { at: 74 },
        steps: Steps::Groups { at: 106 },
        d: Factor::Half { at: 0 },
        quarters: 8,
    },
);

pub(super) const IQ1_S: FormatSpec = row(
    "IQ1_S",
    19,
    50,
    Grid {
        codebook: &codebook::IQ1_S,
        indices: Indices::Bytes { at: 2, apart: 4 },
        high: Some(High { at: 34, bytes: 2, pitch: 3, bits: 3 }),
        signs: Signs::High { bit: 15, pitch: 0 },
        steps: Steps::High,
        d: Factor::Half { at: 0 },
        quarters: 1,
    },
);

pub(super) const IQ1_M: FormatSpec = row(
    "IQ1_M",
    29,
    56,
    Grid {
        codebook: &codebook::IQ1_S,
        indices: Indices::Bytes { at: 0, apart: 4 },
        high: Some(High { at: 32, bytes: 2, pitch: 4, bits: 3 }),
        signs: Signs::High { bit: 3, pitch: 4 },
        steps: Steps::Threes { at: 48 },
        d: Factor::Nibbles { at: 48 },
        quarters: 1,
    },
);
