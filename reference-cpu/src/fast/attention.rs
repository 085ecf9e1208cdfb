//! Attention: scores of a head in scratch memory, then the weighted sum.

use super::math::{dot, exp};
use super::vectorized;
use crate::args::Args;
use backend_api::Op;

pub(super) fn attention(op: &Op, args: &mut Args<'_>) {
    let Op::Attention(a) = op else { return };
    let (q, k, v) = (args.input(0), args.input(1), args.input(2));
    let mask = if a.masking.explicit { args.input(3).floats() } else { &[] };
    let (m, n) = (q.shape().dim(0), k.shape().dim(0));
    let (d, dv) = (k.shape().cols() / a.n_head_kv, v.shape().cols() / a.n_head_kv);
    let (q, k, v) = (q.floats(), k.floats(), v.floats());
    let step = args.step;
    // Rows beyond the step's real ones would attend to keys that are not there yet.
    let rows = if a.masking.cached { m.min(step.rows as usize) } else { m };
    let (out, scores) = args.out_and_scratch();
    vectorized(
        #[inline(always)]
        || {
            for i in 0..rows {
                let (start, end) = a.masking.visible(i, m, n, &step);
                for h in 0..a.n_head {
                    let g = h * a.n_head_kv / a.n_head;
                    let q = &q[(i * a.n_head + h) * d..][..d];
                    let out = &mut out[(i * a.n_head + h) * dv..][..dv];
                    out.fill(0.0);
                    let scores = &mut scores[..end - start];
                    let mut max = f32::MIN;
                    for (score, j) in scores.iter_mut().zip(start..) {
                        *score = dot(q, &k[(j * a.n_head_kv + g) * d..][..d]) * a.scale;
                        if a.softcap > 0.0 {
                            *score = a.softcap * (*score / a.softcap).tanh();
                        }
                        *score += mask.get(i * n + j).copied().unwrap_or(0.0);
                        max = max.max(*score);
                    }
                    let mut sum = 0.0;
                    for (score, j) in scores.iter().zip(start..) {
                        let weight = exp(score - max);
                        sum += weight;
                        for (out, v) in out.iter_mut().zip(&v[(j * a.n_head_kv + g) * dv..][..dv]) {
                            *out += weight * v;
                        }
                    }
                    let scale = if sum > 0.0 { 1.0 / sum } else { 0.0 };
                    out.iter_mut().for_each(|o| *o *= scale);
                }
            }
        },
    );
}
