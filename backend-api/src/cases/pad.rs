//! Cases of `pad`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    // (dimensions, before, after)
    type Row = (&'static [usize], [usize; 4], [usize; 4]);
    let rows: &[Row] = &[
        (&[7, 33], [0, 0, 0, 0], [0, 0, 0, 0]),
        (&[7, 33], [0, 0, 0, 3], [0, 0, 0, 2]),
        (&[7, 33], [0, 0, 2, 0], [0, 0, 1, 0]),
        (&[2, 3, 40], [0, 1, 0, 5], [0, 0, 2, 0]),
        (&[2, 3, 4, 5], [1, 2, 3, 4], [2, 1, 0, 3]),
        (&[9], [0, 0, 0, 4], [0, 0, 0, 1]),
    ];
    let round: &[Row] = &[
        (&[7, 33], [0, 0, 2, 0], [0, 0, 1, 3]),
        (&[2, 3, 4, 5], [1, 2, 3, 4], [2, 1, 0, 3]),
        // Several times round.
        (&[2, 3], [0, 0, 5, 7], [0, 0, 4, 8]),
        (&[9], [0, 0, 0, 9], [0, 0, 0, 9]),
    ];
    let case = |(&(dims, before, after), circular): (&Row, bool)| {
        let name = format!("{before:?} {dims:?} {after:?}{}", if circular { " circular" } else { "" });
        Case::new(Pad { before, after, circular }, name, StepParams::at(0, 1), |o| vec![o.input(dims)])
    };
    rows.iter().map(|row| (row, false)).chain(round.iter().map(|row| (row, true))).map(case).collect()
}
