//! Products of many rows with weights that are integers: as in [`ints`](super::ints), but each lane has a row of weights
//! of its own, so that nothing is added up across lanes and a scale is applied once for all of them.
//!
//! For that 16 rows of weights are laid beside each other, which pays where many rows of x are multiplied by them. The
//! sums of a group are exact and groups follow each other as for few rows, so that all row counts give the same bits.

use super::ints::{Blocks, Round, Typed, WRow, size_of_groups, split};
use super::lanes::{Instructions, IntPairs, Lanes, ROWS, RowFloats, Work};
use super::pairs::{Pairs, Part};
use crate::decode::quants;
use crate::threads::{for_each_part, parts};
use backend_api::Format;
use backend_api::format::{GROUP, Row, Visit};
use std::marker::PhantomData;

/// Rows of x from which on this is used. Laying rows beside each other takes as long as the products of 16 of them do, or of 6
/// where vectors are transposed in registers.
pub(super) const MANY: usize = if cfg!(target_arch = "x86_64") { 6 } else { 16 };
/// Pairs of rows of weights that are laid beside each other: the first rows of all, then the second ones.
pub(super) const PANEL: usize = ROWS / 2;
/// Pairs of elements of a group.
const STEPS: usize = GROUP / 2;

/// A group of each row of a panel, pair of elements by pair of elements.
type Group = [IntPairs; STEPS];
/// Result of [`quants::scales`] for a group, of each row.
type Scales = [RowFloats; 3];

/// The f32 values of memory for the weights of a part and the sums of `m` rows with them.
pub(super) fn scratch(m: usize, k: usize) -> usize {
    ROWS * (m + size_of_groups(k)) + k / GROUP * 3
}

/// A row of x in integers.
#[derive(Clone, Copy)]
struct XRow<'a> {
    q: &'a [[i32; STEPS]],
    /// Scale of each group, and the scaled sums of its halves.
    scales: &'a [[f32; 3]],
}

impl<'a> XRow<'a> {
    fn new(memory: &'a [f32]) -> XRow<'a> {
        let (q, scales) = memory.split_at(memory.len() / 19 * 16);
        XRow { q: bytemuck::cast_slice(q), scales: bytemuck::cast_slice(scales) }
    }
}

/// Rounds rows of `k` elements, each of which `row` puts into memory first. `memory` has [`size_of_groups`] of all rows,
/// `rows` that of a row for each part of [`parts_of_x`].
pub(super) fn round_all(
    row: impl Fn(usize, &mut [f32]) + Sync,
    k: usize,
    (instructions, threads): (Instructions, usize),
    memory: &mut [f32],
    rows: &mut [f32],
) {
    let size = size_of_groups(k);
    let each = (memory.len() / size).div_ceil(parts_of_x(memory.len() / size, k, threads));
    for_each_part(memory, each * size, rows, k, |part, memory, x| {
        for (i, memory) in memory.chunks_exact_mut(size).enumerate() {
            row(part * each + i, x);
            let (q, scales) = split(memory);
            instructions.run(Round { x, q, scales });
        }
    });
}

/// The parts that rounding `m` rows is cut into.
pub(super) fn parts_of_x(m: usize, k: usize, threads: usize) -> usize {
    const WORK: usize = 8;
    parts(threads, m, WORK * m * k)
}

/// The products of all rows of x, of `k` elements and as [`round_all`] made them, with the pairs of rows of weights of a
/// part. `memory` has [`scratch`] values.
pub(super) fn products<P: Pairs>(
    instructions: Instructions,
    (x, k): (&[f32], usize),
    (format, w): (Format, &[u8]),
    pairs: &P,
    mut part: Part<'_>,
    memory: &mut [f32],
) {
    let m = x.len() / size_of_groups(k);
    let (sums, memory) = memory.split_at_mut(m * ROWS);
    let sums: &mut [RowFloats] = bytemuck::cast_slice_mut(sums);
    let groups = k / GROUP;
    let (q, memory) = memory.split_at_mut(groups * size_of::<Group>() / 4);
    let (scales, row) = memory.split_at_mut(groups * size_of::<Scales>() / 4);
    let (q, scales): (&mut [Group], &mut [Scales]) = (bytemuck::cast_slice_mut(q), bytemuck::cast_slice_mut(scales));
    let row = &mut bytemuck::cast_slice_mut(row)[..groups];
    let all = part.pairs::<P>();
    for first in all.clone().step_by(PANEL) {
        // The last pair stands for those that there are not.
        let rows: [_; PANEL] = std::array::from_fn(|i| pairs.rows((first + i).min(all.end - 1)));
        let rows = std::array::from_fn(|i| rows[i % PANEL][i / PANEL]);
        let kind = format.visit(Lay { instructions, k, w, rows, q, scales, row });
        instructions.run(Products { x, kind, q, scales, sums });
        for (i, sums) in sums.iter().enumerate() {
            for (lane, pair) in (first..all.end.min(first + PANEL)).enumerate() {
                part.put(pairs, i, pair, [sums[lane], sums[PANEL + lane]]);
            }
        }
    }
}

/// Facts of a format that are needed once rows are laid out.
#[derive(Clone, Copy, Default)]
struct Kind {
    factors: bool,
    minima: bool,
}

/// Takes the rows of a panel apart, and lays them beside each other.
struct Lay<'a> {
    instructions: Instructions,
    k: usize,
    /// The blocks of all rows of weights.
    w: &'a [u8],
    rows: [usize; ROWS],
    q: &'a mut [Group],
    scales: &'a mut [Scales],
    /// Memory for the scales of a row.
    row: &'a mut [[f32; 3]],
}

impl Visit for Lay<'_> {
    type Out = Kind;

    #[inline(always)]
    fn visit<R: Row>(self) -> Kind {
        if quants::are_integers(R::SPEC) {
            self.instructions.run(Typed(self, PhantomData::<R>));
        }
        Kind { factors: quants::has_factors::<R>(), minima: quants::minima::<R>() }
    }
}

impl<R: Row> Work for Typed<R, Lay<'_>> {
    const WIDE: bool = false;

    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let Lay { k, w, rows, q, scales, row, .. } = self.0;
        let row_bytes = k / R::SPEC.block_len * R::SPEC.block_bytes;
        let rows = rows.map(|j| Blocks::<R>(&w[j * row_bytes..][..row_bytes], PhantomData));
        lay(lanes, &rows, q, scales, row);
    }
}

/// The products of all rows of x with a panel. It is compiled once for all formats.
struct Products<'a> {
    x: &'a [f32],
    kind: Kind,
    q: &'a [Group],
    scales: &'a [Scales],
    /// Sums of each row of x.
    sums: &'a mut [RowFloats],
}

impl Work for Products<'_> {
    const WIDE: bool = true;

    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        self.tiles(lanes);
    }
}

impl Products<'_> {
    #[inline(always)]
    fn tiles<L: Lanes>(self, lanes: L) {
        match L::TILE_X {
            8 => self.tiles_of::<L, 8>(lanes),
            4 => self.tiles_of::<L, 4>(lanes),
            _ => self.tiles_of::<L, 2>(lanes),
        }
    }

    #[inline(always)]
    fn tiles_of<L: Lanes, const M: usize>(self, lanes: L) {
        let Products { x, kind, q, scales, sums } = self;
        let (size, last) = (x.len() / sums.len(), sums.len() - 1);
        for (tile, sums) in sums.chunks_mut(M).enumerate() {
            // The last row stands for those that there are not.
            let x = std::array::from_fn(|r| XRow::new(&x[(tile * M + r).min(last) * size..][..size]));
            let found = products_of::<L, M>(lanes, kind, x, q, scales);
            sums.copy_from_slice(&found[..sums.len()]);
        }
    }
}

/// See [`Lay`]. `of` is memory for the scales of a row.
#[inline(always)]
fn lay<R: Row>(
    lanes: impl Lanes,
    rows: &[Blocks<'_, R>; ROWS],
    q: &mut [Group],
    scales: &mut [Scales],
    of: &mut [[f32; 3]],
) {
    for (at, row) in rows.iter().enumerate() {
        quants::scales::<R>(row.0, of);
        for (scales, of) in scales.iter_mut().zip(&*of) {
            scales.iter_mut().zip(of).for_each(|(scales, of)| scales[at] = *of);
        }
    }
    for (g, q) in q.iter_mut().enumerate() {
        let mut ints = [[0; GROUP]; ROWS];
        for (row, ints) in rows.iter().zip(&mut ints) {
            *ints = row.group(lanes, g);
        }
        *q = lanes.beside(&ints);
    }
}

/// The products of some rows of x with the rows of a panel.
#[inline(always)]
fn products_of<L: Lanes, const M: usize>(
    lanes: L,
    kind: Kind,
    x: [XRow<'_>; M],
    q: &[Group],
    scales: &[Scales],
) -> [RowFloats; M] {
    // With factors the sums of a half are as large as sums may be.
    let run = if kind.factors { STEPS / 2 } else { STEPS };
    let (mut out, mut minima) = ([[0f32; ROWS]; M], [[0f32; ROWS]; M]);
    for (g, (q, scales)) in q.iter().zip(scales).enumerate() {
        let [scales, first, last] = scales;
        let ints = x.map(|x| &x.q[g]);
        for begin in (0..STEPS).step_by(run) {
            let (ints, mut sums) = (ints.map(|ints| &ints[begin..][..run]), [lanes.no_rows(); M]);
            for (step, q) in q[begin..][..run].iter().enumerate() {
                for (ints, sums) in ints.iter().zip(&mut sums) {
                    *sums = lanes.add_rows(*sums, ints[step], q);
                }
            }
            for ((x, sums), out) in x.iter().zip(sums).zip(&mut out) {
                lanes.scale_rows(out, sums, x.scales[g][0], scales);
            }
        }
        if kind.minima {
            for (x, minima) in x.iter().zip(&mut minima) {
                let [_, low, high] = x.scales[g];
                for ((minimum, first), last) in minima.iter_mut().zip(first).zip(last) {
                    *minimum += first * low + last * high;
                }
            }
        }
    }
    for (out, minimum) in out.as_flattened_mut().iter_mut().zip(minima.as_flattened()) {
        *out += minimum;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::ints::tests::{All, check, dots, operands};
    use crate::fast::lanes::tests::same_bits;

    fn by_panels(on: Instructions, format: Format, x: &[f32], w: &[u8], n: usize, k: usize) -> Vec<f32> {
        let m = x.len() / k;
        let (mut rounded, mut memory) = (vec![0.0; m * size_of_groups(k)], vec![0.0; scratch(m, k).max(k)]);
        round_all(|i, row| row.copy_from_slice(&x[i * k..][..k]), k, (on, 1), &mut rounded, &mut memory);
        let mut out = vec![f32::NAN; m * n];
        let part = Part { row: 0, pair: 0, cols: n, out: &mut out };
        products(on, (&rounded, k), (format, w), &All, part, &mut memory);
        out
    }

    #[test]
    fn products_are_those_of_decoded_rows() {
        // Neither whole tiles of x nor whole panels.
        check(11, 22, 512, |on, format, x, w| by_panels(on, format, x, w, 22, 512));
    }

    #[test]
    fn panels_give_the_bits_of_few_rows() {
        let (n, k) = (22, 512);
        for format in Format::ALL.iter().copied().filter(|f| quants::are_integers(f.spec())) {
            let (x, w) = operands(format, 3, n, k);
            for on in Instructions::here() {
                let (many, few) = (by_panels(on, format, &x, &w, n, k), dots(on, format, &x, &w, n, k));
                assert_eq!(many, few, "{} on {}", format.name(), on.name());
            }
        }
    }

    #[test]
    fn instruction_sets_give_the_same_bits() {
        let (n, k) = (22, 512);
        for format in Format::ALL.iter().copied().filter(|f| quants::are_integers(f.spec())) {
            let (x, w) = operands(format, 11, n, k);
            same_bits(|on| by_panels(on, format, &x, &w, n, k), format.name());
        }
    }

    #[test]
    fn the_largest_sums_fit() {
        // Elements of -32 with factors of -128 and a scale of 1.
        let mut block = [0u8; 210];
        block[192..208].fill(0x80);
        block[208..].copy_from_slice(&[0x00, 0x3C]);
        for on in Instructions::here() {
            let found = by_panels(on, Format::Q6_K, &[-2.0; 256], &block.repeat(2), 2, 256);
            assert_eq!(found, [-2.0 * 4096.0 * 256.0; 2], "{}", on.name());
        }
        let mut row = [0.0; 256];
        crate::decode::row(Format::Q6_K, &block, &mut row);
        assert_eq!(row, [4096.0; 256]);
    }

    #[test]
    fn formats_with_factors_are_known() {
        struct Known;
        impl Visit for Known {
            type Out = ();
            fn visit<R: Row>(self) {
                if quants::are_integers(R::SPEC) {
                    let factors = quants::factors::<R>(&vec![1; R::SPEC.block_bytes], 0);
                    assert_eq!(quants::has_factors::<R>(), factors.is_some(), "{:?}", R::SPEC);
                }
            }
        }
        Format::ALL.iter().for_each(|format| format.visit(Known));
    }
}
