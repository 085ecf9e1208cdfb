//! `set`: a tensor of which a box is replaced.
//!
//! *Operands*: x, and part of the same rank. *Results*: like x, but part from `at` on.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats};
use crate::tensor::{DType, Tensor};

/// See the [module page](self). Dimensions are four, as in [`Shape::dims4`](crate::tensor::Shape::dims4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set {
    /// Where the part begins along each dimension.
    pub at: [usize; 4],
}

impl Describe for Set {
    const NAME: &'static str = "set";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x, part] = arity(inputs)?;
        floats(&[x, part])?;
        ensure(x.shape.rank() == part.shape.rank(), || "x and its part have different ranks".into())?;
        for ((at, len), dim) in self.at.into_iter().zip(part.shape.dims4()).zip(x.shape.dims4()) {
            let fits = at.checked_add(len).is_some_and(|end| end <= dim);
            ensure(fits, || format!("{len} elements from {at} on are out of a dimension of {dim}"))?;
        }
        Ok(vec![Output::New(x.shape, DType::F32)])
    }
}
