//! Small fused operators.

use super::{appended, token_at};
use crate::args::{Args, round};
use crate::plain::rows::rotate;
use backend_api::Op;

pub(super) fn qkv_append(op: &Op, args: &mut Args<'_>) {
    let Op::QkvAppend(op) = op else { return };
    let qkv = args.input(0);
    let (q_cols, kv_cols) = (op.n_head * op.head_dim, op.n_head_kv * op.head_dim);
    let (width, t) = (qkv.shape().cols(), qkv.shape().dim(0));
    let cache = args.input(if op.rope.is_some() { 2 } else { 1 });
    let (first, count) = appended(args, cache.shape().dim(0), t);
    let position = args.step.position as usize;
    let table = op.rope.map(|(n, mode)| (args.input(1), n, mode));
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
        rotated(q, i);
        if i < count {
            let [k_row, v_row] = [&mut **k_cache, v_cache].map(|words| &mut words[(first + i) * kv_cols..][..kv_cols]);
            let k: &mut [f32] = bytemuck::cast_slice_mut(k_row);
            k.copy_from_slice(&row[q_cols..q_cols + kv_cols]);
            rotated(k, i);
            v_row.copy_from_slice(bytemuck::cast_slice(&row[q_cols + kv_cols..]));
            round(cache.tensor, k_row);
            round(cache.tensor, v_row);
        }
    }
}

pub(super) fn embed(_: &Op, args: &mut Args<'_>) {
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

pub(super) fn argmax_append(_: &Op, args: &mut Args<'_>) {
    let x = args.input(1).floats();
    let mut best = 0;
    for (i, value) in x.iter().enumerate() {
        if *value > x[best] {
            best = i;
        }
    }
    let at = args.step.position as usize + args.step.rows as usize;
    if let Some(slot) = args.outputs[0].get_mut(at) {
        *slot = best as u32;
    }
}
