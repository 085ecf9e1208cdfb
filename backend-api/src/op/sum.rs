//! `sum`: the sum of each row.
//!
//! *Operands*: x `[.., n]`. *Results*: `[.., 1]`.

use super::describe::{Describe, F32, Output, arity, floats, with_cols};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum;

impl Describe for Sum {
    const NAME: &'static str = "sum";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        Ok(vec![Output::New(with_cols(&x.shape, 1)?, DType::F32)])
    }
}
