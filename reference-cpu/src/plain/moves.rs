//! Permute, slice, concat, pad: words move, nothing is computed.

use crate::args::{Args, Bytes, Operand};
use backend_api::Op;

fn words<'a>(operand: &Operand<'a>) -> &'a [u32] {
    match operand.bytes {
        Bytes::Words(words) => words,
        Bytes::Packed(_) => &[],
    }
}

pub(super) fn permute(op: &Op, args: &mut Args<'_>) {
    let Op::Permute(op) = op else { return };
    let x = words(&args.input(0));
    let (view, perm) = op.normalized();
    let mut strides = [1; 4];
    for axis in (0..3).rev() {
        strides[axis] = strides[axis + 1] * view[axis + 1];
    }
    for (i, out) in args.outputs[0].iter_mut().enumerate() {
        let (mut rest, mut at) = (i, 0);
        for axis in (0..4).rev() {
            at += rest % view[perm[axis]] * strides[perm[axis]];
            rest /= view[perm[axis]];
        }
        *out = x[at];
    }
}

pub(super) fn slice(op: &Op, args: &mut Args<'_>) {
    let Op::Slice(op) = op else { return };
    let x = args.input(0);
    let rows = words(&x).chunks_exact(x.shape().cols());
    for (out, x) in args.outputs[0].chunks_exact_mut(op.len).zip(rows) {
        out.copy_from_slice(&x[op.start..][..op.len]);
    }
}

pub(super) fn concat(op: &Op, args: &mut Args<'_>) {
    let Op::Concat(op) = op else { return };
    let (a, b) = (args.input(0), args.input(1));
    // What lies at or within the axis is contiguous in both.
    let inner = |operand: &Operand<'_>| operand.shape().dims().skip(op.axis).product::<usize>();
    let (from_a, from_b) = (inner(&a), inner(&b));
    let parts = words(&a).chunks_exact(from_a).zip(words(&b).chunks_exact(from_b));
    for (out, (a, b)) in args.outputs[0].chunks_exact_mut(from_a + from_b).zip(parts) {
        out[..from_a].copy_from_slice(a);
        out[from_a..].copy_from_slice(b);
    }
}

pub(super) fn pad(op: &Op, args: &mut Args<'_>) {
    let Op::Pad(op) = op else { return };
    let x = args.input(0);
    let (dims, x) = (x.shape().dims4(), words(&x));
    let padded: [usize; 4] = std::array::from_fn(|axis| op.before[axis] + dims[axis] + op.after[axis]);
    for (i, out) in args.outputs[0].iter_mut().enumerate() {
        let (mut rest, mut at, mut stride, mut inside) = (i, 0, 1, true);
        for axis in (0..4).rev() {
            let (place, dim) = ((rest % padded[axis]) as i64 - op.before[axis] as i64, dims[axis] as i64);
            inside &= op.circular || (0..dim).contains(&place);
            at += place.rem_euclid(dim) as usize * stride;
            rest /= padded[axis];
            stride *= dims[axis];
        }
        *out = if inside { x[at] } else { 0 };
    }
}

/// Writes a box of dimensions `dims` into one of dimensions `whole`, from `at` on.
fn put(out: &mut [u32], whole: [usize; 4], at: [usize; 4], part: &[u32], dims: [usize; 4]) {
    for (i, word) in part.iter().enumerate() {
        let (mut rest, mut to, mut stride) = (i, 0, 1);
        for axis in (0..4).rev() {
            to += (at[axis] + rest % dims[axis]) * stride;
            rest /= dims[axis];
            stride *= whole[axis];
        }
        out[to] = *word;
    }
}

pub(super) fn set(op: &Op, args: &mut Args<'_>) {
    let Op::Set(op) = op else { return };
    let (x, part) = (args.input(0), args.input(1));
    args.outputs[0].copy_from_slice(words(&x));
    put(args.outputs[0], x.shape().dims4(), op.at, words(&part), part.shape().dims4());
}

pub(super) fn repeat(op: &Op, args: &mut Args<'_>) {
    let Op::Repeat(op) = op else { return };
    let x = args.input(0);
    let dims = x.shape().dims4();
    let words = words(&x);
    for (i, out) in args.outputs[0].iter_mut().enumerate() {
        let (mut rest, mut at, mut stride) = (i, 0, 1);
        for axis in (0..4).rev() {
            at += rest % (dims[axis] * op.times[axis]) % dims[axis] * stride;
            rest /= dims[axis] * op.times[axis];
            stride *= dims[axis];
        }
        *out = words[at];
    }
}

pub(super) fn tri(op: &Op, args: &mut Args<'_>) {
    let Op::Tri(op) = op else { return };
    let x = args.input(0);
    let [_, _, rows, cols] = x.shape().dims4();
    for (i, (out, word)) in args.outputs[0].iter_mut().zip(words(&x)).enumerate() {
        let (row, col) = (i / cols % rows, i % cols);
        let (near, far) = if op.kind.is_upper() { (row, col) } else { (col, row) };
        *out = if far >= near + op.kind.least() { *word } else { 0 };
    }
}
