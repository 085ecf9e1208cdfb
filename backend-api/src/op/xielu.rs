//! `xielu`: an activation that is a parabola above zero and bends towards a line below it.
//!
//! *Operands*: x `[..]`. *Results*: like x, `linear * x` and, above zero, `positive * x^2`, else
//! `negative * (e^min(x, eps) - 1 - x)`.
//! *Source*: Huang and Schlag, "Deriving Activation Functions Using Integration", 2024; `ggml_xielu`, whose graph builder
//! makes `positive = softplus(alpha_p)` and `negative = linear + softplus(alpha_n)` of a file's parameters.

use super::describe::{Describe, F32, Output, arity, ensure, floats};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Xielu {
    /// How much of the parabola.
    pub positive: f32,
    /// How much of the exponential.
    pub negative: f32,
    /// The slope at zero.
    pub linear: f32,
    /// Bound of the exponents.
    pub eps: f32,
}

impl Describe for Xielu {
    const NAME: &'static str = "xielu";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        let finite = [self.positive, self.negative, self.linear, self.eps].iter().all(|number| number.is_finite());
        ensure(finite, || "parameters must be finite".into())?;
        Ok(vec![Output::New(x.shape, DType::F32)])
    }
}
