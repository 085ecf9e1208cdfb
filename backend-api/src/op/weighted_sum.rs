//! `weighted_sum`: the rows of a token added up, each with its weight.
//!
//! *Operands*: x `[t, u, m]`, weights `[t, u]`. *Results*: `[t, m]`: `y[i] = sum over c of weights[i][c] * x[i][c]`.

use super::describe::{Describe, F32, Output, arity, ensure, floats, shape};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightedSum;

impl Describe for WeightedSum {
    const NAME: &'static str = "weighted_sum";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x, weights] = arity(inputs)?;
        floats(&[x, weights])?;
        ensure(x.shape.rank() == 3, || "operand 0 must have three dimensions".into())?;
        let (t, u, m) = (x.shape.dim(0), x.shape.dim(1), x.shape.dim(2));
        ensure(weights.shape.dims().eq([t, u]), || format!("the weights must be [{t}, {u}]"))?;
        Ok(vec![Output::New(shape(&[t, m])?, DType::F32)])
    }
}
