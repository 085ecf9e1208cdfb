//! Cases of `set`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rows: &[(&[usize], &[usize], [usize; 4])] = &[
        (&[7, 33], &[7, 33], [0, 0, 0, 0]),
        (&[7, 33], &[1, 1], [0, 0, 6, 32]),
        (&[7, 33], &[3, 9], [0, 0, 2, 5]),
        (&[2, 3, 40], &[1, 2, 6], [0, 1, 0, 3]),
        (&[3, 4, 5, 6], &[2, 3, 4, 5], [1, 1, 0, 1]),
        (&[17], &[4], [0, 0, 0, 6]),
    ];
    let case = |&(dims, part, at): &(&[usize], &[usize], [usize; 4])| {
        Case::new(Set { at }, format!("{part:?} in {dims:?} at {at:?}"), StepParams::at(0, 1), |o| {
            vec![o.input(dims), o.input(part)]
        })
    };
    rows.iter().map(case).collect()
}
