//! Linear blocks: `x = scale * (q - zero)`, or `x = scale * q + minimum` where there are minima.

use super::{Codes, Family, FormatSpec, PlaneSpec, Scales, planes};

/// A family: codes of 1 to 6 bits, or of 8 with a sign, times a scale. A code of 1 bit stands for 0 or 2: both are 1 away
/// from what stands for 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linear {
    /// The lower bits of the codes.
    pub low: Codes,
    /// The bits above those.
    pub high: Option<Codes>,
    /// The code that stands for 0.
    pub zero: u8,
    /// Scales of the codes, and the minima that are added.
    pub scales: Scales,
}

impl Linear {
    /// Bits of a code; 8 have a sign.
    pub const fn bits(&self) -> usize {
        match self.high {
            Some(high) => self.low.bits + high.bits,
            None => self.low.bits,
        }
    }
}

const fn row(name: &'static str, ggml_id: u32, [len, bytes]: [usize; 2], linear: Linear) -> FormatSpec {
    let [scales, factors] = PlaneSpec::scales(&linear.scales);
    let low = PlaneSpec::codes("LOW", linear.low, len);
    let planes = match linear.high {
        Some(high) => planes(&[low, PlaneSpec::codes("HIGH", high, len), scales, factors]),
        None => planes(&[low, scales, factors]),
    };
    let family = Family::Linear(linear);
    FormatSpec { name, ggml_id, block_len: len, block_bytes: bytes, pack_len: len, planes, family }
}

const fn bits(bits: usize, at: usize, run: usize) -> Codes {
    Codes { bits, at, run }
}

pub(super) const Q4_0: FormatSpec =
    row("Q4_0", 2, [32, 18], Linear { low: bits(4, 2, 16), high: None, zero: 8, scales: Scales::One { d: 0 } });

pub(super) const Q4_1: FormatSpec =
    row("Q4_1", 3, [32, 20], Linear { low: bits(4, 4, 16), high: None, zero: 0, scales: Scales::Two { d: 0 } });

pub(super) const Q5_0: FormatSpec = row(
    "Q5_0",
    6,
    [32, 22],
    Linear { low: bits(4, 6, 16), high: Some(bits(1, 2, 1)), zero: 16, scales: Scales::One { d: 0 } },
);

pub(super) const Q5_1: FormatSpec = row(
    "Q5_1",
    7,
    [32, 24],
    Linear { low: bits(4, 8, 16), high: Some(bits(1, 4, 1)), zero: 0, scales: Scales::Two { d: 0 } },
);

pub(super) const Q8_0: FormatSpec =
    row("Q8_0", 8, [32, 34], Linear { low: bits(8, 2, 1), high: None, zero: 0, scales: Scales::One { d: 0 } });

pub(super) const Q4_K: FormatSpec =
    row("Q4_K", 12, [256, 144], Linear { low: bits(4, 16, 32), high: None, zero: 0, scales: Scales::Sixes { at: 0 } });

pub(super) const Q5_K: FormatSpec = row(
    "Q5_K",
    13,
    [256, 176],
    Linear { low: bits(4, 48, 32), high: Some(bits(1, 16, 32)), zero: 0, scales: Scales::Sixes { at: 0 } },
);

pub(super) const Q6_K: FormatSpec = row(
    "Q6_K",
    14,
    [256, 210],
    Linear { low: bits(4, 0, 64), high: Some(bits(2, 128, 32)), zero: 32, scales: Scales::Bytes { at: 192, d: 208 } },
);

pub(super) const Q2_K: FormatSpec = row(
    "Q2_K",
    10,
    [256, 84],
    Linear { low: bits(2, 16, 32), high: None, zero: 0, scales: Scales::Nibbles { at: 0, d: 80 } },
);

pub(super) const Q3_K: FormatSpec = row(
    "Q3_K",
    11,
    [256, 110],
    Linear { low: bits(2, 32, 32), high: Some(bits(1, 0, 32)), zero: 4, scales: Scales::SixBits16 { at: 96, d: 108 } },
);

pub(super) const TQ2_0: FormatSpec =
    row("TQ2_0", 35, [256, 66], Linear { low: bits(2, 0, 32), high: None, zero: 1, scales: Scales::One { d: 64 } });

pub(super) const Q1_0: FormatSpec =
    row("Q1_0", 41, [128, 18], Linear { low: bits(1, 2, 1), high: None, zero: 1, scales: Scales::One { d: 0 } });

pub(super) const Q2_0: FormatSpec =
    row("Q2_0", 42, [64, 18], Linear { low: bits(2, 2, 1), high: None, zero: 1, scales: Scales::One { d: 0 } });
