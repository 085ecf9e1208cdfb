//! Cases of `binary`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let shapes: &[(&[usize], &[usize])] = &[
        (&[7, 33], &[7, 33]),
        (&[7, 33], &[33]),
        (&[7, 33], &[1]),
        (&[5, 64], &[5, 1]),
        (&[64], &[5, 64]),
        (&[2, 3, 4, 10], &[3, 1, 10]),
        (&[2, 1, 4, 1], &[1, 3, 1, 10]),
    ];
    let mut cases = Vec::new();
    for kind in BinaryKind::ALL.iter().copied() {
        for (a, b) in shapes {
            cases.push(Case::new(Binary { kind }, format!("{} {a:?} {b:?}", kind.name()), StepParams::at(0, 1), |o| {
                vec![o.input(a), o.filled(b, Fill::Uniform(0.5, 1.5))]
            }));
        }
    }
    cases
}
