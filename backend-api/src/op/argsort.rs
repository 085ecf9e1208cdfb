//! `argsort`: the indices of each row's elements in order, of equals the first first.
//!
//! *Operands*: x `[.., n]`. *Results*: like x, i32. NaN counts as larger than any number.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argsort {
    /// Whether the largest comes first.
    pub descending: bool,
}

impl Argsort {
    /// The longest row: indices pass through textures of floats, which hold no more integers.
    pub const MAX: usize = 1 << 24;
}

impl Describe for Argsort {
    const NAME: &'static str = "argsort";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        ensure(x.shape.cols() <= Self::MAX, || format!("rows of {} are longer than {}", x.shape.cols(), Self::MAX))?;
        Ok(vec![Output::New(x.shape, DType::I32)])
    }
}
