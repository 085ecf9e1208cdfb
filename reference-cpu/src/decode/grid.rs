//! Grids: `scale * level`.

use super::{half, widened};
use backend_api::format::{Factor, Grid, High, Indices, Signs, Steps};

#[inline(always)]
pub(super) fn block(grid: &Grid, b: &[u8], out: &mut [f32]) {
    let (bits, sign) = (grid.codebook.bits, grid.codebook.sign());
    for (eight, out) in out.chunks_exact_mut(8).enumerate() {
        let (group, i) = (eight / 4, eight % 4);
        let scale = unit(grid, b) * (0.5 + f32::from(step(grid, b, group, i / 2)));
        let (codes, signs) = eight_of(grid, b, group, i);
        for (j, out) in out.iter_mut().enumerate() {
            let code = codes >> (bits * j) & ((1 << bits) - 1) | u32::from(signs >> j & 1) << sign;
            *out = scale * f32::from(grid.codebook.levels[code as usize]);
        }
    }
}

/// Returns the unit that scales are odd multiples of half of.
#[inline(always)]
pub(super) fn unit(grid: &Grid, b: &[u8]) -> f32 {
    let d = match grid.d {
        Factor::Half { at } => half(b, at),
        Factor::Nibbles { at } => widened((0..4).fold(0, |d, i| d | u32::from(b[at + 2 * i + 1] >> 4) << (4 * i))),
    };
    d * (f32::from(grid.quarters) / 4.0)
}

/// The integer of the scale of a half of a group.
#[inline(always)]
pub(super) fn step(grid: &Grid, b: &[u8], group: usize, half: usize) -> u8 {
    match grid.steps {
        Steps::Sevens { at, apart } => (word(b, at + apart * group) >> 28) as u8,
        Steps::Halves { at } => b[at + group] >> (4 * half) & 15,
        Steps::Threes { at } => (short(b, at + group / 2 * 2) >> (6 * (group % 2) + 3 * half) & 7) as u8,
        Steps::High => (high(grid, b, group) >> 12 & 7) as u8,
        Steps::Groups { at } => b[at + group / 2] >> (4 * (group % 2)) & 15,
    }
}

/// Whether the halves of groups have scales of their own.
#[inline(always)]
pub(super) fn has_halves(grid: &Grid) -> bool {
    match grid.steps {
        Steps::Sevens { .. } | Steps::Groups { .. } | Steps::High => false,
        Steps::Halves { .. } | Steps::Threes { .. } => true,
    }
}

/// The codes of neighbours 8 `i` to 8 `i` + 7 of a group, the first in the lowest bits, and their signs, a bit each.
#[inline(always)]
pub(super) fn eight_of(grid: &Grid, b: &[u8], group: usize, i: usize) -> (u32, u8) {
    let entry = |i| u32::from(grid.codebook.entry(index(grid, b, group, i)));
    let codes = if grid.codebook.bits == 2 { entry(i) } else { entry(2 * i) | entry(2 * i + 1) << 16 };
    let signs = match grid.signs {
        Signs::Sevens { at, apart } => even((word(b, at + apart * group) >> (7 * i) & 127) as u8),
        Signs::Bytes { at } => b[at + 4 * group + i],
        Signs::High { bit, pitch } => 0xFF * (high(grid, b, group) >> (bit + pitch * i) & 1) as u8,
        Signs::Nines { at } => even((short(b, at + 8 * group + 2 * i) >> 9) as u8),
    };
    (codes, signs)
}

/// The index of entry `i` of a group.
#[inline(always)]
fn index(grid: &Grid, b: &[u8], group: usize, i: usize) -> usize {
    match grid.indices {
        Indices::Bytes { at, apart } => {
            let above = grid.high.map_or(0, |own| high(grid, b, group) >> (own.pitch * i) & ((1 << own.bits) - 1));
            usize::from(b[at + apart * group + i]) | usize::from(above) << 8
        }
        Indices::Nines { at } => usize::from(short(b, at + 8 * group + 2 * i) & 511),
    }
}

/// The bits of a group above the lower bytes of its indices.
#[inline(always)]
fn high(grid: &Grid, b: &[u8], group: usize) -> u16 {
    match grid.high {
        Some(High { at, bytes: 1, .. }) => b[at + group].into(),
        Some(High { at, .. }) => short(b, at + 2 * group),
        None => 0,
    }
}

#[inline(always)]
fn short(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([b[at], b[at + 1]])
}

#[inline(always)]
fn word(b: &[u8], at: usize) -> u32 {
    u32::from(short(b, at)) | u32::from(short(b, at + 2)) << 16
}

/// Seven signs with the eighth, which makes their number even.
#[inline(always)]
fn even(seven: u8) -> u8 {
    seven | (seven.count_ones() as u8 & 1) << 7
}
