//! Cases of `pick`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: &str, [rows, n]: [usize; 2], ids: &[usize], fill: Fill| {
        let name = format!("{name} {rows}x{n} by {ids:?}");
        cases.push(Case::new(Pick, name, StepParams::at(0, 1), |o| {
            let x = o.input(&[rows, n]);
            vec![x, o.external(Kind::Input, ids, DType::I32, fill)]
        }));
    };
    add("", [1, 50], &[1, 20], Fill::Integers(50));
    add("", [3, 33], &[3, 7], Fill::Integers(33));
    add("one each of", [1, 9], &[1], Fill::Integers(9));
    add("one each of", [5, 9], &[5], Fill::Integers(9));
    add("no columns of", [2, 9], &[2, 5], Fill::Values(vec![-1.0, 8.0, 9.0, 0.0, 1000.0]));
    add("a vocabulary", [1, 49_155], &[1, 20], Fill::Integers(49_155));
    cases
}
