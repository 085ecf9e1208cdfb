//! Cases of `repeat`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rows: &[(&[usize], [usize; 4])] = &[
        (&[7, 33], [1, 1, 1, 1]),
        (&[7, 33], [1, 1, 1, 3]),
        (&[7, 33], [1, 1, 2, 1]),
        (&[2, 3, 5], [1, 4, 1, 2]),
        (&[2, 3, 4, 5], [2, 3, 2, 3]),
        (&[9], [1, 1, 1, 5]),
        (&[1, 6], [1, 1, 50, 1]),
    ];
    let case = |&(dims, times): &(&[usize], [usize; 4])| {
        Case::new(Repeat { times }, format!("{dims:?} {times:?} times"), StepParams::at(0, 1), |o| vec![o.input(dims)])
    };
    rows.iter().map(case).collect()
}
