//! Mixtures of experts: routing, products by id, sums of what experts made.

use super::select::{is_finite, next_largest};
use crate::args::Args;
use backend_api::Op;
use backend_api::op::{Gate, Groups, MatMulId, Route};

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
    let biased = |i: usize| score(i) + bias.get(i).map_or(0.0, |bias| f64::from(*bias));
    let open = op.groups.map_or(u32::MAX, |groups| best_groups(groups, logits.len(), biased));
    let size = op.groups.map_or(logits.len(), |groups| logits.len() / groups.count);
    let key = |i: usize| match op.biased {
        _ if open >> (i / size) & 1 == 0 => f64::NEG_INFINITY,
        true => biased(i),
        // Without a bias, the order of the scores is that of the logits.
        false => f64::from(logits[i]),
    };
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

/// The groups whose experts can be chosen, a bit for each: those with the largest sums of two scores.
fn best_groups(groups: Groups, n: usize, score: impl Fn(usize) -> f64) -> u32 {
    let size = n / groups.count;
    let sum = |group: usize| {
        let (mut first, mut second) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for score in (group * size..(group + 1) * size).map(&score) {
            (first, second) = (first.max(score), second.max(first.min(score)));
        }
        first + second
    };
    let (mut open, mut pick) = (0, None);
    for _ in 0..groups.used {
        let group = next_largest(groups.count, sum, pick);
        open |= 1 << group;
        pick = Some((sum(group), group));
    }
    open
}

pub(super) fn matmul_id(op: &Op, args: &mut Args<'_>) {
    let Op::MatMulId(op) = op else { return };
    let (x, w, k) = (args.input(0), args.input(1), args.input(0).shape().cols());
    let choices = args.shape.rows() / x.shape().rows();
    let ids = Ids::new(op, args);
    let (out, scratch) = args.out_and_scratch();
    for (i, out) in out.chunks_exact_mut(op.rows).enumerate() {
        let x = &x.floats()[i / choices * k..][..k];
        let first = op.first + ids.of(i) * op.stride;
        for (j, out) in out.iter_mut().enumerate() {
            let row = w.row(first + j, scratch);
            *out = x.iter().zip(row).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>() as f32;
        }
    }
}

/// The experts that choices go to.
pub(crate) struct Ids<'a> {
    ids: Option<&'a [i32]>,
    experts: usize,
    /// Choices of a row.
    choices: usize,
}

impl<'a> Ids<'a> {
    /// Makes those of a product by id.
    pub fn new(op: &MatMulId, args: &Args<'a>) -> Ids<'a> {
        let experts = op.experts(args.input(1).shape().rows());
        let ids = args.inputs[2].map(|ids| ids.ints());
        Ids { ids, experts, choices: args.shape.dim(1) }
    }

    /// Returns the expert of a choice: without ids, that of its number within its row.
    pub fn of(&self, choice: usize) -> usize {
        match self.ids {
            Some(ids) => ids[choice].clamp(0, self.experts as i32 - 1) as usize,
            None => choice % self.choices,
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
