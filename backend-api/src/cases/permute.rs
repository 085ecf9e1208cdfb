//! Cases of `permute`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rows: &[(&[usize], &[usize], &[usize])] = &[
        (&[7, 33], &[7, 33], &[0, 1]),
        (&[7, 33], &[7, 33], &[1, 0]),
        (&[6, 35], &[6, 5, 7], &[1, 0, 2]),
        (&[4, 64], &[4, 2, 32], &[1, 2, 0]),
        (&[30], &[2, 3, 5], &[0, 1, 2]),
        (&[2, 3, 4, 5], &[2, 3, 4, 5], &[3, 1, 0, 2]),
        (&[2, 3, 4, 5], &[120], &[0]),
    ];
    let case = |&(x, view, perm): &(&[usize], &[usize], &[usize])| {
        let view = Shape::new(view).expect("cases are well-formed");
        let op = Permute { view, perm: perm.to_vec() };
        Case::new(op, format!("{x:?} as {view} {perm:?}"), StepParams::at(0, 1), |o| vec![o.input(x)])
    };
    rows.iter().map(case).collect()
}
