//! Cases of `delta`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for [heads, heads_k, dk, dv] in [[4, 2, 6, 10], [16, 8, 16, 16], [3, 3, 33, 5]] {
        for (t, rows) in [(1, 1), (5, 3)] {
            let (keys, values) = (heads_k * dk, heads * dv);
            let key = (3.0 / dk as f32).sqrt();
            let part = |of, start, len| Columns { of, start, len };
            let net = GatedDeltaNet { grouped: heads == 16 };
            let all = Delta {
                net,
                q: part(1, 0, keys),
                k: part(1, keys, keys),
                v: part(2, 2 * keys, values),
                beta: part(3, 0, heads),
                g: part(3, heads, heads),
                gates: true,
            };
            let ungated = Delta { g: Columns::all(3, heads), beta: Columns::all(4, heads), gates: false, ..all };
            for (name, form) in [("gates", all), ("columns", ungated)] {
                let name =
                    format!("{name}, {heads} heads, keys of {heads_k} x {dk}, values of {dv}, {rows} of {t} rows");
                cases.push(Case::new(form, name, StepParams::at(3, rows), |o| {
                    let state = o.replaced(&[heads * dv, dk]);
                    let keys = o.filled(&[t, 2 * keys], Fill::Uniform(-key, key));
                    let mut operands = vec![state, keys, o.input(&[t, heads_k * dk * 2 + values + 3])];
                    if form.gates {
                        operands.extend([o.filled(&[t, 2 * heads], Fill::Uniform(-3.0, 3.0)), o.weight(&[heads])]);
                        operands.push(o.external(Kind::Weight, &[heads], DType::F32, Fill::Uniform(-1.5, -0.1)));
                    } else {
                        operands.push(o.filled(&[t, heads], Fill::Uniform(-2.0, 0.0)));
                        operands.push(o.filled(&[t, heads], Fill::Uniform(0.0, 1.0)));
                    }
                    operands
                }));
            }
        }
    }
    cases
}
