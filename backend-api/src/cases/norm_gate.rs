//! Cases of `norm_gate`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in NormKind::ALL {
        for (t, cols, heads, more) in [(1, 64, 4, 0), (3, 48, 4, 5), (2, 33, 1, 8), (5, 30, 5, 1)] {
            let params = kind.params();
            let gate = Columns { of: 1 + params, start: more, len: cols };
            let form = NormGate { norm: Norm { kind, eps: 1e-5, heads }, kind: GluKind::Swiglu, gate };
            let name = format!("{kind:?}, {heads} heads of {cols} columns, {t} rows");
            cases.push(Case::new(form, name, StepParams::at(0, 1), |o| {
                let x = o.filled(&[t, cols], Fill::Uniform(-10.0, 11.0));
                let weights: Vec<_> = (0..params).map(|_| o.weight(&[cols / heads])).collect();
                let gate = o.input(&[t, cols + 2 * more]);
                [x].into_iter().chain(weights).chain([gate]).collect()
            }));
        }
    }
    cases
}
