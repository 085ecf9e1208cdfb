//! Trits: five numbers of three values in a byte, times a scale.

use super::{Family, FormatSpec, PlaneSpec, Scales, planes};

/// A family: `x = scale * (q - 1)` with codes q of 0 to 2, which are the digits of fractions in base 3: code n of a byte b is
/// the whole part of `3 * (b * 3^n mod 256) / 256`.
///
/// Ternary codes, five to a byte. The first 160 elements of a block of 256 are in 32 bytes: the first code of each
/// byte, then the second one of each, and so on. The next 80 are in 16 bytes in the same way, and the last 16 are the
/// first four codes of 4 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trits {
    /// The first of the 52 bytes.
    pub at: usize,
    /// Where the f16 scale lies.
    pub d: usize,
}

impl Trits {
    /// The bytes and the code of each, both counted from 0, that four neighbours have which begin with element 4 `quad`.
    ///
    /// *Units*: the first byte of a word of four.
    #[inline(always)]
    pub const fn place(quad: usize) -> (usize, usize) {
        match quad {
            0..40 => (quad % 8, quad / 8),
            40..60 => (8 + quad % 4, (quad - 40) / 4),
            _ => (12, quad - 60),
        }
    }

    /// Code `n` of a byte.
    #[inline(always)]
    pub const fn code(byte: u8, n: usize) -> u8 {
        let power = [1, 3, 9, 27, 81][n];
        ((byte.wrapping_mul(power) as u16 * 3) >> 8) as u8
    }

    pub(super) const fn scales(&self) -> Scales {
        Scales::One { d: self.d }
    }
}

pub(super) const TQ1_0: FormatSpec = {
    let trits = Trits { at: 0, d: 52 };
    let [scales, _] = PlaneSpec::scales(&trits.scales());
    let planes = planes(&[PlaneSpec::copied("TRITS", trits.at, 52), scales]);
    let family = Family::Trits(trits);
    FormatSpec { name: "TQ1_0", ggml_id: 34, block_len: 256, block_bytes: 54, pack_len: 256, planes, family }
};
