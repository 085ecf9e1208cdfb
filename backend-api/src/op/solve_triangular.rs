//! `solve_triangular`: the solution of a lower triangular system, by forward substitution.
//!
//! *Operands*: a `[.., n, n]`, of which what lies above the diagonal is not read, and no number on it may be 0;
//! b `[.., n, k]`. *Results*: x like b, where `a x = b` for each matrix of the batch.
//!
//! *Source*: G. Golub, C. Van Loan, "Matrix Computations", section 3.1; `trsm` of BLAS, `ggml_solve_tri`.

use super::describe::{Describe, F32, Output, arity, ensure, floats};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SolveTriangular;

impl Describe for SolveTriangular {
    const NAME: &'static str = "solve_triangular";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [a, b] = arity(inputs)?;
        floats(&[a, b])?;
        ensure(a.shape.rank() >= 2 && a.shape.rank() == b.shape.rank(), || "a and b must be matrices".into())?;
        let ([a0, a1, rows, cols], [b0, b1, n, _]) = (a.shape.dims4(), b.shape.dims4());
        ensure(rows == cols && n == cols && [a0, a1] == [b0, b1], || {
            format!("{n} rows need as many square matrices [.., {n}, {n}] as there are right-hand sides")
        })?;
        Ok(vec![Output::New(b.shape, DType::F32)])
    }
}
