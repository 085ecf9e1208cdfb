//! Matmul and its fused form.

use super::{dot, vectorized};
use crate::args::{Args, Operand};
use crate::plain::unary;
use backend_api::Op;
use backend_api::op::{Activation, Linear, Norm, NormKind, UnaryKind};

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
        vectorized(
            #[inline(always)]
            || {
                for j in 0..n {
                    let w = b.row(first + j, scratch);
                    for (i, x) in a.chunks_exact(k).enumerate() {
                        out[i * n + j] = dot(x, w);
                    }
                }
            },
        );
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
    let tail = Epilogue { op, bias, residual, n, cols: op.out_cols(n) };
    vectorized(
        #[inline(always)]
        || tail.run(x, o.w, k, out, scratch),
    );
}

/// What follows the dot products.
struct Epilogue<'a> {
    op: &'a Linear,
    bias: &'a [f32],
    residual: &'a [f32],
    n: usize,
    cols: usize,
}

impl Epilogue<'_> {
    #[inline(always)]
    fn run(&self, x: &[f32], w: &Operand<'_>, k: usize, out: &mut [f32], scratch: &mut [f32]) {
        let (first, second) = scratch.split_at_mut(k);
        for j in 0..self.cols {
            let w_row = w.row(j, first);
            let bias = self.bias.get(j).copied().unwrap_or(0.0);
            let up = match self.op.activation {
                Activation::Glu(kind) => {
                    let j = j + self.n / 2;
                    Some((kind, w.row(j, second), self.bias.get(j).copied().unwrap_or(0.0)))
                }
                _ => None,
            };
            for (i, x) in x.chunks_exact(k).enumerate() {
                let sum = dot(x, w_row) + bias;
                let y = match (self.op.activation, up) {
                    (Activation::Unary(kind), _) => activate(kind, sum),
                    (Activation::Glu(_), Some((kind, row, bias))) => {
                        activate(kind.activation(), sum) * (dot(x, row) + bias)
                    }
                    _ => sum,
                };
                let at = i * self.cols + j;
                out[at] = y + self.residual.get(at).copied().unwrap_or(0.0);
            }
        }
    }
}

fn activate(kind: UnaryKind, x: f32) -> f32 {
    unary(kind, f64::from(x)) as f32
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
