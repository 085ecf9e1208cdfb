//! Matmul, and what stands before and after it.
//!
//! Weights that are [integers](quants::are_integers) are multiplied [as such](super::ints), all others row by row as floats.

use super::Needs;
use super::ints::{self, TILE_X, size_of_groups};
use super::lanes::{Instructions, Lanes, Work};
use super::math::dot;
use super::pairs::{Cut, Pairs, Part};
use super::panels;
use crate::args::{Args, Operand, WHOLE};
use crate::decode::quants;
use crate::plain::experts::Ids;
use crate::plain::norm::factor;
use backend_api::form::Activation;
use backend_api::op::{MatMulId, Norm, NormKind, UnaryKind};
use backend_api::{DType, Form, Format, Op, Tensor};

/// Rows of a unit, where there are several: weights are taken apart for each anew.
const UNIT_ROWS: usize = 2 * TILE_X;
/// Pairs of rows of weights of a unit, where there is one row: as many as are nothing beside the norm of the row.
const UNIT_PAIRS: usize = 256;

/// Returns the memory that the product of `x` and the rows of `w` needs.
pub(super) fn needs(x: &Tensor, w: &Tensor, threads: usize) -> Needs {
    let ([.., m, k], [.., n, _]) = (x.shape.dims4(), w.shape.dims4());
    let (cut, parts) = match is_by_panels(m, w) {
        true => Cut::panels([m, n, k], threads),
        false => Cut::new([m, n, k], threads),
    };
    let units = if m == 1 { n.div_ceil(2).div_ceil(UNIT_PAIRS) } else { m.div_ceil(UNIT_ROWS) };
    let scratch = match is_by_panels(m, w) {
        true => {
            let products = cut.staging(n) + parts * panels::scratch(m, k);
            m * size_of_groups(k) + products.max(panels::parts_of_x(m, k, threads) * k)
        }
        false => cut.staging(n) + parts * scratch(cut, k),
    };
    Needs { scratch, parts, units }
}

/// Whether `m` rows of x are multiplied by [`panels`] of these weights.
fn is_by_panels(m: usize, w: &Tensor) -> bool {
    let DType::Packed(format) = w.dtype else { return false };
    m >= panels::MANY && quants::are_integers(format.spec())
}

/// The f32 values of scratch memory for a part: normed rows, and what the dot products need.
fn scratch(cut: Cut, k: usize) -> usize {
    cut.rows() * k + (2 * k).max(ints::scratch(cut.rows(), k))
}

pub(super) fn matmul(_: &Form, args: &mut Args<'_>) {
    let (a, b) = (args.input(0), args.input(1));
    let ([a0, a1, m, k], [b0, b1, n, _]) = (a.shape().dims4(), b.shape().dims4());
    let (batch0, batch1) = (a0.max(b0), a1.max(b1));
    for at in 0..batch0 * batch1 {
        let (i0, i1) = (at / batch1, at % batch1);
        let x = &a.floats()[(i0 * a0 / batch0 * a1 + i1 * a1 / batch1) * m * k..][..m * k];
        let first = (i0 * b0 / batch0 * b1 + i1 * b1 / batch1) * n;
        let product = Product { x, norm: None, w: &b, n, cols: n, first: at * m * n };
        product.run(args, &Batch { first, n });
    }
}

/// Returns the memory that the product of one row and the matrix of one expert needs.
pub(super) fn needs_id(op: &MatMulId, w: &Tensor, choices: usize, threads: usize) -> Needs {
    let k = w.shape.cols();
    let (cut, parts) = Cut::new([1, op.rows, k], threads);
    Needs { scratch: parts * scratch(cut, k), parts, units: choices }
}

pub(super) fn matmul_id(form: &Form, args: &mut Args<'_>) {
    let Form::Op(Op::MatMulId(op)) = form else { return };
    let (x, w) = (args.input(0), args.input(1));
    let (n, k, all) = (op.rows, x.shape().cols(), args.shape.rows());
    let (choices, ids) = (all / x.shape().rows(), Ids::new(op, args));
    let share = args.share(1, all);
    // Of each of them all.
    args.units = WHOLE;
    for i in share {
        let first = op.first + ids.of(i) * op.stride;
        let x = &x.floats()[i / choices * k..][..k];
        let product = Product { x, norm: None, w: &w, n, cols: n, first: i * n };
        product.run(args, &Batch { first, n });
    }
}

/// One matrix of a batch.
struct Batch {
    /// The first row of its weights.
    first: usize,
    n: usize,
}

impl Pairs for Batch {
    const RESULTS: usize = 2;

    #[inline(always)]
    fn rows(&self, p: usize) -> [usize; 2] {
        neighbours(p, self.n).map(|j| self.first + j)
    }

    #[inline(always)]
    fn results(&self, _: usize, p: usize, sums: [f32; 2], mut put: impl FnMut(usize, f32)) {
        for (j, sum) in (2 * p..self.n).zip(sums) {
            put(j, sum);
        }
    }
}

/// The rows of a pair of neighbours; the last row of an odd number has none but itself.
#[inline(always)]
fn neighbours(p: usize, n: usize) -> [usize; 2] {
    [2 * p, (2 * p + 1).min(n - 1)]
}

pub(super) fn linear(form: &Form, args: &mut Args<'_>) {
    let Form::Linear(op) = form else { return };
    let count = args.inputs.iter().flatten().count();
    let mut list = [args.input(0); crate::args::MAX_INPUTS];
    for (index, slot) in list[..count].iter_mut().enumerate() {
        *slot = args.input(index);
    }
    let Some(o) = op.operands(&list[..count]) else { return };
    let n = o.w.shape().dim(0);
    let cols = op.out_cols(n);
    let norm = op.norm.as_ref().map(|norm| (norm, o.norm));
    let product = Product { x: o.x.floats(), norm, w: o.w, n, cols, first: 0 };
    let bias = o.bias.map_or(&[][..], Operand::floats);
    let residual = o.residual.map_or(&[][..], Operand::floats);
    let tail = Tail { bias, residual, n, cols };
    match op.activation {
        Activation::None => product.run(args, &Each(tail, |x| x)),
        Activation::Unary(kind) => product.run(args, &Each(tail, |x| kind.of(x))),
        Activation::Glu(kind) => product.run(args, &Gated(tail, kind.activation())),
    }
}

/// Operations after the dot products of a linear map.
struct Tail<'a> {
    bias: &'a [f32],
    residual: &'a [f32],
    /// Rows of weights.
    n: usize,
    /// Columns of the result.
    cols: usize,
}

impl Tail<'_> {
    #[inline(always)]
    fn biased(&self, j: usize, sum: f32) -> f32 {
        sum + self.bias.get(j).copied().unwrap_or(0.0)
    }

    #[inline(always)]
    fn end(&self, i: usize, j: usize, y: f32) -> f32 {
        y + self.residual.get(i * self.cols + j).copied().unwrap_or(0.0)
    }
}

/// A function of each product.
struct Each<'a, F>(Tail<'a>, F);

impl<F: Fn(f32) -> f32 + Sync> Pairs for Each<'_, F> {
    const RESULTS: usize = 2;

    #[inline(always)]
    fn rows(&self, p: usize) -> [usize; 2] {
        neighbours(p, self.0.n)
    }

    #[inline(always)]
    fn results(&self, i: usize, p: usize, sums: [f32; 2], mut put: impl FnMut(usize, f32)) {
        for (j, sum) in (2 * p..self.0.n).zip(sums) {
            put(j, self.0.end(i, j, (self.1)(self.0.biased(j, sum))));
        }
    }
}

/// A gated linear unit: the row of a gate is paired with that of its up part.
struct Gated<'a>(Tail<'a>, UnaryKind);

impl Pairs for Gated<'_> {
    const RESULTS: usize = 1;

    #[inline(always)]
    fn rows(&self, p: usize) -> [usize; 2] {
        [p, p + self.0.cols]
    }

    #[inline(always)]
    fn results(&self, i: usize, p: usize, [gate, up]: [f32; 2], mut put: impl FnMut(usize, f32)) {
        let y = self.1.of(self.0.biased(p, gate)) * self.0.biased(p + self.0.cols, up);
        put(p, self.0.end(i, p, y));
    }
}

/// The dot products of rows of x with rows of weights.
struct Product<'a> {
    x: &'a [f32],
    /// A norm of x before, with its parameters.
    norm: Option<(&'a Norm, &'a [Operand<'a>])>,
    w: &'a Operand<'a>,
    /// Rows of weights.
    n: usize,
    /// Columns of the result.
    cols: usize,
    /// Where the result begins.
    first: usize,
}

impl Product<'_> {
    fn run<P: Pairs>(&self, args: &mut Args<'_>, pairs: &P) {
        let k = self.w.shape().cols();
        let m = self.x.len() / k;
        if let Some((format, w)) = self.w.packed().filter(|_| is_by_panels(m, self.w.tensor)) {
            return self.by_panels(args, pairs, format, w);
        }
        let (instructions, (cut, _)) = (args.instructions, Cut::new([m, self.n, k], args.threads));
        let all = self.cols.div_ceil(P::RESULTS);
        let (rows, share) = match m {
            1 => (0..1, args.share(UNIT_PAIRS, all)),
            _ => (args.share(UNIT_ROWS, m), 0..all),
        };
        let first = share.start * P::RESULTS;
        let cols = (share.end * P::RESULTS).min(self.cols) - first;
        let (out, memory) = args.out_and_scratch();
        let out = &mut out[self.first + rows.start * self.cols + first..][..rows.len() * cols];
        let work = |part: Part<'_>, memory: &mut [f32]| {
            let part = Part { row: rows.start + part.row, pair: share.start + part.pair, ..part };
            self.part(instructions, k, pairs, part, memory);
        };
        cut.for_each::<P>(cols, out, memory, scratch(cut, k), work);
    }

    /// All rows of x are normed and rounded before any is multiplied.
    fn by_panels<P: Pairs>(&self, args: &mut Args<'_>, pairs: &P, format: Format, w: &[u8]) {
        let (k, instructions, threads) = (self.w.shape().cols(), args.instructions, args.threads);
        let rows = args.share(UNIT_ROWS, self.x.len() / k);
        let (cut, _) = Cut::panels([rows.len(), self.n, k], threads);
        let (out, memory) = args.out_and_scratch();
        let (rounded, memory) = memory.split_at_mut(rows.len() * size_of_groups(k));
        let row = |i: usize, out: &mut [f32]| {
            let x = &self.x[(rows.start + i) * k..][..k];
            match self.norm {
                Some((norm, params)) => normalize(norm, x, params, k, out),
                None => out.copy_from_slice(x),
            }
        };
        panels::round_all(row, k, (instructions, threads), rounded, memory);
        let out = &mut out[self.first + rows.start * self.cols..][..rows.len() * self.cols];
        cut.for_each::<P>(self.cols, out, memory, panels::scratch(rows.len(), k), |part, memory| {
            let part = Part { row: rows.start + part.row, ..part };
            panels::products(instructions, (rounded, k), (format, w), pairs, part, memory);
        });
    }

    /// One part. Rows that several parts need are normed and rounded by each: that is less than having to wait for it.
    fn part<P: Pairs>(&self, instructions: Instructions, k: usize, pairs: &P, part: Part<'_>, memory: &mut [f32]) {
        let x = &self.x[part.row * k..][..part.rows() * k];
        let (normed, memory) = memory.split_at_mut(x.len());
        let x = match self.norm {
            Some((norm, params)) => {
                normalize(norm, x, params, k, normed);
                &*normed
            }
            None => x,
        };
        if let Some((format, w)) = self.w.packed().filter(|(format, _)| quants::are_integers(format.spec())) {
            return ints::dots(instructions, (x, k), (format, w), pairs, part, memory);
        }
        let (first, second) = memory.split_at_mut(k);
        instructions.run(FloatRows { x, w: self.w, pairs, part, first, second });
    }
}

/// Dot products with rows of weights that are floats, or become floats one after the other.
struct FloatRows<'a, P> {
    x: &'a [f32],
    w: &'a Operand<'a>,
    pairs: &'a P,
    part: Part<'a>,
    /// Memory for a row of weights.
    first: &'a mut [f32],
    /// Memory for another.
    second: &'a mut [f32],
}

impl<P: Pairs> Work for FloatRows<'_, P> {
    const WIDE: bool = true;

    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let FloatRows { x, w, pairs, mut part, first, second } = self;
        for p in part.pairs::<P>() {
            let [a, b] = pairs.rows(p);
            let (a, b) = (w.row(a, first), w.row(b, second));
            for (i, x) in x.chunks_exact(w.shape().cols()).enumerate() {
                part.put(pairs, i, p, [dot(lanes, x, a), dot(lanes, x, b)]);
            }
        }
    }
}

/// Normalizes the rows of x. It is a small part of a token, so it sums in f64 like the definition.
fn normalize(norm: &Norm, x: &[f32], params: &[Operand<'_>], k: usize, out: &mut [f32]) {
    let gamma = params.first().map_or(&[][..], Operand::floats);
    let beta = params.get(1).map_or(&[][..], Operand::floats);
    for (x, out) in x.chunks_exact(k).zip(out.chunks_exact_mut(k)) {
        let mean = match norm.kind {
            NormKind::Layer => x.iter().map(|v| f64::from(*v)).sum::<f64>() / k as f64,
            NormKind::Rms | NormKind::L2 => 0.0,
        };
        let squares = x.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum();
        let (mean, scale) = (mean as f32, factor(norm, squares, k) as f32);
        for (i, out) in out.iter_mut().enumerate() {
            *out = (x[i] - mean) * scale * gamma[i] + beta.get(i).copied().unwrap_or(0.0);
        }
    }
}
