//! Tables of 16 levels: `x = scale * level[q]` with codes of 4 bits.

use super::{Codes, Family, FormatSpec, PlaneSpec, Scales, planes};

/// A family: codes of 4 bits stand for levels that are not evenly spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// The codes.
    pub codes: Codes,
    /// Values of the levels.
    pub levels: &'static [i8; 16],
    /// Scales of the levels; there are no minima.
    pub scales: Scales,
}

impl Levels {
    /// The levels as four words, the first one in the lowest byte of the first.
    pub fn words(&self) -> [u32; 4] {
        let (words, _) = self.levels.as_chunks::<4>();
        [0, 1, 2, 3].map(|i: usize| u32::from_le_bytes(words[i].map(|level| level as u8)))
    }
}

const fn row(name: &'static str, ggml_id: u32, [len, bytes]: [usize; 2], levels: Levels) -> FormatSpec {
    let [scales, factors] = PlaneSpec::scales(&levels.scales);
    // An odd number of bytes is repacked with that of the next block.
    let blocks = if scales.bytes % 2 == 0 { 1 } else { 2 };
    let codes = PlaneSpec::codes("CODES", levels.codes, len);
    let planes = planes(&[codes.times(blocks), scales.times(blocks), factors.times(blocks)]);
    let family = Family::Levels(levels);
    FormatSpec { name, ggml_id, block_len: len, block_bytes: bytes, pack_len: blocks * len, planes, family }
}

/// Levels for weights that are distributed normally.
const NL: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

pub(super) const IQ4_NL: FormatSpec = row(
    "IQ4_NL",
    20,
    [32, 18],
    Levels { codes: Codes { bits: 4, at: 2, run: 16 }, levels: &NL, scales: Scales::One { d: 0 } },
);

pub(super) const IQ4_XS: FormatSpec = row(
    "IQ4_XS",
    23,
    [256, 136],
    Levels { codes: Codes { bits: 4, at: 8, run: 16 }, levels: &NL, scales: Scales::SixBits32 { at: 0 } },
);

/// Twice the numbers of floats with a sign, 2 bits of exponent and 1 of fraction.
const FP4: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

pub(super) const MXFP4: FormatSpec = row(
    "MXFP4",
    39,
    [32, 17],
    Levels { codes: Codes { bits: 4, at: 1, run: 16 }, levels: &FP4, scales: Scales::Exponent { at: 0 } },
);

pub(super) const NVFP4: FormatSpec = row(
    "NVFP4",
    40,
    [64, 36],
    Levels { codes: Codes { bits: 4, at: 4, run: 8 }, levels: &FP4, scales: Scales::Minifloats { at: 0 } },
);
