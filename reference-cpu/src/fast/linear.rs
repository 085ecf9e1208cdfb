//! Matmul and its fused form.
//!
//! Weights in quantised formats are multiplied [in integers](super::ints), all others row by row as floats.

use super::ints::{Dots, Rounded};
use super::math::{activate, dot};
use super::{ints, vectorized};
use crate::args::{Args, Operand};
use backend_api::op::{Activation, Norm, NormKind};
use backend_api::{Op, Tensor};

/// The f32 values of scratch memory for these operands.
pub(super) fn scratch(x: &Tensor) -> usize {
    let (len, k) = (x.shape.len(), x.shape.cols());
    len + Rounded::size(len) + (2 * k).max(ints::unpacked_size(k))
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
        let pair = |p: usize| [first + 2 * p, first + (2 * p + 1).min(n - 1)];
        let each = |i: usize, p: usize, sums: [f32; 2]| {
            let out = &mut out[i * n..][..n][2 * p..];
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum);
        };
        products(a, &b, n.div_ceil(2), pair, each, scratch);
    }
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
    let cols = op.out_cols(n);
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
    let biased = |j: usize, sum: f32| sum + bias.get(j).copied().unwrap_or(0.0);
    let mut put = |i: usize, j: usize, y: f32| {
        let at = i * cols + j;
        out[at] = y + residual.get(at).copied().unwrap_or(0.0);
    };
    // A gated unit needs the row of the gate and that of the up part together; others take neighbours.
    if let Activation::Glu(kind) = op.activation {
        let each = |i: usize, p: usize, [gate, up]: [f32; 2]| {
            put(i, p, activate(kind.activation(), biased(p, gate)) * biased(p + cols, up));
        };
        return products(x, o.w, cols, |p| [p, p + cols], each, scratch);
    }
    let act = |x: f32| if let Activation::Unary(kind) = op.activation { activate(kind, x) } else { x };
    let each = |i: usize, p: usize, sums: [f32; 2]| {
        for (j, sum) in (2 * p..n).zip(sums) {
            put(i, j, act(biased(j, sum)));
        }
    };
    products(x, o.w, n.div_ceil(2), |p| [2 * p, (2 * p + 1).min(n - 1)], each, scratch);
}

/// The dot products of the rows of x with pairs of rows of w.
fn products(
    x: &[f32],
    w: &Operand<'_>,
    pairs: usize,
    pair: impl Fn(usize) -> [usize; 2],
    mut each: impl FnMut(usize, usize, [f32; 2]),
    scratch: &mut [f32],
) {
    let k = w.shape().cols();
    if let Some((format, bytes)) = w.packed().filter(|(format, _)| format.spec().block_len > 1) {
        let (rounded, memory) = scratch.split_at_mut(Rounded::size(x.len()));
        return Dots { x: Rounded::new(x, k, rounded), w: bytes, pairs, pair, each, memory }.run(format);
    }
    vectorized(
        #[inline(always)]
        || {
            let (first, second) = scratch.split_at_mut(k);
            for p in 0..pairs {
                let [a, b] = pair(p);
                let (a, b) = (w.row(a, first), w.row(b, second));
                for (i, x) in x.chunks_exact(k).enumerate() {
                    each(i, p, [dot(x, a), dot(x, b)]);
                }
            }
        },
    );
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
