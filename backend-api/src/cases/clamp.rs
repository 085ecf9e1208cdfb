//! Cases of `clamp`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rows: &[(&[usize], f32, f32)] =
        &[(&[7, 33], -0.5, 0.5), (&[1000], 0.0, f32::MAX), (&[2, 3, 40], f32::MIN, -0.25), (&[5, 6], 0.125, 0.125)];
    let case = |&(dims, lo, hi): &(&[usize], f32, f32)| {
        Case::new(Clamp { lo, hi }, format!("{dims:?} in {lo:e}..{hi:e}"), StepParams::at(0, 1), |o| {
            vec![o.input(dims)]
        })
    };
    rows.iter().map(case).collect()
}
