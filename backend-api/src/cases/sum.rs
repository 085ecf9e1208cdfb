//! Cases of `sum`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let shapes: [&[usize]; 8] =
        [&[7, 33], &[1, 1], &[3, 1], &[5, 4], &[2, 3, 5, 130], &[1000], &[1, 70_000], &[300, 9]];
    // Not around zero, where a sum would have few digits left.
    let case = |dims: &[usize]| {
        Case::new(Sum, format!("{dims:?}"), StepParams::at(0, 1), |o| vec![o.filled(dims, Fill::Uniform(-0.9, 1.1))])
    };
    shapes.into_iter().map(case).collect()
}
