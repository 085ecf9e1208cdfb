//! Cases of `glu`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in GluKind::ALL.iter().copied() {
        let shapes: [&[usize]; 3] = [&[7, 33], &[1, 1536], &[2, 3, 40]];
        for dims in shapes {
            cases.push(Case::new(Glu { kind }, format!("{} {dims:?}", kind.name()), StepParams::at(0, 1), |o| {
                vec![o.filled(dims, Fill::Uniform(-150.0, 150.0)), o.input(dims)]
            }));
        }
    }
    cases
}
