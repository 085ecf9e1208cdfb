//! Cases of `tri`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in TriKind::ALL {
        let shapes: [&[usize]; 4] = [&[33, 33], &[3, 9], &[2, 3, 10, 4], &[1, 1]];
        for dims in shapes {
            cases.push(Case::new(Tri { kind }, format!("{kind:?} of {dims:?}"), StepParams::at(0, 1), |o| {
                vec![o.input(dims)]
            }));
        }
    }
    cases
}
