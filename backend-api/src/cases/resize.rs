//! Cases of `resize`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    // Larger, smaller, both, one row or column, other dimensions too, four columns and more of a row.
    let sizes: &[(&[usize], [usize; 4])] = &[
        (&[4, 6], [1, 1, 8, 12]),
        (&[5, 7], [1, 1, 11, 16]),
        (&[13, 10], [1, 1, 4, 3]),
        (&[6, 9], [1, 1, 17, 5]),
        (&[2, 1, 5], [1, 2, 3, 1]),
        (&[7, 1], [1, 1, 1, 9]),
        (&[3, 5, 4, 3], [5, 3, 7, 6]),
        (&[2, 3, 24, 33], [2, 3, 48, 66]),
        (&[1, 2, 40, 70], [1, 2, 9, 8]),
    ];
    let aligned = [ResizeMode::Linear, ResizeMode::Cubic].map(|mode| (mode, true));
    let modes = ResizeMode::ALL.map(|mode| (mode, false)).into_iter().chain(aligned);
    let case = |(mode, align_corners, dims, to): (ResizeMode, bool, &[usize], [usize; 4])| {
        let corners = if align_corners { " aligned" } else { "" };
        let op = Resize { dims: to, mode, align_corners };
        Case::new(op, format!("{mode:?}{corners} {dims:?} to {to:?}"), StepParams::at(0, 1), |o| vec![o.input(dims)])
    };
    modes.flat_map(|(mode, corners)| sizes.iter().map(move |(dims, to)| case((mode, corners, dims, *to)))).collect()
}
