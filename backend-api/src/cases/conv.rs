//! Cases of `conv`.

use super::prelude::*;

/// Channels, taps, rows, and those of them that are real.
const SIZES: [[usize; 4]; 4] = [[64, 4, 1, 1], [33, 3, 5, 3], [6, 3, 1, 1], [130, 4, 8, 8]];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for [d, taps, t, rows] in SIZES {
        let mut add = |name: &str, form: Conv, cols: usize| {
            let name = format!("{name}, {taps} taps of {d} channels, {rows} of {t} rows");
            cases.push(Case::new(form, name, StepParams::at(3, rows as u32), |o| {
                let mut operands = vec![o.replaced(&[taps - 1, d]), o.input(&[t, cols]), o.weight(&[d, taps])];
                operands.extend(form.bias.then(|| o.weight(&[d])));
                operands
            }));
        };
        let columns = |start: usize| Columns { of: 1, start, len: d };
        let silu = Some(UnaryKind::Silu);
        let plain = Conv::plain(d);
        add("bias and activation", Conv { bias: true, activation: silu, ..plain }, d);
        add("of columns", Conv { x: columns(7), activation: silu, ..plain }, d + 12);
        add("of the first columns", Conv { x: columns(0), bias: true, ..plain }, d + 4);
        let gates = Conv { x: columns(2 * d), gate: Some(columns(0)), gate_out: Some(columns(d)), ..plain };
        add("between gates", gates, 3 * d);
        add("behind a gate", Conv { gate: Some(columns(d)), x: columns(0), ..plain }, 2 * d);
    }
    cases
}
