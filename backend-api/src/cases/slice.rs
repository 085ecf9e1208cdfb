//! Cases of `slice`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rows: &[(&[usize], usize, usize)] =
        &[(&[7, 33], 0, 33), (&[7, 33], 5, 9), (&[4, 960], 576, 192), (&[2, 3, 40], 3, 6), (&[17], 16, 1)];
    let case = |&(dims, start, len): &(&[usize], usize, usize)| {
        Case::new(Slice { start, len }, format!("{dims:?} {start}+{len}"), StepParams::at(0, 1), |o| {
            vec![o.input(dims)]
        })
    };
    rows.iter().map(case).collect()
}
