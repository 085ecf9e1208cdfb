//! `cumsum`: the sums of each row up to each of its elements, which is included.
//!
//! *Operands*: x `[.., n]`. *Results*: like x.

use super::describe::{Describe, F32, Output, arity, floats};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cumsum;

impl Describe for Cumsum {
    const NAME: &'static str = "cumsum";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        Ok(vec![Output::New(x.shape, DType::F32)])
    }
}
