//! Cases of `cumsum`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let shapes: [&[usize]; 8] =
        [&[7, 33], &[1, 1], &[3, 1], &[5, 4], &[2, 3, 5, 130], &[1000], &[2, 20_481], &[300, 9]];
    let case = |dims: &[usize]| Case::new(Cumsum, format!("{dims:?}"), StepParams::at(0, 1), |o| vec![o.input(dims)]);
    shapes.into_iter().map(case).collect()
}
