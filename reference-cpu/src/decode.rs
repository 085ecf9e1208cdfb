//! Decoders: file bytes of a row to f32. One file a family of formats; the order of operations is that of the formats'
//! definitions, so values agree bit for bit with ggml's.
//!
//! `quants` has the same blocks as small integers, which the fast path uses.

use backend_api::Format;
use backend_api::format::{Family, Row, Visit};

mod floats;
mod grid;
mod levels;
mod linear;
pub(crate) mod quants;
mod scales;
mod trits;

/// Decodes a row.
///
/// *Shapes*: `bytes` are whole blocks, `out` their elements; what has no counterpart is left alone.
#[inline(always)]
pub fn row(format: Format, bytes: &[u8], out: &mut [f32]) {
    format.visit(Decode { bytes, out });
}

/// Decodes a row by code that its callers share. [`row`] becomes part of each of them, with all formats.
#[inline(never)]
pub fn row_shared(format: Format, bytes: &[u8], out: &mut [f32]) {
    row(format, bytes, out);
}

struct Decode<'a> {
    bytes: &'a [u8],
    out: &'a mut [f32],
}

impl Visit for Decode<'_> {
    type Out = ();

    #[inline(always)]
    fn visit<R: Row>(self) {
        match &R::SPEC.family {
            Family::Floats(floats) => floats::row(*floats, self.bytes, self.out),
            Family::Linear(linear) => self.blocks::<R>(|block, out| linear::block(linear, block, out)),
            Family::Grid(grid) => self.blocks::<R>(|block, out| grid::block(grid, block, out)),
            Family::Levels(levels) => self.blocks::<R>(|block, out| levels::block(levels, block, out)),
            Family::Trits(trits) => self.blocks::<R>(|block, out| trits::block(trits, block, out)),
        }
    }
}

impl Decode<'_> {
    /// Decodes block after block.
    #[inline(always)]
    fn blocks<R: Row>(self, decode: impl Fn(&[u8], &mut [f32])) {
        let blocks = self.bytes.chunks_exact(R::SPEC.block_bytes);
        for (block, out) in blocks.zip(self.out.chunks_exact_mut(R::SPEC.block_len)) {
            decode(block, out);
        }
    }
}

/// The f16 at a byte, widened.
#[inline(always)]
fn half(bytes: &[u8], at: usize) -> f32 {
    widened(u16::from_le_bytes([bytes[at], bytes[at + 1]]).into())
}

/// The value of an f16.
///
/// Numbers keep their fraction and have another exponent, subnormal ones are so many times 2^-24, and infinities and NaN
/// have the largest exponent. There is no branch, for the sake of vectors, and no arithmetic with subnormal f32, which is
/// slow on many processors.
#[inline(always)]
fn widened(bits: u32) -> f32 {
    let size = bits & 0x7FFF;
    let normal = (size << 13) + 0x3800_0000;
    let subnormal = (size as i32 as f32 * f32::from_bits(0x3380_0000)).to_bits();
    let value = if size < 0x400 { subnormal } else { normal };
    let special = if size < 0x7C00 { 0 } else { 0x7F80_0000 };
    f32::from_bits(value | special | (bits & 0x8000) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_widened_exactly() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (half(&bits.to_le_bytes(), 0), half::f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(), "{bits:#06x}");
        }
    }
}
