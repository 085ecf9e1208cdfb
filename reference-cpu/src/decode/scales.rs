//! The scales of blocks.

use super::half;
use backend_api::format::Scales;

/// Scale and minimum of elements 16 `i` to 16 `i` + 15 of a block.
#[inline(always)]
pub(super) fn of(scales: &Scales, b: &[u8], i: usize) -> [f32; 2] {
    match *scales {
        Scales::One { d } => [half(b, d), 0.0],
        Scales::Two { d } => [half(b, d), half(b, d + 2)],
        Scales::Sixes { at } => sixes([half(b, at), half(b, at + 2)], &b[at + 4..][..12], i / 2),
        Scales::Bytes { at, d } => [half(b, d) * f32::from(b[at + i] as i8), 0.0],
        Scales::Nibbles { at, d } => {
            let [scale, minimum] = [b[at + i] & 15, b[at + i] >> 4].map(f32::from);
            [half(b, d) * scale, -(half(b, d + 2) * minimum)]
        }
        Scales::SixBits16 { at, d } => [half(b, d) * f32::from(six_bits_16(&b[at..][..12], i)), 0.0],
        Scales::SixBits32 { at } => [half(b, at) * f32::from(six_bits_32(&b[at + 2..][..6], i / 2)), 0.0],
        Scales::Exponent { at } => [power(b[at]), 0.0],
        Scales::Minifloats { at } => [minifloat(b[at + i]), 0.0],
    }
}

/// Scale and minimum of sub-block `j` from the two factors and the fields of 6 bits.
#[inline(always)]
pub(super) fn sixes([d, dmin]: [f32; 2], k: &[u8], j: usize) -> [f32; 2] {
    let (sc, m) = if j < 4 {
        (k[j] & 63, k[j + 4] & 63)
    } else {
        ((k[j + 4] & 15) | (k[j - 4] >> 6) << 4, (k[j + 4] >> 4) | (k[j] >> 6) << 4)
    };
    [d * f32::from(sc), -(dmin * f32::from(m))]
}

/// The factor of sub-block `i` of sixteen, from the fields of 6 bits.
#[inline(always)]
pub(super) fn six_bits_16(k: &[u8], i: usize) -> i8 {
    let low = k[i % 8] >> (4 * (i / 8)) & 15;
    let high = k[8 + i % 4] >> (2 * (i / 4)) & 3;
    (low | high << 4) as i8 - 32
}

/// The factor of sub-block `i` of eight, from the fields of 6 bits.
#[inline(always)]
pub(super) fn six_bits_32(k: &[u8], i: usize) -> i8 {
    let low = k[2 + i / 2] >> (4 * (i % 2)) & 15;
    let high = k[i / 4] >> (2 * (i % 4)) & 3;
    (low | high << 4) as i8 - 32
}

/// 2 to the power of a byte less 128. The first two are subnormal.
#[inline(always)]
pub(super) fn power(exponent: u8) -> f32 {
    f32::from_bits(match exponent {
        0 | 1 => 0x0020_0000 << exponent,
        _ => u32::from(exponent - 1) << 23,
    })
}

/// Half of a float with 4 bits of exponent and 3 of fraction. All ones stand for 0.
#[inline(always)]
fn minifloat(byte: u8) -> f32 {
    let (exponent, fraction) = (u32::from(byte >> 3 & 15), u32::from(byte & 7));
    match (byte, exponent) {
        (127, _) => 0.0,
        (_, 0) => fraction as f32 / 1024.0,
        _ => f32::from_bits((exponent + 119) << 23 | fraction << 20),
    }
}
