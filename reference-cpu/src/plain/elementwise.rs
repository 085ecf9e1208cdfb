//! Functions of elements at one place, and arithmetic with broadcasting.

use crate::args::Args;
use backend_api::Op;

/// An operator whose elements are functions of those at the same place.
pub(super) fn pointwise(op: &Op, args: &mut Args<'_>) {
    // Of those that take one operand the second has no elements.
    let (x, y) = (args.input(0).floats(), args.input(1).floats());
    for (i, out) in args.out().iter_mut().enumerate() {
        let operands = [x[i], y.get(i).copied().unwrap_or(0.0)].map(f64::from);
        let element = op.element(&operands, &mut |_, value| f64::from(value));
        *out = element.map_or(f32::NAN, |value| value as f32);
    }
}

pub(super) fn run_binary(op: &Op, args: &mut Args<'_>) {
    let Op::Binary(op) = op else { return };
    let (a, b) = (args.input(0), args.input(1));
    let (da, db) = (a.shape().dims4(), b.shape().dims4());
    let mut dims = [0; 4];
    for (out, (x, y)) in dims.iter_mut().zip(da.iter().zip(&db)) {
        *out = (*x).max(*y);
    }
    // A dimension of 1 is repeated: its index stays 0.
    let index = |i: usize, of: &[usize; 4]| {
        let (mut rest, mut stride, mut at) = (i, 1, 0);
        for axis in (0..4).rev() {
            at += if of[axis] == 1 { 0 } else { rest % dims[axis] * stride };
            rest /= dims[axis];
            stride *= of[axis];
        }
        at
    };
    let (a, b) = (a.floats(), b.floats());
    for (i, out) in args.out().iter_mut().enumerate() {
        *out = op.kind.of(a[index(i, &da)], b[index(i, &db)]);
    }
}
