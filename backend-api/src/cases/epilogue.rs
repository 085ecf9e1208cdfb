//! Cases of `epilogue`.

use super::prelude::*;
use crate::case::Operands;

const RMS: Norm = Norm { kind: NormKind::Rms, eps: 1e-5, heads: 1 };

/// A name, the columns of its result, and what records it for so many rows.
type Head = (&'static str, usize, fn(&mut Operands, usize) -> Vec<TensorId>);
/// A name, and what records what follows a result of so many rows and columns.
type Tail = (&'static str, fn(&mut Operands, TensorId, usize, usize) -> TensorId);

const HEADS: &[Head] = &[
    ("product", 40, |o, rows| {
        let (x, w) = (o.input(&[rows, 96]), o.packed(Format::Q8_0, 40, 96));
        o.form(Linear::PLAIN, &[x, w])
    }),
    ("normed product, odd", 33, |o, rows| {
        let (x, gamma, w, bias) =
            (o.input(&[rows, 70]), o.weight(&[70]), o.packed(Format::F32, 33, 70), o.weight(&[33]));
        o.form(Linear { norm: Some(RMS), bias: true, ..Linear::PLAIN }, &[x, gamma, w, bias])
    }),
    ("gated product", 32, |o, rows| {
        let (x, w, residual) = (o.input(&[rows, 256]), o.packed(Format::Q8_0, 64, 256), o.input(&[rows, 32]));
        let activation = Activation::Glu(GluKind::Swiglu);
        o.form(Linear { activation, residual: true, ..Linear::PLAIN }, &[x, w, residual])
    }),
    ("norm and sum", 200, |o, rows| {
        let (x, gamma, other) = (o.input(&[rows, 200]), o.weight(&[200]), o.input(&[rows, 200]));
        o.form(NormAdd { norm: RMS }, &[x, gamma, other])
    }),
];

const TAILS: &[Tail] = &[
    ("gate of a part", |o, x, rows, cols| {
        let other = o.input(&[rows, 3 * cols + 1]);
        let part = o.push(Slice { start: cols + 1, len: cols }, &[other]);
        o.push(Glu { kind: GluKind::GegluTanh }, &[x, part])
    }),
    ("factor", |o, x, _, _| {
        let factor = o.weight(&[1]);
        o.push(Binary { kind: BinaryKind::Mul }, &[x, factor])
    }),
    ("capped", |o, x, _, _| {
        let x = o.push(Scale { factor: 0.125, bias: 0.125 }, &[x]);
        let x = o.push(Unary { kind: UnaryKind::Tanh }, &[x]);
        o.push(Scale { factor: 30.0, bias: 0.0 }, &[x])
    }),
    ("sum, and a factor for each row and column", |o, x, rows, cols| {
        let (other, of_row, of_col) = (o.input(&[rows, cols]), o.input(&[rows, 1]), o.weight(&[cols]));
        let x = o.push(Binary { kind: BinaryKind::Sub }, &[other, x]);
        let x = o.push(Binary { kind: BinaryKind::Mul }, &[x, of_row]);
        o.push(Binary { kind: BinaryKind::Mul }, &[x, of_col])
    }),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (head, cols, record) in HEADS {
        for (tail, follow) in TAILS {
            for rows in [1, 3, 6, 40, 70] {
                let name = format!("{head}, then {tail}, {rows} rows");
                let case = Case::graph("epilogue", name, StepParams::at(0, rows as u32), |o| {
                    let x = record(o, rows)[0];
                    vec![follow(o, x, rows, *cols)]
                });
                // A few rows, each to be rounded as if it were the only one.
                cases.push(if rows == 3 { case.alike() } else { case });
            }
        }
    }
    // What is summed up before the product is a result as well.
    for rows in [1, 3] {
        let case =
            Case::graph("epilogue", format!("sum, product, gate, {rows} rows"), StepParams::at(0, rows as u32), |o| {
                let (x, gamma, other) = (o.input(&[rows, 64]), o.weight(&[64]), o.input(&[rows, 64]));
                let w = o.packed(Format::Q4_0, 24, 64);
                let form = NormAddLinear { sum: NormAdd { norm: RMS }, linear: Linear::PLAIN };
                let results = o.form(form, &[x, gamma, other, w]);
                let gate = o.input(&[rows, 24]);
                vec![results[0], o.push(Glu { kind: GluKind::GegluTanh }, &[results[1], gate])]
            });
        cases.push(case.alike());
    }
    cases
}
