//! Cases of `xielu`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rows: &[(&[usize], Xielu, f32)] = &[
        (&[7, 33], Xielu { positive: 20.0, negative: 4.5, linear: 0.5, eps: 1e-7 }, 150.0),
        (&[2, 3, 40], Xielu { positive: 0.8, negative: 1.3, linear: 0.5, eps: -1e-6 }, 4.0),
        (&[1000], Xielu { positive: 0.8, negative: 1.3, linear: 0.5, eps: -0.25 }, 1.0),
        (&[5, 33], Xielu { positive: 0.8, negative: 1.3, linear: 0.5, eps: 0.0 }, 1e-3),
    ];
    let case = |&(dims, op, size): &(&[usize], Xielu, f32)| {
        Case::new(op, format!("{dims:?} eps {} up to {size}", op.eps), StepParams::at(0, 1), |o| {
            vec![o.filled(dims, Fill::Uniform(-size, size))]
        })
    };
    rows.iter().map(case).collect()
}
