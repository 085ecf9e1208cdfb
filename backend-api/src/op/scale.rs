//! `scale`: all elements times a number, plus another.
//!
//! *Operands*: x `[..]`. *Results*: like x, `factor * x + bias`.

use super::describe::{Describe, F32, Output, arity, ensure, floats};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Multiplies each element.
    pub factor: f32,
    /// Is added to each product.
    pub bias: f32,
}

impl Describe for Scale {
    const NAME: &'static str = "scale";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        ensure(self.factor.is_finite() && self.bias.is_finite(), || "factor and bias must be finite".into())?;
        Ok(vec![Output::New(x.shape, DType::F32)])
    }
}
