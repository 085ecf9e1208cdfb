//! `slice`: some columns.
//!
//! *Operands*: x `[.., n]`. *Results*: `[.., len]`, columns `start..start + len`.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats, with_cols};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// The first column.
    pub start: usize,
    /// The number of columns.
    pub len: usize,
}

impl Describe for Slice {
    const NAME: &'static str = "slice";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        let fits = self.start.checked_add(self.len).is_some_and(|end| end <= x.shape.cols());
        ensure(fits, || format!("columns {}+{} are out of range", self.start, self.len))?;
        Ok(vec![Output::New(with_cols(&x.shape, self.len)?, DType::F32)])
    }
}
