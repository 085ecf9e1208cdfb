//! `argmax`: the index of the largest element of each row, the first of equals.
//!
//! *Operands*: x `[.., n]`. *Results*: `[..]` i32 (`[1]` for a vector). A row with an element that is NaN or infinite has
//! none: its id is -1, which is no token, so that what went wrong before is not taken for an answer.

use super::describe::{Describe, EXACT, Output, arity, floats, shape};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgMax;

impl Describe for ArgMax {
    const NAME: &'static str = "argmax";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        let rank = x.shape.rank();
        let dims: Vec<usize> = if rank > 1 { x.shape.dims().take(rank - 1).collect() } else { vec![1] };
        Ok(vec![Output::New(shape(&dims)?, DType::I32)])
    }
}
