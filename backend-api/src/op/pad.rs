//! `pad`: zeros before and after the elements of each dimension.
//!
//! *Operands*: x of any shape. *Results*: of the same rank, dimension `i` being `before + dim + after`.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats, shape};
use crate::tensor::{DType, Tensor};

/// See the [module page](self). Dimensions are four, as in [`Shape::dims4`](crate::tensor::Shape::dims4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pad {
    /// Zeros before each dimension's elements.
    pub before: [usize; 4],
    /// Zeros after them.
    pub after: [usize; 4],
}

impl Describe for Pad {
    const NAME: &'static str = "pad";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        let (mut dims, lead) = (x.shape.dims4(), 4 - x.shape.rank());
        for (axis, dim) in dims.iter_mut().enumerate() {
            let zeros = self.before[axis].checked_add(self.after[axis]).ok_or("there are too many zeros")?;
            ensure(axis >= lead || zeros == 0, || format!("rank {} has fewer dimensions to pad", x.shape.rank()))?;
            *dim = dim.checked_add(zeros).ok_or("there are too many zeros")?;
        }
        Ok(vec![Output::New(shape(&dims[lead..])?, DType::F32)])
    }
}
