//! Attention: scores of a head in scratch memory, then the weighted sum.

use super::Needs;
use super::lanes::{Lanes, Work};
use super::math::{accumulate, dot};
use crate::args::Args;
use crate::threads::{for_each_part, parts};
use backend_api::elementary::Scalar;
use backend_api::op::{Attention, HIDDEN};
use backend_api::{Form, Op, StepParams, Tensor};

/// Returns the memory that attention needs: scores of as many keys as there may be, in each part.
pub(super) fn needs(op: &Attention, [q, k, v]: [&Tensor; 3], threads: usize) -> Needs {
    let (heads, n) = (q.shape.dim(0) * op.n_head, k.shape.dim(0));
    let width = (k.shape.cols() + v.shape.cols()) / op.n_head_kv;
    let parts = parts(threads, heads, heads * n * width);
    Needs { scratch: parts * n, parts, units: q.shape.dim(0) }
}

pub(super) fn attention(form: &Form, args: &mut Args<'_>) {
    let Form::Op(Op::Attention(op)) = form else { return };
    let (q, k, v) = (args.input(0), args.input(1), args.input(2));
    let mask = if op.masking.explicit { args.input(3).floats() } else { &[] };
    let mask_rows = op.mask_rows(&[q, k, v, args.input(3)].map(|operand| operand.tensor));
    let sinks = op.sinks_at().map_or(&[][..], |at| args.input(at).floats());
    let (m, n) = (q.shape().dim(0), k.shape().dim(0));
    let (d, dv) = (k.shape().cols() / op.n_head_kv, v.shape().cols() / op.n_head_kv);
    let (step, instructions, threads) = (args.step, args.instructions, args.threads);
    // Rows beyond the step's real ones would attend to keys that are not there yet.
    let rows = if op.masking.cached { m.min(step.rows as usize) } else { m };
    let (start, end) = op.masking.visible(rows.saturating_sub(1), m, n, &step);
    let rows = args.share(1, rows);
    let (begin, heads) = (rows.start * op.n_head, rows.len() * op.n_head);
    let parts = parts(threads, heads, heads * (end - start) * (d + dv));
    let (out, scores) = args.out_and_scratch();
    let each = heads.div_ceil(parts).max(1);
    let all = Heads { op, step, q: q.floats(), k: k.floats(), v: v.floats(), mask, mask_rows, sinks, m, n, d, dv };
    let out = &mut out[begin * dv..][..heads * dv];
    for_each_part(out, each * dv, scores, n, |index, out, scores| {
        instructions.run(Part { heads: &all, first: begin + index * each, scores, out });
    });
}

/// The operands of all heads of all queries.
struct Heads<'a> {
    op: &'a Attention,
    step: StepParams,
    q: &'a [f32],
    k: &'a [f32],
    v: &'a [f32],
    mask: &'a [f32],
    /// Rows of the mask between those of one head and the next.
    mask_rows: usize,
    sinks: &'a [f32],
    /// Queries.
    m: usize,
    /// Keys.
    n: usize,
    d: usize,
    dv: usize,
}

/// Some of them, counted query by query.
struct Part<'a> {
    heads: &'a Heads<'a>,
    first: usize,
    /// One score for each key.
    scores: &'a mut [f32],
    out: &'a mut [f32],
}

impl Work for Part<'_> {
    const WIDE: bool = true;

    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let Part { heads, first, scores, out } = self;
        let Heads { op, step, q, k, v, mask, mask_rows, sinks, m, n, d, dv } = *heads;
        for (at, out) in out.chunks_exact_mut(dv).enumerate() {
            let (i, h) = ((first + at) / op.n_head, (first + at) % op.n_head);
            let g = h * op.n_head_kv / op.n_head;
            let (start, end) = op.masking.visible(i, m, n, &step);
            let (place, slope) = (op.masking.place(i, m, n, &step), op.slope(h) as f32);
            let (q, mask) = (&q[(first + at) * d..][..d], mask.get((h * mask_rows + i) * n..).unwrap_or_default());
            let scores = &mut scores[..end - start];
            let sink = sinks.get(h).copied();
            let mut max = sink.unwrap_or(f32::MIN);
            for (score, j) in scores.iter_mut().zip(start..) {
                *score = dot(lanes, q, &k[(j * op.n_head_kv + g) * d..][..d]) * op.scale;
                if op.softcap > 0.0 {
                    *score = op.softcap * (*score / op.softcap).tanh();
                }
                if slope > 0.0 {
                    *score -= slope * place.abs_diff(j) as f32;
                }
                if let Some(mask) = mask.get(j) {
                    *score += mask;
                    *score = if *score <= HIDDEN { f32::NEG_INFINITY } else { *score };
                }
                max = max.max(*score);
            }
            out.fill(0.0);
            let mut sum = sink.map_or(0.0, |sink| Scalar::exp(sink - max));
            for (score, j) in scores.iter().zip(start..) {
                // An exponential is never 0.
                let weight = if *score == f32::NEG_INFINITY { 0.0 } else { Scalar::exp(score - max) };
                sum += weight;
                accumulate(lanes, out, weight, &v[(j * op.n_head_kv + g) * dv..][..dv]);
            }
            // Without keys that are seen it is 0; NaN stays what it is.
            let scale = if sum == 0.0 { 0.0 } else { 1.0 / sum };
            out.iter_mut().for_each(|o| *o *= scale);
        }
    }
}
