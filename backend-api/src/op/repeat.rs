//! `repeat`: a tensor as a tile, several times along each dimension.
//!
//! *Operands*: x of any shape. *Results*: of the same rank, dimension `i` being `times * dim`.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats, shape};
use crate::tensor::{DType, Tensor};

/// See the [module page](self). Dimensions are four, as in [`Shape::dims4`](crate::tensor::Shape::dims4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// How often along each dimension.
    pub times: [usize; 4],
}

impl Describe for Repeat {
    const NAME: &'static str = "repeat";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        let (mut dims, lead) = (x.shape.dims4(), 4 - x.shape.rank());
        for (axis, (dim, times)) in dims.iter_mut().zip(self.times).enumerate() {
            ensure(axis >= lead || times == 1, || format!("rank {} has fewer dimensions to repeat", x.shape.rank()))?;
            *dim = dim.checked_mul(times).ok_or("there are too many elements")?;
        }
        Ok(vec![Output::New(shape(&dims[lead..])?, DType::F32)])
    }
}
