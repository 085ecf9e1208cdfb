//! Small forms of several nodes.

use super::{appended, token_at};
use crate::args::{Args, round};
use crate::plain::rows::rotate;
use crate::plain::select::largest;
use backend_api::Form;
use backend_api::form::QkNorm;

pub(super) fn qkv_append(form: &Form, args: &mut Args<'_>) {
    let Form::QkvAppend(op) = form else { return };
    let qkv = args.input(0);
    let (q_cols, kv_cols) = (op.n_head * op.head_dim, op.n_head_kv * op.head_dim);
    let (width, t) = (qkv.shape().cols(), qkv.shape().dim(0));
    let cache = args.input(op.rest() - 1);
    let (first, count) = appended(args, cache.shape().dim(0), t);
    let position = args.step.position as usize;
    let table = op.rope.zip(op.table()).map(|((n, mode), place)| (args.input(place), n, mode));
    let gammas = op.gammas().map(|places| places.map(|place| args.input(place).floats()));
    let v_gamma = op.v_gamma().map(|place| args.input(place).floats());
    let normed = |row: &mut [f32], which: usize| {
        if let (Some(QkNorm { eps, whole, .. }), Some(gammas)) = (op.norm, gammas) {
            let len = if whole { row.len() } else { op.head_dim };
            row.chunks_exact_mut(len).for_each(|head| rms(head, gammas[which], eps));
        }
    };
    let rotated = |row: &mut [f32], i: usize| {
        if let Some((table, n, mode)) = table {
            let at = (position + i).min(table.shape().dim(0) - 1);
            let angles = &table.floats()[at * n..][..n];
            row.chunks_exact_mut(op.head_dim).for_each(|head| rotate(head, angles, mode));
        }
    };
    let [q, k_cache, v_cache] = &mut args.outputs;
    let q: &mut [f32] = bytemuck::cast_slice_mut(q);
    for (i, (row, q)) in qkv.floats().chunks_exact(width).zip(q.chunks_exact_mut(q_cols)).enumerate() {
        q.copy_from_slice(&row[..q_cols]);
        normed(q, 0);
        rotated(q, i);
        if i < count {
            let [k_row, v_row] = [&mut **k_cache, v_cache].map(|words| &mut words[(first + i) * kv_cols..][..kv_cols]);
            let k: &mut [f32] = bytemuck::cast_slice_mut(k_row);
            k.copy_from_slice(&row[q_cols..q_cols + kv_cols]);
            normed(k, 1);
            rotated(k, i);
            v_row.copy_from_slice(bytemuck::cast_slice(&row[q_cols + kv_cols..]));
            if let (Some(QkNorm { eps, .. }), Some(gamma)) = (op.norm, v_gamma) {
                let v: &mut [f32] = bytemuck::cast_slice_mut(v_row);
                v.chunks_exact_mut(op.head_dim).for_each(|head| rms(head, gamma, eps));
            }
            round(cache.tensor, k_row);
            round(cache.tensor, v_row);
        }
    }
}

/// RMS norm of a head, or of all, summed in f64 like the definition.
fn rms(head: &mut [f32], gamma: &[f32], eps: f32) {
    let squares: f64 = head.iter().map(|v| f64::from(*v).powi(2)).sum();
    let scale = (1.0 / (squares / head.len() as f64 + f64::from(eps)).sqrt()) as f32;
    head.iter_mut().zip(gamma).for_each(|(v, g)| *v *= scale * g);
}

pub(super) fn embed(_: &Form, args: &mut Args<'_>) {
    let (tokens, history, positions) = (args.input(0), args.input(1).ints(), args.input(2));
    let d = tokens.shape().cols();
    let step = args.step;
    let (out, scratch) = args.out_and_scratch();
    for (i, out) in out.chunks_exact_mut(d).enumerate() {
        let id = token_at(history, &step, i).clamp(0, tokens.shape().dim(0) as i64 - 1);
        let at = (step.position as usize + i).min(positions.shape().dim(0) - 1);
        out.copy_from_slice(tokens.row(id as usize, scratch));
        for (out, p) in out.iter_mut().zip(positions.row(at, scratch)) {
            *out += p;
        }
    }
}

pub(super) fn argmax_append(_: &Form, args: &mut Args<'_>) {
    let x = args.input(1).floats();
    let best = largest(x);
    let at = args.step.position as usize + args.step.rows as usize;
    if let Some(slot) = args.outputs[0].get_mut(at) {
        *slot = best as u32;
    }
}
