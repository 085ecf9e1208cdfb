//! Argmax, top-k, argsort, sampling.

use crate::args::Args;
use backend_api::{Op, StepParams, ordered, sort_by_key};

/// The index of the largest of `n` values after the pick `(value, index)` in the order "larger first, of equals the first
/// first"; of all of them if there is no pick yet.
pub(super) fn next_largest(n: usize, value: impl Fn(usize) -> f64, after: Option<(f64, usize)>) -> usize {
    let mut best: Option<(f64, usize)> = None;
    for i in 0..n {
        let value = value(i);
        let open = after.is_none_or(|(v, at)| value < v || (value == v && i > at));
        if open && best.is_none_or(|(most, _)| value > most) {
            best = Some((value, i));
        }
    }
    best.map_or(0, |(_, i)| i)
}

/// The index of the largest element; -1 in a row of which some are not finite.
pub(crate) fn largest(row: &[f32]) -> i32 {
    let (mut best, mut finite) = (0, true);
    for (i, value) in row.iter().enumerate() {
        finite &= value.is_finite();
        if *value > row[best] {
            best = i;
        }
    }
    if finite { best as i32 } else { -1 }
}

pub(super) fn is_finite(row: &[f32]) -> bool {
    row.iter().all(|value| value.is_finite())
}

pub(super) fn argmax(_: &Op, args: &mut Args<'_>) {
    let x = args.input(0);
    let rows = x.floats().chunks_exact(x.shape().cols());
    for (out, row) in args.out_ints().iter_mut().zip(rows) {
        *out = largest(row);
    }
}

pub(super) fn top_k(op: &Op, args: &mut Args<'_>) {
    let Op::TopK(op) = op else { return };
    let x = args.input(0);
    let [values, ids, _] = &mut args.outputs;
    let values: &mut [f32] = bytemuck::cast_slice_mut(values);
    let ids: &mut [i32] = bytemuck::cast_slice_mut(ids);
    let rows = x.floats().chunks_exact(x.shape().cols());
    for ((values, ids), row) in values.chunks_exact_mut(op.k).zip(ids.chunks_exact_mut(op.k)).zip(rows) {
        if !is_finite(row) {
            values.fill(0.0);
            ids.fill(-1);
            continue;
        }
        let mut pick = None;
        for (value, id) in values.iter_mut().zip(ids) {
            let i = next_largest(row.len(), |i| f64::from(row[i]), pick);
            (*value, *id) = (row[i], i as i32);
            pick = Some((f64::from(row[i]), i));
        }
    }
}

pub(super) fn argsort(op: &Op, args: &mut Args<'_>) {
    let Op::Argsort(op) = op else { return };
    let x = args.input(0);
    let cols = x.shape().cols();
    for (out, row) in args.out_ints().chunks_exact_mut(cols).zip(x.floats().chunks_exact(cols)) {
        let mut order: Vec<i32> = (0..cols as i32).collect();
        sort_by_key(&mut order, |i| {
            let key = ordered(f64::from(row[*i as usize]));
            if op.descending { u64::MAX - key } else { key }
        });
        out.copy_from_slice(&order);
    }
}

pub(super) fn sample(_: &Op, args: &mut Args<'_>) {
    let (values, ids, step) = (args.input(0), args.input(1), args.step);
    let k = values.shape().cols();
    let each = values.floats().chunks_exact(k).zip(ids.ints().chunks_exact(k));
    let first = if each.len() == 1 { step.rows - 1 } else { 0 };
    let min_p = args.inputs[2].and_then(|penalties| penalties.floats().last().copied()).unwrap_or(0.0);
    for (row, ((values, ids), out)) in (first..).zip(each.zip(args.out_ints())) {
        *out = draw(values, ids, &step, row, min_p);
    }
}

/// The candidate that is drawn after a row of the step.
fn draw(values: &[f32], ids: &[i32], step: &StepParams, row: u32, min_p: f32) -> i32 {
    if !is_finite(values) {
        return -1;
    }
    let candidates = if step.top_k == 0 { values.len() } else { values.len().min(step.top_k as usize) };
    let weight = |i: usize| ((f64::from(values[i]) - f64::from(values[0])) / f64::from(step.temperature)).exp();
    let mut pick = 0;
    if step.temperature > 0.0 {
        let total: f64 = (0..candidates).map(weight).sum();
        let (mut kept, mut stays) = (0, 0.0);
        let stays_more = |kept, stays| stays < total * f64::from(step.top_p) && weight(kept) >= f64::from(min_p);
        while kept < candidates && (kept == 0 || stays_more(kept, stays)) {
            stays += weight(kept);
            kept += 1;
        }
        let target = f64::from(step.uniform(row)) * stays;
        let mut running = 0.0;
        pick = kept - 1;
        for i in 0..kept {
            running += weight(i);
            if running > target {
                pick = i;
                break;
            }
        }
    }
    ids[pick]
}
