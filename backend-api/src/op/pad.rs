//! `pad`: zeros before and after the elements of each dimension, or the same elements again.
//!
//! *Operands*: x of any shape. *Results*: of the same rank, dimension `i` being `before + dim + after`. What is
//! around the elements is 0; with `circular` they go round, so that the last one lies before the first.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats, shape};
use crate::tensor::{DType, Tensor};

/// See the [module page](self). Dimensions are four, as in [`Shape::dims4`](crate::tensor::Shape::dims4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pad {
    /// How many lie before each dimension's elements.
    pub before: [usize; 4],
    /// How many lie after them.
    pub after: [usize; 4],
    /// Whether the elements go round.
    pub circular: bool,
}

impl Describe for Pad {
    const NAME: &'static str = "pad";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        let (mut dims, lead) = (x.shape.dims4(), 4 - x.shape.rank());
        for (axis, dim) in dims.iter_mut().enumerate() {
            let around = self.before[axis].checked_add(self.after[axis]).ok_or("there is too much around")?;
            ensure(axis >= lead || around == 0, || format!("rank {} has fewer dimensions to pad", x.shape.rank()))?;
            *dim = dim.checked_add(around).ok_or("there is too much around")?;
        }
        Ok(vec![Output::New(shape(&dims[lead..])?, DType::F32)])
    }
}
