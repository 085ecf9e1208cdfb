//! Blocks as groups of 32 small integers: an element is `scale * q + min`, with a minimum for each half of the group.
//!
//! All of it is compiled for each format, where the descriptor is a constant, so what is not that format's goes away.

use super::{grid, half, scales, trits, widened};
use backend_api::format::{Codes, Family, FormatSpec, GROUP, Linear, Row, Scales};

/// 32 bytes, eight a word: what is done to words is done to eight elements at once on any machine, and compilers make
/// vectors of them. Loops over bytes they make vectors of only sometimes.
pub(crate) type Words = [u64; GROUP / 8];

/// Groups of a block.
#[inline(always)]
pub(crate) const fn groups<R: Row>() -> usize {
    R::SPEC.block_len.div_ceil(GROUP)
}

/// Whether groups have minima other than 0.
#[inline(always)]
pub(crate) fn minima<R: Row>() -> bool {
    scales_of::<R>().is_some_and(|scales| scales.minima())
}

#[inline(always)]
fn scales_of<R: Row>() -> Option<&'static Scales> {
    match &R::SPEC.family {
        Family::Linear(linear) => Some(&linear.scales),
        Family::Levels(levels) => Some(&levels.scales),
        Family::Floats(_) | Family::Grid(_) | Family::Trits(_) => None,
    }
}

/// Returns the values of the integers of a group, if they differ from the integers.
#[inline(always)]
pub(crate) fn levels<R: Row>() -> Option<&'static [i8; 16]> {
    match &R::SPEC.family {
        Family::Levels(levels) => Some(levels.levels),
        Family::Grid(grid) => Some(&grid.codebook.levels),
        Family::Floats(_) | Family::Linear(_) | Family::Trits(_) => None,
    }
}

/// The integers of group `index` of a block, a signed byte each.
#[inline(always)]
pub(crate) fn group<R: Row>(block: &[u8], index: usize) -> Words {
    match &R::SPEC.family {
        Family::Linear(linear) => of_linear(linear, block, index),
        Family::Levels(levels) => part(&levels.codes, block, index),
        Family::Grid(grid) => [0, 1, 2, 3].map(|i| {
            let (codes, signs) = grid::eight_of(grid, block, index, i);
            let [signs, ..] = spread([signs; 4]);
            apart(codes, grid.codebook.bits) | signs << grid.codebook.sign()
        }),
        Family::Trits(trits) => [0, 2, 4, 6].map(|i| {
            let [low, high] = [i, i + 1].map(|i| trits::codes(trits, block, 8 * index + i));
            minus(u64::from(u32::from_le_bytes(low)) | u64::from(u32::from_le_bytes(high)) << 32, 1)
        }),
        // Floats are not multiplied as integers.
        Family::Floats(_) => [0; 4],
    }
}

/// Whether the elements of a group are integers times one scale: not if its halves have floats of their own.
pub(crate) const fn are_integers(spec: &FormatSpec) -> bool {
    match &spec.family {
        Family::Floats(_) => false,
        Family::Levels(levels) => !matches!(levels.scales, Scales::Minifloats { .. }),
        Family::Linear(_) | Family::Grid(_) | Family::Trits(_) => true,
    }
}

/// The scale of each group of the blocks of a row, and the minima of its halves.
#[inline(always)]
pub(crate) fn scales<R: Row>(blocks: &[u8], out: &mut [[f32; 3]]) {
    let blocks = blocks.chunks_exact(R::SPEC.block_bytes);
    let scales = match &R::SPEC.family {
        Family::Linear(linear) => &linear.scales,
        Family::Levels(levels) => &levels.scales,
        Family::Grid(grid) => {
            for (b, out) in blocks.zip(out.as_chunks_mut::<8>().0) {
                let unit = grid::unit(grid, b);
                // Where halves have scales of their own, `factors` has twice the rest of them.
                *out = std::array::from_fn(|group| {
                    let rest =
                        if grid::has_halves(grid) { 0.5 } else { 0.5 + f32::from(grid::step(grid, b, group, 0)) };
                    [unit * rest, 0.0, 0.0]
                });
            }
            return;
        }
        Family::Trits(trits) => &Scales::One { d: trits.d },
        Family::Floats(_) => return,
    };
    match *scales {
        Scales::One { d } if R::SPEC.block_len == GROUP => halves(blocks.map(|b| [b[d], b[d + 1], 0, 0]), out),
        Scales::Two { d } => halves(blocks.map(|b| [b[d], b[d + 1], b[d + 2], b[d + 3]]), out),
        Scales::Sixes { at } => {
            for (b, out) in blocks.zip(out.as_chunks_mut::<8>().0) {
                let factors = [half(b, at), half(b, at + 2)];
                *out = std::array::from_fn(|j| {
                    let [scale, minimum] = scales::sixes(factors, &b[at + 4..][..12], j);
                    [scale, minimum, minimum]
                });
            }
        }
        Scales::Nibbles { at, d } => {
            for (b, out) in blocks.zip(out.as_chunks_mut::<8>().0) {
                let [scale, minimum] = [half(b, d), half(b, d + 2)];
                let of = |half: usize| -(minimum * f32::from(b[at + half] >> 4));
                *out = std::array::from_fn(|j| [scale, of(2 * j), of(2 * j + 1)]);
            }
        }
        Scales::SixBits32 { at } => {
            for (b, out) in blocks.zip(out.as_chunks_mut::<8>().0) {
                let factor = |j| f32::from(scales::six_bits_32(&b[at + 2..][..6], j));
                *out = std::array::from_fn(|j| [half(b, at) * factor(j), 0.0, 0.0]);
            }
        }
        Scales::Exponent { at } => {
            for (b, out) in blocks.zip(out) {
                *out = [scales::power(b[at]), 0.0, 0.0];
            }
        }
        Scales::One { d } | Scales::Bytes { d, .. } | Scales::SixBits16 { d, .. } => {
            for (b, out) in blocks.zip(out.chunks_exact_mut(R::SPEC.block_len / GROUP)) {
                out.fill([half(b, d), 0.0, 0.0]);
            }
        }
        // See `are_integers`.
        Scales::Minifloats { .. } => {}
    }
}

/// Whether the halves of groups have [factors](factors()) of their own.
#[inline(always)]
pub(crate) fn has_factors<R: Row>() -> bool {
    match &R::SPEC.family {
        Family::Grid(grid) => grid::has_halves(grid),
        _ => matches!(scales_of::<R>(), Some(Scales::Bytes { .. } | Scales::Nibbles { .. } | Scales::SixBits16 { .. })),
    }
}

/// Returns the factors of the integers of the halves of group `index`; their products are at most 4,096 either way.
#[inline(always)]
pub(crate) fn factors<R: Row>(block: &[u8], index: usize) -> Option<[i16; 2]> {
    match &R::SPEC.family {
        Family::Grid(grid) if grid::has_halves(grid) => {
            Some([0, 1].map(|half| 1 + 2 * i16::from(grid::step(grid, block, index, half))))
        }
        _ => match scales_of::<R>() {
            Some(&Scales::Bytes { at, .. }) => Some([0, 1].map(|half| i16::from(block[at + 2 * index + half] as i8))),
            Some(&Scales::Nibbles { at, .. }) => Some([0, 1].map(|half| i16::from(block[at + 2 * index + half] & 15))),
            Some(&Scales::SixBits16 { at, .. }) => {
                Some([0, 1].map(|half| i16::from(scales::six_bits_16(&block[at..][..12], 2 * index + half))))
            }
            _ => None,
        },
    }
}

#[inline(always)]
fn of_linear(linear: &Linear, block: &[u8], index: usize) -> Words {
    let mut q = part(&linear.low, block, index);
    if linear.bits() == 1 {
        q = q.map(|q| q << 1);
    }
    if let Some(high) = &linear.high {
        for (q, high) in q.iter_mut().zip(part(high, block, index)) {
            *q |= high << linear.low.bits;
        }
    }
    if linear.zero > 0 { q.map(|q| minus(q, linear.zero.into())) } else { q }
}

/// A part of the codes of group `index`.
#[inline(always)]
fn part(codes: &Codes, block: &[u8], index: usize) -> Words {
    let (at, shift) = codes.place(GROUP * index);
    match (codes.bits, codes.run) {
        (8, _) => words(block, at),
        (4, 16) => nibbles(block, at),
        (1, 1) => spread([block[at], block[at + 1], block[at + 2], block[at + 3]]),
        (_, run) if run.is_multiple_of(GROUP) => {
            words(block, at).map(|q| q >> shift & (u64::from(codes.mask()) * ONES))
        }
        _ => {
            let bytes: [u8; GROUP] = std::array::from_fn(|e| codes.get(block, GROUP * index + e));
            words(&bytes, 0)
        }
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

/// Eight codes of 2 or 4 bits as bytes.
#[inline(always)]
fn apart(codes: u32, bits: usize) -> u64 {
    let codes = u64::from(codes);
    let fours = (codes | codes << (32 - 4 * bits)) & (((1 << (4 * bits)) - 1) * 0x0000_0001_0000_0001);
    let pairs = (fours | fours << (16 - 2 * bits)) & (((1 << (2 * bits)) - 1) * 0x0001_0001_0001_0001);
    (pairs | pairs << (8 - bits)) & (((1 << bits) - 1) * ONES)
}

/// Bits as bytes that are 0 or 1.
#[inline(always)]
fn spread(bits: [u8; 4]) -> Words {
    bits.map(|bits| {
        // Bit i of byte i: the others are masked out. A byte that is not 0 then carries into its bit 7.
        let own = (u64::from(bits) * ONES) & 0x8040_2010_0804_0201;
        (own + 0x7F * ONES) >> 7 & ONES
    })
}

/// Takes a number off each byte: both below 128, the difference as a signed byte.
#[inline(always)]
fn minus(bytes: u64, number: u64) -> u64 {
    (bytes + (128 - number) * ONES) ^ (128 * ONES)
}

/// Scale and minimum of each block, two f16, widened: first moved together, so that the loop with the arithmetic becomes one
/// over vectors.
#[inline(always)]
fn halves(blocks: impl Iterator<Item = [u8; 4]>, out: &mut [[f32; 3]]) {
    for ([a, b, c, d], out) in blocks.zip(&mut *out) {
        *out = [[a, b], [c, d], [c, d]].map(|half| f32::from_bits(u16::from_le_bytes(half).into()));
    }
    for value in out.as_flattened_mut() {
        *value = widened(value.to_bits());
    }
}
