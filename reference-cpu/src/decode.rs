//! Decoders: file bytes of a row to f32. One file a format; the order of operations is that of the format's definition,
//! so values agree bit for bit with ggml's.
//!
//! Beside each decoder of a quantised format stands its view as small integers, [`Quants`], which the fast path uses.

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

/// 32 consecutive elements of a quantised row: `scale * q + min`.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    /// At most 4,096 either way, so that 32 products with 16-bit integers add up within 32 bits in two lanes or more.
    pub q: [i16; GROUP],
    pub scale: f32,
    pub min: f32,
}

/// A format whose blocks are small integers with scales.
pub(crate) trait Quants {
    /// The bytes of a block.
    type Block: bytemuck::Pod;
    /// Groups of a block.
    const GROUPS: usize;
    /// Whether groups have minima other than 0.
    const MIN: bool;

    /// Group `index` of a block.
    fn group(block: &Self::Block, index: usize) -> Group;
}

/// The f16 in two bytes, widened.
///
/// Moved to their place in an f32, exponent and fraction stand for 2^-112 of the value, subnormal or not.
#[inline(always)]
fn half(lo: u8, hi: u8) -> f32 {
    let bits = u32::from(u16::from_le_bytes([lo, hi]));
    let finite = (f32::from_bits((bits & 0x7FFF) << 13) * f32::from_bits(0x7780_0000)).to_bits();
    let special = if bits & 0x7C00 == 0x7C00 { 0x7F80_0000 } else { 0 };
    f32::from_bits((bits & 0x8000) << 16 | finite | special)
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
