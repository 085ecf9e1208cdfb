//! `pick`: elements of each row, by their columns.
//!
//! *Operands*: x `[rows, n]` f32; ids i32, `[rows, k]`, or `[rows]` for one of each. *Results*: `[rows, k]` f32. An id that is
//! no column, such as the -1 of a row that is not finite, picks 0.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats, shape};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick;

impl Describe for Pick {
    const NAME: &'static str = "pick";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x, ids] = arity(inputs)?;
        floats(&[x])?;
        ensure(ids.dtype == DType::I32, || "ids must be i32".into())?;
        let rows = x.shape.rows();
        let fits = x.shape.rank() == 2 && ids.shape.rank() <= 2 && ids.shape.dim(0) == rows;
        ensure(fits, || format!("x must be [rows, n] and ids [rows, k], not {} and {}", x.shape, ids.shape))?;
        Ok(vec![Output::New(shape(&[rows, ids.shape.len() / rows])?, DType::F32)])
    }
}
