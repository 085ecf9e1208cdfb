//! Unary functions, scaling, binary arithmetic, gated linear units.

use crate::args::Args;
use backend_api::Op;
use backend_api::op::{BinaryKind, GluKind, UnaryKind};

pub(super) fn run_unary(op: &Op, args: &mut Args<'_>) {
    let Op::Unary(op) = op else { return };
    let x = args.input(0).floats();
    for (out, x) in args.out().iter_mut().zip(x) {
        *out = unary(op.kind, f64::from(*x)) as f32;
    }
}

pub(super) fn run_scale(op: &Op, args: &mut Args<'_>) {
    let Op::Scale(op) = op else { return };
    let x = args.input(0).floats();
    for (out, x) in args.out().iter_mut().zip(x) {
        *out = (f64::from(op.factor) * f64::from(*x) + f64::from(op.bias)) as f32;
    }
}

pub(super) fn run_clamp(op: &Op, args: &mut Args<'_>) {
    let Op::Clamp(op) = op else { return };
    let x = args.input(0).floats();
    for (out, x) in args.out().iter_mut().zip(x) {
        *out = x.clamp(op.lo, op.hi);
    }
}

pub(super) fn run_xielu(op: &Op, args: &mut Args<'_>) {
    let Op::Xielu(op) = op else { return };
    let [positive, negative, linear, eps] = [op.positive, op.negative, op.linear, op.eps].map(f64::from);
    let x = args.input(0).floats();
    for (out, x) in args.out().iter_mut().zip(x) {
        let x = f64::from(*x);
        let bent = if x > 0.0 { positive * x * x } else { negative * (x.min(eps).exp_m1() - x) };
        *out = (bent + linear * x) as f32;
    }
}

pub(super) fn run_glu(op: &Op, args: &mut Args<'_>) {
    let Op::Glu(op) = op else { return };
    let (gate, up) = (args.input(0).floats(), args.input(1).floats());
    for (out, (gate, up)) in args.out().iter_mut().zip(gate.iter().zip(up)) {
        *out = gated(op.kind, f64::from(*gate), f64::from(*up)) as f32;
    }
}

fn gated(kind: GluKind, gate: f64, up: f64) -> f64 {
    match kind.limit().map(f64::from) {
        None => unary(kind.activation(), gate) * up,
        Some(limit) => unary(kind.activation(), gate.min(limit)) * (up.clamp(-limit, limit) + 1.0),
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
        let (x, y) = (a[index(i, &da)], b[index(i, &db)]);
        *out = match op.kind {
            BinaryKind::Add => x + y,
            BinaryKind::Sub => x - y,
            BinaryKind::Mul => x * y,
            BinaryKind::Div => x / y,
        };
    }
}

/// An elementwise function.
pub(crate) fn unary(kind: UnaryKind, x: f64) -> f64 {
    match kind {
        UnaryKind::GeluTanh => {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
        }
        UnaryKind::GeluErf => 0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        UnaryKind::GeluQuick => x / (1.0 + (-1.702 * x).exp()),
        UnaryKind::Silu => x / (1.0 + (-x).exp()),
        UnaryKind::Relu => x.max(0.0),
        UnaryKind::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        UnaryKind::Tanh => x.tanh(),
        UnaryKind::Exp => x.exp(),
        UnaryKind::Log => x.ln(),
        UnaryKind::Sqrt => x.sqrt(),
        UnaryKind::Sin => x.sin(),
        UnaryKind::Cos => x.cos(),
        UnaryKind::Abs => x.abs(),
        UnaryKind::Neg => -x,
        UnaryKind::Floor => x.floor(),
        UnaryKind::Ceil => x.ceil(),
        UnaryKind::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        UnaryKind::Hardswish => x * ((x + 3.0) / 6.0).clamp(0.0, 1.0),
        UnaryKind::Sign => f64::from(x > 0.0) - f64::from(x < 0.0),
        UnaryKind::Step => f64::from(x > 0.0),
        UnaryKind::Elu if x > 0.0 => x,
        UnaryKind::Elu | UnaryKind::Expm1 => x.exp_m1(),
        UnaryKind::Hardsigmoid => ((x + 3.0) / 6.0).clamp(0.0, 1.0),
        UnaryKind::Round => x.round(),
        UnaryKind::Trunc => x.trunc(),
    }
}
