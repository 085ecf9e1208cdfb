//! Cases of `concat`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rows: &[(&[usize], &[usize], usize)] = &[
        (&[7, 33], &[7, 2], 1),
        (&[7, 33], &[1, 33], 0),
        (&[2, 3, 5], &[2, 4, 5], 1),
        (&[2, 3, 4, 5], &[2, 3, 4, 6], 3),
        (&[9], &[4], 0),
    ];
    let case = |&(a, b, axis): &(&[usize], &[usize], usize)| {
        Case::new(Concat { axis }, format!("{a:?} {b:?} axis {axis}"), StepParams::at(0, 1), |o| {
            vec![o.input(a), o.input(b)]
        })
    };
    rows.iter().map(case).collect()
}
