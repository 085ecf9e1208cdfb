//! Inputs and results of choosing tokens: penalties, and elements by their columns.

use crate::args::Args;
use backend_api::Op;

pub(super) fn penalize(_: &Op, args: &mut Args<'_>) {
    let (logits, history) = (args.input(0), args.input(1).ints());
    let (bias, penalties) = (args.input(2).floats(), args.input(3).floats());
    let &[repetition, _, last, presence, frequency, counted, begin, _] = penalties else { return };
    let (rows, cols) = (logits.shape().rows(), logits.shape().cols());
    let step = args.step;
    for (row, (out, logits)) in args.out().chunks_exact_mut(cols).zip(logits.floats().chunks_exact(cols)).enumerate() {
        let at = if rows == 1 { step.rows as usize - 1 } else { row };
        let end = (step.position as usize + at + 1).min(history.len());
        let recent_from = end.saturating_sub(last as usize);
        let counted_from = end.saturating_sub(counted as usize).max(begin as usize);
        out.copy_from_slice(logits);
        let from = recent_from.min(counted_from).min(end);
        for (i, id) in (from..).zip(&history[from..end]) {
            // Each token once, at its last place.
            if history[i + 1..end].contains(id) {
                continue;
            }
            let Some(out) = usize::try_from(*id).ok().and_then(|id| out.get_mut(id)) else { continue };
            let mut logit = f64::from(*out);
            if i >= recent_from {
                let repetition = f64::from(repetition);
                logit = if logit > 0.0 { logit / repetition } else { logit * repetition };
            }
            if i >= counted_from {
                let count = history[counted_from..end].iter().filter(|other| *other == id).count();
                logit -= f64::from(presence) + count as f64 * f64::from(frequency);
            }
            *out = logit as f32;
        }
        out.iter_mut().zip(bias).for_each(|(out, bias)| *out += bias);
    }
}

pub(super) fn pick(_: &Op, args: &mut Args<'_>) {
    let (x, ids) = (args.input(0), args.input(1));
    let cols = x.shape().cols();
    let k = ids.shape().len() / x.shape().rows();
    let each = ids.ints().chunks_exact(k).zip(x.floats().chunks_exact(cols));
    for (out, (ids, row)) in args.out().chunks_exact_mut(k).zip(each) {
        for (out, id) in out.iter_mut().zip(ids) {
            *out = usize::try_from(*id).ok().and_then(|id| row.get(id)).copied().unwrap_or(0.0);
        }
    }
}
