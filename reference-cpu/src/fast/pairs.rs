//! How products are cut into parts, and what becomes of their sums.
//!
//! A part is a rectangle of the result: some rows of x times some pairs of rows of weights. It depends on no other, and
//! every value in it is computed in the same way whatever the cut, so any number of threads gives the same bits.

use super::ints::TILE_X;
use super::panels::PANEL;
use crate::threads::{for_each_part, parts};

/// Consumer of the dot products of x with pairs of rows of weights. Methods are to be inlined into kernels.
pub(super) trait Pairs: Sync {
    /// Results of a pair, which are neighbours in a row of the result.
    const RESULTS: usize;

    /// The rows of a pair.
    fn rows(&self, pair: usize) -> [usize; 2];

    /// Calls `put` with the column and the value of each result of row `i` of x and a pair.
    fn results(&self, i: usize, pair: usize, sums: [f32; 2], put: impl FnMut(usize, f32));
}

/// A rectangle of the result.
pub(super) struct Part<'a> {
    /// Its first row.
    pub row: usize,
    /// Its first pair.
    pub pair: usize,
    /// Its columns.
    pub cols: usize,
    /// Its values, row by row.
    pub out: &'a mut [f32],
}

impl Part<'_> {
    /// Its rows.
    pub fn rows(&self) -> usize {
        self.out.len() / self.cols
    }

    /// Its pairs, counted from its first one.
    #[inline(always)]
    pub fn pairs<P: Pairs>(&self) -> std::ops::Range<usize> {
        self.pair..self.pair + self.cols.div_ceil(P::RESULTS)
    }

    /// Takes the products of its row `i` with a pair.
    #[inline(always)]
    pub fn put<P: Pairs>(&mut self, pairs: &P, i: usize, pair: usize, sums: [f32; 2]) {
        let (start, first) = (i * self.cols, self.pair * P::RESULTS);
        pairs.results(self.row + i, pair, sums, |j, result| self.out[start + j - first] = result);
    }
}

/// How a product is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Into so many rows of x each, so that weights are taken apart once for many rows.
    Rows(usize),
    /// Into so many pairs of rows of weights each, with all of these rows of x.
    Pairs { rows: usize, pairs: usize },
}

/// Rows of x from which on there are tiles enough to go around, each part taking all weights apart for several of them.
const MANY_ROWS: usize = 8 * TILE_X;

impl Cut {
    /// The cut of a product of `m` rows of x and `n` rows of weights, of `k` elements each, and its number of parts.
    pub fn new([m, n, k]: [usize; 3], threads: usize) -> (Cut, usize) {
        let tiles = m.div_ceil(TILE_X);
        let (by_rows, by_pairs) = (parts(threads, tiles, m * n * k), parts(threads, n.div_ceil(2), n * k));
        if m >= MANY_ROWS || by_pairs == 1 {
            let rows = tiles.div_ceil(by_rows) * TILE_X;
            return (Cut::Rows(rows.min(m)), m.div_ceil(rows));
        }
        let pairs = n.div_ceil(2).div_ceil(by_pairs);
        (Cut::Pairs { rows: m, pairs }, n.div_ceil(2).div_ceil(pairs))
    }

    /// The cut for products by [`panels`](super::panels), and its number of parts: each takes weights apart for all rows.
    pub fn panels([m, n, k]: [usize; 3], threads: usize) -> (Cut, usize) {
        let panels = n.div_ceil(2).div_ceil(PANEL);
        let pairs = panels.div_ceil(parts(threads, panels, m * n * k)) * PANEL;
        (Cut::Pairs { rows: m, pairs }, n.div_ceil(2).div_ceil(pairs))
    }

    /// Rows of x of a part, at most.
    pub fn rows(self) -> usize {
        match self {
            Cut::Rows(rows) | Cut::Pairs { rows, .. } => rows,
        }
    }

    /// The f32 values of memory for the results of all parts before they are put where they belong, with `cols` columns.
    pub fn staging(self, cols: usize) -> usize {
        match self {
            Cut::Rows(_) | Cut::Pairs { rows: 1, .. } => 0,
            Cut::Pairs { rows, .. } => rows * cols,
        }
    }

    /// Calls `work` for each part of a result with `cols` columns, with `scratch_len` values of scratch memory of its own.
    /// At the beginning of `scratch` there is that of [`Self::staging`].
    pub fn for_each<P: Pairs>(
        self,
        cols: usize,
        out: &mut [f32],
        scratch: &mut [f32],
        scratch_len: usize,
        work: impl Fn(Part<'_>, &mut [f32]) + Sync,
    ) {
        match self {
            Cut::Rows(rows) => for_each_part(out, rows * cols, scratch, scratch_len, |index, out, scratch| {
                work(Part { row: index * rows, pair: 0, cols, out }, scratch);
            }),
            Cut::Pairs { pairs, .. } => {
                let (rows, width) = (out.len() / cols, pairs * P::RESULTS);
                let part = |index, out: &mut [f32], scratch: &mut [f32]| {
                    work(Part { row: 0, pair: index * pairs, cols: out.len() / rows, out }, scratch);
                };
                if rows == 1 {
                    return for_each_part(out, width, scratch, scratch_len, part);
                }
                // The columns of a part do not lie together in several rows.
                let (staged, scratch) = scratch.split_at_mut(out.len());
                for_each_part(staged, rows * width, scratch, scratch_len, part);
                for (index, part) in staged.chunks(rows * width).enumerate() {
                    for (row, part) in part.chunks_exact(part.len() / rows).enumerate() {
                        out[row * cols + index * width..][..part.len()].copy_from_slice(part);
                    }
                }
            }
        }
    }
}
