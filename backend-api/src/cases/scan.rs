//! Cases of `scan`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, rows) in [(1, 1), (5, 3), (19, 19)] {
        // As Mamba 2 has it: all of one projection and of what a convolution makes of a part of it.
        for [d, heads, n, groups] in [[48, 6, 8, 2], [64, 4, 128, 1], [30, 5, 7, 1]] {
            let mixes = groups * n;
            let inner = |start, len| Columns { of: 1, start, len };
            let form = Scan {
                x: inner(0, d),
                b: inner(d, mixes),
                c: inner(d + mixes, mixes),
                dt: Columns { of: 2, start: 2 * d + 2 * mixes, len: heads },
                bias: true,
                gate: Some((GluKind::Swiglu, Columns { of: 2, start: 0, len: d })),
            };
            let name = format!("{heads} heads of {d} channels, states of {n}, {rows} of {t} rows");
            cases.push(Case::new(form, name, StepParams::at(3, rows), |o| {
                let inner = [o.replaced(&[d, n]), o.input(&[t, d + 2 * mixes])];
                let outer = o.input(&[t, 2 * d + 2 * mixes + heads]);
                let a = o.external(Kind::Weight, &[heads, 1], DType::F32, Fill::Uniform(-1.5, -0.1));
                vec![inner[0], inner[1], outer, a, o.weight(&[heads]), o.weight(&[heads])]
            }));
        }
        // As Mamba has it.
        let (d, n, rank) = (70, 16, 5);
        let mix = |start| Columns { of: 3, start, len: n };
        let form = Scan {
            x: Columns::all(1, d),
            dt: Columns::all(2, d),
            b: mix(rank),
            c: mix(rank + n),
            bias: false,
            gate: Some((GluKind::Swiglu, Columns { of: 4, start: d, len: d })),
        };
        let ungated = Scan { gate: None, ..form };
        for (name, form) in [("a pace a channel", form), ("no gate", ungated)] {
            let name = format!("{name}, {rows} of {t} rows");
            cases.push(Case::new(form, name, StepParams::at(3, rows), |o| {
                let mut operands = vec![o.replaced(&[d, n]), o.input(&[t, d])];
                operands.extend([o.filled(&[t, d], Fill::Uniform(-6.0, 3.0)), o.input(&[t, rank + 2 * n])]);
                operands.extend(form.gate.map(|_| o.input(&[t, 2 * d])));
                let a = o.external(Kind::Weight, &[d, n], DType::F32, Fill::Uniform(-1.5, -0.1));
                operands.extend([a, o.weight(&[d])]);
                operands
            }));
        }
    }
    cases
}
