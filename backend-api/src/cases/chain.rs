//! Cases of `chain`.

use super::prelude::*;
use crate::case::Operands;
use crate::form::chain::OPERANDS;

fn scaled(o: &mut Operands, x: TensorId, factor: f32) -> TensorId {
    o.push(Scale { factor, bias: 0.125 }, &[x])
}

fn joined(o: &mut Operands, kind: BinaryKind, a: TensorId, b: TensorId) -> TensorId {
    o.push(Binary { kind }, &[a, b])
}

fn transposed(o: &mut Operands, x: TensorId, view: &[usize], perm: &[usize]) -> TensorId {
    let view = Shape::new(view).expect("cases are well-formed");
    o.push(Permute { view, perm: perm.to_vec() }, &[x])
}

/// A chain as models have it: its name, and what records it for so many rows and columns.
type Recorded = (&'static str, fn(&mut Operands, usize, usize) -> TensorId);

const CHAINS: &[Recorded] = &[
    ("capped", |o, rows, cols| {
        let x = o.filled(&[rows, cols], Fill::Uniform(-9.0, 9.0));
        let x = scaled(o, x, 0.25);
        let x = o.push(Unary { kind: UnaryKind::Tanh }, &[x]);
        scaled(o, x, 30.0)
    }),
    ("gate and part of a row", |o, rows, cols| {
        let (gate, x) = (o.input(&[rows, cols]), o.input(&[rows, 3 * cols + 1]));
        let part = o.push(Slice { start: cols + 1, len: cols }, &[x]);
        o.push(Glu { kind: GluKind::GegluTanh }, &[gate, part])
    }),
    ("vector and number for all rows", |o, rows, cols| {
        let (x, vector, number) = (o.input(&[rows, cols]), o.weight(&[cols]), o.weight(&[1]));
        let x = joined(o, BinaryKind::Mul, x, vector);
        let x = joined(o, BinaryKind::Mul, x, number);
        o.push(Clamp { lo: -0.5, hi: 0.25 }, &[x])
    }),
    ("number for each row", |o, rows, cols| {
        let (x, each) = (o.input(&[rows, cols]), o.input(&[rows, 1]));
        let each = o.push(Unary { kind: UnaryKind::Sigmoid }, &[each]);
        let x = joined(o, BinaryKind::Sub, x, each);
        o.push(Unary { kind: UnaryKind::Relu }, &[x])
    }),
    ("transposed before and after", |o, rows, cols| {
        let (a, b) = (o.input(&[rows, 4 * cols]), o.input(&[rows, 4, cols]));
        let a = transposed(o, a, &[rows, 4, cols], &[0, 1, 2]);
        let sum = joined(o, BinaryKind::Add, a, b);
        let sum = scaled(o, sum, -2.0);
        transposed(o, sum, &[rows, 4, cols], &[1, 2, 0])
    }),
    ("slices of what is scaled", |o, rows, cols| {
        let (x, y) = (o.input(&[2, rows, cols + 4]), o.input(&[2, rows, cols]));
        let x = scaled(o, x, 3.0);
        let x = o.push(Slice { start: 3, len: cols }, &[x]);
        let sum = joined(o, BinaryKind::Mul, y, x);
        o.push(Unary { kind: UnaryKind::Tanh }, &[sum])
    }),
    ("as many operands as there may be", |o, rows, cols| {
        let first = o.input(&[rows, cols]);
        (1..OPERANDS).fold(first, |sum, i| {
            let (more, kind) = (o.input(&[rows, cols]), BinaryKind::ALL[i % 3]);
            joined(o, kind, sum, more)
        })
    }),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, record) in CHAINS {
        for (rows, cols) in [(1, 64), (3, 5), (7, 33), (2, 1030)] {
            let name = format!("{name}, {rows} rows of {cols} columns");
            cases.push(Case::graph("chain", name, StepParams::at(0, 1), |o| vec![record(o, rows, cols)]));
        }
    }
    cases
}
