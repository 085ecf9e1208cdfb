//! Attention: scores of a head in scratch memory, then the weighted sum.

use super::lanes::{Lanes, Work, dispatch};
use super::math::{accumulate, dot, exp};
use crate::args::Args;
use backend_api::Op;
use backend_api::op::Attention;

pub(super) fn attention(op: &Op, args: &mut Args<'_>) {
    let Op::Attention(op) = op else { return };
    let (q, k, v) = (args.input(0), args.input(1), args.input(2));
    let mask = if op.masking.explicit { args.input(3).floats() } else { &[] };
    let (m, n) = (q.shape().dim(0), k.shape().dim(0));
    let (d, dv) = (k.shape().cols() / op.n_head_kv, v.shape().cols() / op.n_head_kv);
    let (q, k, v) = (q.floats(), k.floats(), v.floats());
    let step = args.step;
    // Rows beyond the step's real ones would attend to keys that are not there yet.
    let rows = if op.masking.cached { m.min(step.rows as usize) } else { m };
    let (out, scores) = args.out_and_scratch();
    for i in 0..rows {
        let (start, end) = op.masking.visible(i, m, n, &step);
        let mask = mask.get(i * n..).unwrap_or_default();
        let (q, out) = (&q[i * op.n_head * d..], &mut out[i * op.n_head * dv..]);
        dispatch(Query { op, q, k, v, mask, d, dv, start, scores: &mut scores[..end - start], out });
    }
}

/// All heads of one query.
struct Query<'a> {
    op: &'a Attention,
    q: &'a [f32],
    k: &'a [f32],
    v: &'a [f32],
    mask: &'a [f32],
    d: usize,
    dv: usize,
    /// The first key that it sees.
    start: usize,
    /// One score for each key that it sees.
    scores: &'a mut [f32],
    out: &'a mut [f32],
}

impl Work for Query<'_> {
    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let Query { op, q, k, v, mask, d, dv, start, scores, out } = self;
        for h in 0..op.n_head {
            let g = h * op.n_head_kv / op.n_head;
            let (q, out) = (&q[h * d..][..d], &mut out[h * dv..][..dv]);
            let mut max = f32::MIN;
            for (score, j) in scores.iter_mut().zip(start..) {
                *score = dot(lanes, q, &k[(j * op.n_head_kv + g) * d..][..d]) * op.scale;
                if op.softcap > 0.0 {
                    *score = op.softcap * (*score / op.softcap).tanh();
                }
                *score += mask.get(j).copied().unwrap_or(0.0);
                max = max.max(*score);
            }
            out.fill(0.0);
            let mut sum = 0.0;
            for (score, j) in scores.iter().zip(start..) {
                let weight = exp(score - max);
                sum += weight;
                accumulate(lanes, out, weight, &v[(j * op.n_head_kv + g) * dv..][..dv]);
            }
            let scale = if sum > 0.0 { 1.0 / sum } else { 0.0 };
            out.iter_mut().for_each(|o| *o *= scale);
        }
    }
}
