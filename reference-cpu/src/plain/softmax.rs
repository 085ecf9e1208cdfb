//! Softmax with scale, soft cap and mask.

use crate::args::Args;
use backend_api::Op;
use backend_api::op::HIDDEN;

pub(super) fn softmax(op: &Op, args: &mut Args<'_>) {
    let Op::Softmax(softmax) = op else { return };
    let x = args.input(0);
    let mask = if softmax.masking.explicit { args.input(1).floats() } else { &[] };
    let sinks = softmax.sinks_at().map_or(&[][..], |at| args.input(at).floats());
    let [_, heads, m, n] = x.shape().dims4();
    let step = args.step;
    for (row, (x, out)) in x.floats().chunks_exact(n).zip(args.out().chunks_exact_mut(n)).enumerate() {
        let i = row % m;
        let (start, end) = softmax.masking.visible(i, m, n, &step);
        let score =
            |j: usize| masked(capped(f64::from(x[j]) * f64::from(softmax.scale), softmax.softcap), mask.get(i * n + j));
        let sink = sinks.get(row / m % heads).map_or(f64::NEG_INFINITY, |sink| f64::from(*sink));
        let seen = (start..end).any(|j| score(j) != f64::NEG_INFINITY);
        let max = (start..end).map(score).fold(sink, f64::max);
        let sum = (sink - max).exp() + (start..end).map(|j| (score(j) - max).exp()).sum::<f64>();
        for (j, out) in out.iter_mut().enumerate() {
            *out = if seen && (start..end).contains(&j) { ((score(j) - max).exp() / sum) as f32 } else { 0.0 };
        }
    }
}

/// A score with what the mask adds, if there is one; minus infinity if that hides the key.
pub(super) fn masked(score: f64, mask: Option<&f32>) -> f64 {
    let sum = score + mask.map_or(0.0, |mask| f64::from(*mask));
    if mask.is_some() && sum <= f64::from(HIDDEN) { f64::NEG_INFINITY } else { sum }
}

/// A score with its soft cap; a cap of 0 is none.
pub(super) fn capped(score: f64, softcap: f32) -> f64 {
    let cap = f64::from(softcap);
    if cap > 0.0 { cap * (score / cap).tanh() } else { score }
}
