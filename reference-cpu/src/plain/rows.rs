//! Get-rows, append, rope: what depends on the step's position.

use crate::args::{Args, Bytes, round};
use crate::decode::row_shared;
use backend_api::Op;
use backend_api::op::{At, Index, RopeMode};

pub(super) fn get_rows(op: &Op, args: &mut Args<'_>) {
    let Op::GetRows(op) = op else { return };
    let table = args.input(0);
    let ids = args.inputs[1].map_or(&[][..], |ids| ids.ints());
    let (position, last) = (i64::from(args.step.position), i64::from(args.step.rows) - 1);
    let (v, d) = (table.shape().dim(0) as i64, table.shape().cols());
    for (i, out) in args.out().chunks_exact_mut(d).enumerate() {
        let id = match op.index {
            Index::Ids => i64::from(ids[i]),
            Index::Tokens { .. } => i64::from(ids[(position as usize + i).min(ids.len() - 1)]),
            Index::Positions { .. } => position + i as i64,
            Index::First => 0,
            Index::Last => last,
        };
        let row = id.clamp(0, v - 1) as usize;
        match table.packed() {
            Some((format, bytes)) => {
                let len = bytes.len() / v as usize;
                row_shared(format, &bytes[row * len..][..len], out);
            }
            None => out.copy_from_slice(&table.floats()[row * d..][..d]),
        }
    }
}

pub(super) fn append(op: &Op, args: &mut Args<'_>) {
    let Op::Append(op) = op else { return };
    let (state, x) = (args.input(0).tensor, args.input(1));
    let (position, rows) = (args.step.position as usize, args.step.rows as usize);
    let (n_ctx, t) = (state.shape.dim(0), x.shape().dim(0));
    let width = state.shape.len() / n_ctx;
    let (first, count) = match op.at {
        At::Position => (position, rows.min(t)),
        At::Next => (position + rows, 1),
        At::EachNext => (position + 1, rows.min(t)),
    };
    let Bytes::Words(x) = x.bytes else { return };
    let count = count.min(n_ctx.saturating_sub(first));
    let rows = &mut args.outputs[0][first.min(n_ctx) * width..][..count * width];
    rows.copy_from_slice(&x[..count * width]);
    round(state, rows);
}

pub(super) fn rope(op: &Op, args: &mut Args<'_>) {
    let Op::Rope(rope) = op else { return };
    let (x, table) = (args.input(0), args.input(1));
    let (width, n) = (x.shape().cols(), rope.n_dims);
    let (x, last) = (x.floats(), table.shape().dim(0) - 1);
    let position = args.step.position as usize;
    let out = args.out();
    out.copy_from_slice(x);
    for (i, row) in out.chunks_exact_mut(width).enumerate() {
        let angles = &table.floats()[(position + i).min(last) * n..][..n];
        for head in row.chunks_exact_mut(width / rope.n_head) {
            rotate(head, angles, rope.mode);
        }
    }
}

/// Rotates the pairs of a head; `angles` holds cosine and sine of each.
pub(crate) fn rotate(head: &mut [f32], angles: &[f32], mode: RopeMode) {
    let half = angles.len() / 2;
    for pair in 0..half {
        let (i, j) = match mode {
            RopeMode::Normal => (2 * pair, 2 * pair + 1),
            RopeMode::Neox => (pair, pair + half),
        };
        let (cos, sin) = (angles[2 * pair], angles[2 * pair + 1]);
        (head[i], head[j]) = (head[i] * cos - head[j] * sin, head[i] * sin + head[j] * cos);
    }
}
