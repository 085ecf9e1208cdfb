//! Matmul and its fused form.
//!
//! Weights in quantised formats are multiplied [in integers](super::ints), all others row by row as floats.

use super::ints::{self, Dots, Pairs};
use super::lanes::{Lanes, Work, dispatch};
use super::math::{activate, dot};
use crate::args::{Args, Operand};
use backend_api::op::{Activation, Norm, NormKind, UnaryKind};
use backend_api::{Op, Tensor};

/// The f32 values of scratch memory for these operands.
pub(super) fn scratch(x: &Tensor) -> usize {
    let (len, k) = (x.shape.len(), x.shape.cols());
    len + (2 * k).max(ints::scratch(len, k))
}

pub(super) fn matmul(_: &Op, args: &mut Args<'_>) {
    let (a, b) = (args.input(0), args.input(1));
    let ([a0, a1, m, k], [b0, b1, n, _]) = (a.shape().dims4(), b.shape().dims4());
    let (batch0, batch1) = (a0.max(b0), a1.max(b1));
    let (out, scratch) = args.out_and_scratch();
    for at in 0..batch0 * batch1 {
        let (i0, i1) = (at / batch1, at % batch1);
        let a = &a.floats()[(i0 * a0 / batch0 * a1 + i1 * a1 / batch1) * m * k..][..m * k];
        let first = (i0 * b0 / batch0 * b1 + i1 * b1 / batch1) * n;
        let out = &mut out[at * m * n..][..m * n];
        products(a, &b, Batch { first, n, out }, scratch);
    }
}

/// One matrix of a batch.
struct Batch<'a> {
    /// The first row of its weights.
    first: usize,
    n: usize,
    out: &'a mut [f32],
}

impl Pairs for Batch<'_> {
    fn count(&self) -> usize {
        self.n.div_ceil(2)
    }

    #[inline(always)]
    fn rows(&self, p: usize) -> [usize; 2] {
        neighbours(p, self.n).map(|j| self.first + j)
    }

    #[inline(always)]
    fn take(&mut self, i: usize, p: usize, sums: [f32; 2]) {
        for (j, sum) in (2 * p..self.n).zip(sums) {
            self.out[i * self.n + j] = sum;
        }
    }
}

/// The rows of a pair of neighbours; the last row of an odd number has none but itself.
#[inline(always)]
fn neighbours(p: usize, n: usize) -> [usize; 2] {
    [2 * p, (2 * p + 1).min(n - 1)]
}

pub(super) fn linear(op: &Op, args: &mut Args<'_>) {
    let Op::Linear(op) = op else { return };
    let count = args.inputs.iter().flatten().count();
    let mut list = [args.input(0); crate::args::MAX_INPUTS];
    for (index, slot) in list[..count].iter_mut().enumerate() {
        *slot = args.input(index);
    }
    let Some(o) = op.operands(&list[..count]) else { return };
    let (k, n) = (o.w.shape().cols(), o.w.shape().dim(0));
    let bias = o.bias.map_or(&[][..], Operand::floats);
    let residual = o.residual.map_or(&[][..], Operand::floats);
    let (out, scratch) = args.out_and_scratch();
    let (normed, scratch) = scratch.split_at_mut(o.x.shape().len());
    let x = match &op.norm {
        Some(norm) => {
            normalize(norm, o.x.floats(), o.norm, k, normed);
            &*normed
        }
        None => o.x.floats(),
    };
    let tail = Tail { bias, residual, n, cols: op.out_cols(n), out };
    match op.activation {
        Activation::None => products(x, o.w, Each(tail, |x| x), scratch),
        Activation::Unary(kind) => products(x, o.w, Each(tail, |x| activate(kind, x)), scratch),
        Activation::Glu(kind) => products(x, o.w, Gated(tail, kind.activation()), scratch),
    }
}

/// What follows the dot products of a linear map.
struct Tail<'a> {
    bias: &'a [f32],
    residual: &'a [f32],
    /// Rows of weights.
    n: usize,
    /// Columns of the result.
    cols: usize,
    out: &'a mut [f32],
}

impl Tail<'_> {
    #[inline(always)]
    fn biased(&self, j: usize, sum: f32) -> f32 {
        sum + self.bias.get(j).copied().unwrap_or(0.0)
    }

    #[inline(always)]
    fn put(&mut self, i: usize, j: usize, y: f32) {
        let at = i * self.cols + j;
        self.out[at] = y + self.residual.get(at).copied().unwrap_or(0.0);
    }
}

/// A function of each product.
struct Each<'a, F>(Tail<'a>, F);

impl<F: Fn(f32) -> f32> Pairs for Each<'_, F> {
    fn count(&self) -> usize {
        self.0.n.div_ceil(2)
    }

    #[inline(always)]
    fn rows(&self, p: usize) -> [usize; 2] {
        neighbours(p, self.0.n)
    }

    #[inline(always)]
    fn take(&mut self, i: usize, p: usize, sums: [f32; 2]) {
        for (j, sum) in (2 * p..self.0.n).zip(sums) {
            let y = (self.1)(self.0.biased(j, sum));
            self.0.put(i, j, y);
        }
    }
}

/// A gated linear unit: the row of a gate is paired with that of its up part.
struct Gated<'a>(Tail<'a>, UnaryKind);

impl Pairs for Gated<'_> {
    fn count(&self) -> usize {
        self.0.cols
    }

    #[inline(always)]
    fn rows(&self, p: usize) -> [usize; 2] {
        [p, p + self.0.cols]
    }

    #[inline(always)]
    fn take(&mut self, i: usize, p: usize, [gate, up]: [f32; 2]) {
        let y = activate(self.1, self.0.biased(p, gate)) * self.0.biased(p + self.0.cols, up);
        self.0.put(i, p, y);
    }
}

/// The dot products of the rows of x with pairs of rows of w.
fn products<P: Pairs>(x: &[f32], w: &Operand<'_>, pairs: P, scratch: &mut [f32]) {
    let k = w.shape().cols();
    if let Some((format, bytes)) = w.packed().filter(|(format, _)| format.spec().block_len > 1) {
        return Dots { x, k, w: bytes, pairs, memory: scratch }.run(format);
    }
    let (first, second) = scratch.split_at_mut(k);
    dispatch(FloatRows { x, w, pairs, first, second });
}

/// Dot products with rows of weights that are floats, or become floats one after the other.
struct FloatRows<'a, P> {
    x: &'a [f32],
    w: &'a Operand<'a>,
    pairs: P,
    /// Memory for a row of weights.
    first: &'a mut [f32],
    /// Memory for another.
    second: &'a mut [f32],
}

impl<P: Pairs> Work for FloatRows<'_, P> {
    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let FloatRows { x, w, mut pairs, first, second } = self;
        for p in 0..pairs.count() {
            let [a, b] = pairs.rows(p);
            let (a, b) = (w.row(a, first), w.row(b, second));
            for (i, x) in x.chunks_exact(w.shape().cols()).enumerate() {
                pairs.take(i, p, [dot(lanes, x, a), dot(lanes, x, b)]);
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
            NormKind::Rms => 0.0,
        };
        let variance = x.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / k as f64;
        let (mean, scale) = (mean as f32, (1.0 / (variance + f64::from(norm.eps)).sqrt()) as f32);
        for (i, out) in out.iter_mut().enumerate() {
            *out = (x[i] - mean) * scale * gamma[i] + beta.get(i).copied().unwrap_or(0.0);
        }
    }
}
