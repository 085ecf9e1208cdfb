//! Decoders: file bytes of a row to f32. One file a format; the order of operations is that of the format's definition,
//! so values agree bit for bit with ggml's.
//!
//! Beside each decoder of a quantised format stands its view as small integers, `Quants`, which the fast path uses.

use backend_api::Format;
use backend_api::format::GROUP;

mod floats;
pub(crate) mod q4_0;
pub(crate) mod q4_1;
pub(crate) mod q4_k;
pub(crate) mod q5_0;
pub(crate) mod q5_1;
pub(crate) mod q6_k;
pub(crate) mod q8_0;

/// Decodes a row.
///
/// *Shapes*: `bytes` are whole blocks, `out` their elements; what has no counterpart is left alone.
#[inline(always)]
pub fn row(format: Format, bytes: &[u8], out: &mut [f32]) {
    match format {
        Format::F32 => floats::f32(bytes, out),
        Format::F16 => floats::f16(bytes, out),
        Format::BF16 => floats::bf16(bytes, out),
        Format::Q4_0 => blocks(bytes, out, q4_0::block),
        Format::Q4_1 => blocks(bytes, out, q4_1::block),
        Format::Q5_0 => blocks(bytes, out, q5_0::block),
        Format::Q5_1 => blocks(bytes, out, q5_1::block),
        Format::Q8_0 => blocks(bytes, out, q8_0::block),
        Format::Q4_K => blocks(bytes, out, q4_k::block),
        Format::Q6_K => blocks(bytes, out, q6_k::block),
    }
}

/// Decodes block after block of B bytes and N elements.
#[inline(always)]
fn blocks<const B: usize, const N: usize>(bytes: &[u8], out: &mut [f32], block: impl Fn(&[u8; B], &mut [f32; N])) {
    let (bytes, _) = bytes.as_chunks::<B>();
    let (out, _) = out.as_chunks_mut::<N>();
    for (bytes, out) in bytes.iter().zip(out) {
        block(bytes, out);
    }
}

/// 32 bytes, eight a word: what is done to words is done to eight elements at once on any machine, and compilers make
/// vectors of them. Loops over bytes they make vectors of only sometimes.
pub(crate) type Words = [u64; GROUP / 8];

/// A format whose rows are groups of 32 small integers: an element is `scale * q + min`.
pub(crate) trait Quants {
    /// The bytes of a block.
    type Block: bytemuck::Pod;
    /// Groups of a block.
    const GROUPS: usize;
    /// Whether groups have minima other than 0.
    const MIN: bool;

    /// The integers of group `index` of a block, a signed byte each.
    fn quants(block: &Self::Block, index: usize) -> Words;

    /// Scale and minimum of each group of a row.
    fn scales(blocks: &[Self::Block], out: &mut [[f32; 2]]);

    /// What the integers of the halves of group `index` are multiplied by; at most 4,096 either way then.
    #[inline(always)]
    fn factors(_: &Self::Block, _index: usize) -> Option<[i16; 2]> {
        None
    }
}

/// A 1 in each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;

/// 32 bytes.
#[inline(always)]
fn words(bytes: &[u8], first: usize) -> Words {
    let (words, _) = bytes[first..][..GROUP].as_chunks();
    [0, 1, 2, 3].map(|i| u64::from_le_bytes(words[i]))
}

/// The low nibbles of 16 bytes, then the high ones.
#[inline(always)]
fn nibbles(bytes: &[u8], first: usize) -> Words {
    let (words, _) = bytes[first..][..GROUP / 2].as_chunks();
    let [a, b] = [0, 1].map(|i| u64::from_le_bytes(words[i]));
    [a, b, a >> 4, b >> 4].map(|word| word & (15 * ONES))
}

/// Sets bit 4 of the elements whose bit is set.
#[inline(always)]
fn with_fifth_bits(mut q: Words, bits: [u8; 4]) -> Words {
    for (q, bits) in q.iter_mut().zip(bits) {
        // Bit i of byte i: the others are masked out. A byte that is not 0 then carries into its bit 7.
        let own = (u64::from(bits) * ONES) & 0x8040_2010_0804_0201;
        *q |= (own + 0x7F * ONES) >> 3 & (16 * ONES);
    }
    q
}

/// Takes a number off each byte: both below 128, the difference as a signed byte.
#[inline(always)]
fn minus(bytes: u64, number: u64) -> u64 {
    (bytes + (128 - number) * ONES) ^ (128 * ONES)
}

/// The f16 in two bytes, widened.
#[inline(always)]
fn half(lo: u8, hi: u8) -> f32 {
    widened(u16::from_le_bytes([lo, hi]).into())
}

/// Two f16 of each block, widened: first moved together, so that the loop with the arithmetic becomes one over vectors.
#[inline(always)]
fn halves(blocks: impl Iterator<Item = [u8; 4]>, out: &mut [[f32; 2]]) {
    for ([a, b, c, d], out) in blocks.zip(&mut *out) {
        *out = [[a, b], [c, d]].map(|half| f32::from_bits(u16::from_le_bytes(half).into()));
    }
    for value in out.as_flattened_mut() {
        *value = widened(value.to_bits());
    }
}

/// The value of an f16.
///
/// Moved to their place in an f32, exponent and fraction stand for 2^-112 of the value, subnormal or not; infinities and
/// NaN for what f16 has no numbers for. There is no branch, for the sake of vectors.
#[inline(always)]
fn widened(bits: u32) -> f32 {
    let value = f32::from_bits((bits & 0x7FFF) << 13) * f32::from_bits(0x7780_0000);
    let special = if value < 65_536.0 { 0 } else { 0x7F80_0000 };
    f32::from_bits(value.to_bits() | special | (bits & 0x8000) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_widened_exactly() {
        for bits in 0..=u16::MAX {
            let [lo, hi] = bits.to_le_bytes();
            let (ours, theirs) = (half(lo, hi), half::f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(), "{bits:#06x}");
        }
    }
}
