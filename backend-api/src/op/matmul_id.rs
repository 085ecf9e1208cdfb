//! `matmul_id`: each row times the matrix of an expert that is chosen by its id, of many in one tensor.
//!
//! *Operands*: x `[t, k]`, or `[t, u, k]` with a row for each choice; w `[r, k]` packed, the rows of all experts; ids
//! `[t, u]`. Without ids, x is `[t, u, k]` and the choice c goes to the expert c, as heads do to matrices of their own.
//! *Results*: `[t, u, rows]`: `y[i][c] = x[i](, [c]) * E^T`, where E is the rows
//! `first + ids[i][c] * stride ..` of w, `rows` of them. Ids below 0 count as 0, those of no expert as the last one.
//!
//! Only the matrices that are chosen are read.
//! *Source*: `ggml_mul_mat_id`.

use super::describe::{Describe, F32, Output, arity, ensure, floats, shape};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatMulId {
    /// Rows of an expert's matrix.
    pub rows: usize,
    /// Rows of w from one expert to the next.
    pub stride: usize,
    /// Rows of w before the first expert's.
    pub first: usize,
}

impl MatMulId {
    /// Matrices one below the other, with nothing between them.
    pub fn dense(rows: usize) -> MatMulId {
        MatMulId { rows, stride: rows, first: 0 }
    }

    /// The experts of a matrix of so many rows.
    pub fn experts(&self, w_rows: usize) -> usize {
        w_rows.checked_sub(self.first + self.rows).map_or(0, |rest| rest / self.stride.max(1) + 1)
    }
}

impl Describe for MatMulId {
    const NAME: &'static str = "matmul_id";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let (x, w, ids) = match *inputs {
            [x, w] => (x, w, None),
            _ => arity(inputs).map(|[x, w, ids]| (x, w, Some(ids)))?,
        };
        floats(&[x])?;
        ensure(matches!(w.dtype, DType::Packed(_)), || "operand 1 must be packed".into())?;
        ensure(w.shape.rank() == 2 && w.shape.cols() == x.shape.cols(), || "the inner dimensions differ".into())?;
        let some = self.rows > 0 && self.stride >= self.rows && self.experts(w.shape.rows()) > 0;
        ensure(some, || format!("{} rows hold no expert of {} rows", w.shape.rows(), self.rows))?;
        let k = x.shape.cols();
        let Some(ids) = ids else {
            ensure(x.shape.rank() == 3, || "without ids, x must have a row for each choice".into())?;
            let (t, u, experts) = (x.shape.dim(0), x.shape.dim(1), self.experts(w.shape.rows()));
            ensure(u <= experts, || format!("{u} choices exceed {experts} experts"))?;
            return Ok(vec![Output::New(shape(&[t, u, self.rows])?, DType::F32)]);
        };
        ensure(ids.dtype == DType::I32 && ids.shape.rank() == 2, || "ids must be a matrix of integers".into())?;
        let (t, u) = (ids.shape.dim(0), ids.shape.dim(1));
        let fits = x.shape.dims().eq([t, k]) || x.shape.dims().eq([t, u, k]);
        ensure(fits, || format!("x must be [{t}, {k}] or [{t}, {u}, {k}]"))?;
        Ok(vec![Output::New(shape(&[t, u, self.rows])?, DType::F32)])
    }
}
