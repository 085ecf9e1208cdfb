//! Mixtures of experts: routing, products by id, sums of what experts made.

use super::select::{is_finite, next_largest};
use crate::args::Args;
use backend_api::Op;
use backend_api::op::{Gate, Route};

pub(super) fn route(op: &Op, args: &mut Args<'_>) {
    let Op::Route(op) = op else { return };
    let logits = args.input(0);
    let bias = if op.biased { args.input(1).floats() } else { &[] };
    let [ids, weights, _] = &mut args.outputs;
    let (ids, weights): (&mut [i32], &mut [f32]) = (bytemuck::cast_slice_mut(ids), bytemuck::cast_slice_mut(weights));
    let rows = logits.floats().chunks_exact(logits.shape().cols());
    for ((ids, weights), row) in ids.chunks_exact_mut(op.k).zip(weights.chunks_exact_mut(op.k)).zip(rows) {
        route_row(op, row, bias, ids, weights);
    }
}

/// The experts of one token, and their weights.
fn route_row(op: &Route, logits: &[f32], bias: &[f32], ids: &mut [i32], weights: &mut [f32]) {
    if !is_finite(logits) {
        ids.fill(-1);
        weights.fill(0.0);
        return;
    }
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let power = |logit: f32| (f64::from(logit) - f64::from(largest)).exp();
    let total: f64 = logits.iter().map(|logit| power(*logit)).sum();
    let score = |i: usize| match op.gate {
        Gate::Softmax => power(logits[i]) / total,
        Gate::SoftmaxOfChosen => f64::from(logits[i]),
        Gate::Sigmoid => 1.0 / (1.0 + (-f64::from(logits[i])).exp()),
    };
    // Without a bias, the order of the scores is that of the logits.
    let key = |i: usize| if op.biased { score(i) + f64::from(bias[i]) } else { f64::from(logits[i]) };
    let mut pick = None;
    for id in &mut *ids {
        let i = next_largest(logits.len(), key, pick);
        *id = i as i32;
        pick = Some((key(i), i));
    }
    let chosen = |id: i32| match op.gate {
        Gate::SoftmaxOfChosen => power(logits[id as usize]),
        Gate::Softmax | Gate::Sigmoid => score(id as usize),
    };
    let sum: f64 = ids.iter().map(|id| chosen(*id)).sum();
    let by = match op.gate {
        Gate::SoftmaxOfChosen => sum,
        Gate::Softmax | Gate::Sigmoid if op.normalised => sum.max(f64::from(Route::LEAST_SUM)),
        Gate::Softmax | Gate::Sigmoid => 1.0,
    };
    for (weight, id) in weights.iter_mut().zip(&*ids) {
        *weight = (chosen(*id) / by * f64::from(op.scale)) as f32;
    }
}

pub(super) fn matmul_id(op: &Op, args: &mut Args<'_>) {
    let Op::MatMulId(op) = op else { return };
    let (x, w, ids) = (args.input(0), args.input(1), args.input(2));
    let (k, experts) = (x.shape().cols(), op.experts(w.shape().rows()));
    let choices = ids.shape().len() / x.shape().rows();
    let (out, scratch) = args.out_and_scratch();
    for (i, (out, id)) in out.chunks_exact_mut(op.rows).zip(ids.ints()).enumerate() {
        let x = &x.floats()[i / choices * k..][..k];
        let first = op.first + (*id).clamp(0, experts as i32 - 1) as usize * op.stride;
        for (j, out) in out.iter_mut().enumerate() {
            let row = w.row(first + j, scratch);
            *out = x.iter().zip(row).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>() as f32;
        }
    }
}

pub(super) fn weighted_sum(_: &Op, args: &mut Args<'_>) {
    let (x, weights) = (args.input(0), args.input(1));
    let (m, u) = (x.shape().cols(), weights.shape().cols());
    let (x, weights) = (x.floats(), weights.floats());
    for (i, out) in args.out().chunks_exact_mut(m).enumerate() {
        for (j, out) in out.iter_mut().enumerate() {
            let product = |c: usize| f64::from(weights[i * u + c]) * f64::from(x[(i * u + c) * m + j]);
            *out = (0..u).map(product).sum::<f64>() as f32;
        }
    }
}
