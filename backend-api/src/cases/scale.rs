//! Cases of `scale`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let shapes: [&[usize]; 4] = [&[1, 640], &[7, 33], &[2, 3, 5, 16], &[1000]];
    for dims in shapes {
        for (factor, bias) in [(25.298_221, 0.0), (1.0 / 30.0, 0.0), (-2.0, 3.5)] {
            let name = format!("{dims:?} {factor} x + {bias}");
            cases.push(Case::new(Scale { factor, bias }, name, StepParams::at(0, 1), |o| {
                vec![o.filled(dims, Fill::Uniform(-10.0, 10.0))]
            }));
        }
    }
    cases
}
