//! Cases of `weighted_sum`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let sizes: [[usize; 3]; 5] = [[1, 2, 64], [1, 8, 2048], [5, 3, 33], [19, 4, 96], [2, 1, 7]];
    let case = |[t, u, m]: [usize; 3]| {
        Case::new(WeightedSum, format!("{t}x{u}x{m}"), StepParams::at(0, t as u32), |o| {
            vec![o.input(&[t, u, m]), o.filled(&[t, u], Fill::Uniform(0.0, 1.0))]
        })
    };
    sizes.map(case).into()
}
