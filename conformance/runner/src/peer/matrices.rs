//! Systems of equations, and products with matrices of one kind.

use super::operators::{Mapped, NO_OPERATOR, floats};
use super::row::Row;
use backend_api::StepParams;
use backend_api::case::{Case, Fill};
use backend_api::op::{MatMul, SolveTriangular};

pub fn solve_tri(row: &Row) -> Mapped {
    floats(row)?;
    let [a, b] = &row.sources[..] else { return Err(NO_OPERATOR) };
    Ok(Case::new(SolveTriangular, &row.text, StepParams::at(0, 1), |o| {
        // What lies above the diagonal is not read.
        vec![o.filled(&a.shape(), Fill::Uniform(0.1, 1.0)), o.input(&b.shape())]
    }))
}

pub fn hadamard(row: &Row) -> Mapped {
    floats(row)?;
    let [a, b] = &row.sources[..] else { return Err(NO_OPERATOR) };
    let n = a.dims[0];
    let size = 1.0 / (n as f32).sqrt();
    let even = |at: usize| ((at / n) & (at % n)).count_ones().is_multiple_of(2);
    let matrix = (0..n * n).map(|at| if even(at) { size } else { -size }).collect();
    Ok(Case::new(MatMul, &row.text, StepParams::at(0, 1), |o| {
        vec![o.input(&b.shape()), o.filled(&a.shape(), Fill::Values(matrix))]
    }))
}
