//! Cases of `solve_triangular`.

use super::prelude::*;

/// A matrix with ones on its diagonal, and small numbers elsewhere.
fn tame(n: usize) -> Vec<f32> {
    let small = |at: usize| 0.001 * ((at * 37 % 101) as f32 - 50.0);
    (0..n * n).map(|at| if at % (n + 1) == 0 { 1.0 } else { small(at) }).collect()
}

pub(super) fn cases() -> Vec<Case> {
    let rows: &[(&[usize], usize)] = &[
        (&[1], 1),
        (&[2], 5),
        (&[3], 4),
        (&[4], 7),
        (&[9], 3),
        (&[2, 16], 8),
        (&[3, 2, 17], 6),
        (&[64], 33),
        (&[400], 5),
    ];
    let case = |&(dims, k): &(&[usize], usize)| {
        let (n, batch) = (dims[dims.len() - 1], &dims[..dims.len() - 1]);
        let [square, sides] = [n, k].map(|cols| [batch, &[n, cols]].concat());
        Case::new(SolveTriangular, format!("{square:?} for {sides:?}"), StepParams::at(0, 1), |o| {
            // What lies above the diagonal is there, and is not read. Solutions of random systems grow from row to row.
            let fill = if n < 100 { Fill::Uniform(0.1, 1.0) } else { Fill::Values(tame(n)) };
            vec![o.filled(&square, fill), o.input(&sides)]
        })
    };
    rows.iter().map(case).collect()
}
