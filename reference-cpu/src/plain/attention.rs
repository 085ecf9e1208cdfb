//! Attention by its definition.

use super::softmax::{capped, masked};
use crate::args::Args;
use backend_api::Op;

pub(super) fn attention(op: &Op, args: &mut Args<'_>) {
    let Op::Attention(a) = op else { return };
    let (q, k, v) = (args.input(0), args.input(1), args.input(2));
    let mask = if a.masking.explicit { args.input(3).floats() } else { &[] };
    let mask_rows = a.mask_rows(&[q, k, v, args.input(3)].map(|operand| operand.tensor));
    let sinks = a.sinks_at().map_or(&[][..], |at| args.input(at).floats());
    let (m, n) = (q.shape().dim(0), k.shape().dim(0));
    let (d, dv) = (k.shape().cols() / a.n_head_kv, v.shape().cols() / a.n_head_kv);
    let (q, k, v) = (q.floats(), k.floats(), v.floats());
    let step = args.step;
    let out = args.out();
    let mut weights = Vec::with_capacity(n);
    for i in 0..m {
        let (start, end) = a.masking.visible(i, m, n, &step);
        let at = a.masking.place(i, m, n, &step);
        for h in 0..a.n_head {
            let g = h * a.n_head_kv / a.n_head;
            let q = &q[(i * a.n_head + h) * d..][..d];
            let slope = a.slope(h);
            let score = |j: usize| {
                let k = &k[(j * a.n_head_kv + g) * d..][..d];
                let dot: f64 = q.iter().zip(k).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
                let bias = slope * at.abs_diff(j) as f64;
                masked(capped(dot * f64::from(a.scale), a.softcap) - bias, mask.get((h * mask_rows + i) * n + j))
            };
            weights.clear();
            weights.extend((start..end).map(score));
            let sink = sinks.get(h).map_or(f64::NEG_INFINITY, |sink| f64::from(*sink));
            let seen = weights.iter().any(|score| *score != f64::NEG_INFINITY);
            let max = weights.iter().copied().fold(sink, f64::max);
            weights.iter_mut().for_each(|weight| *weight = (*weight - max).exp());
            let sum = (sink - max).exp() + weights.iter().sum::<f64>();
            for (c, out) in out[(i * a.n_head + h) * dv..][..dv].iter_mut().enumerate() {
                let value = |j: usize| f64::from(v[(j * a.n_head_kv + g) * dv + c]);
                let mixed: f64 = (start..end).zip(&weights).map(|(j, weight)| weight * value(j)).sum();
                *out = if seen { (mixed / sum) as f32 } else { 0.0 };
            }
        }
    }
}
