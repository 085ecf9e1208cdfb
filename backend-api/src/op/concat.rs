//! `concat`: two tensors one after the other along an axis.
//!
//! *Operands*: a, b that differ in dimension `axis` at most. *Results*: that dimension is the sum.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats, shape};
use crate::tensor::{DType, Shape, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concat {
    /// The axis, outermost first.
    pub axis: usize,
}

impl Concat {
    /// Where b begins in the result, as [`Shape::dims4`] has dimensions.
    pub fn first(&self, a: &Shape) -> [usize; 4] {
        let mut first = [0; 4];
        // The axis is one of a's.
        first[4 - a.rank() + self.axis] = a.dim(self.axis);
        first
    }
}

impl Describe for Concat {
    const NAME: &'static str = "concat";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [a, b] = arity(inputs)?;
        floats(&[a, b])?;
        let rank = a.shape.rank();
        ensure(rank == b.shape.rank() && self.axis < rank, || "ranks and axis do not match".into())?;
        let mut dims: Vec<usize> = a.shape.dims().collect();
        for (axis, (dim, other)) in dims.iter_mut().zip(b.shape.dims()).enumerate() {
            if axis == self.axis {
                *dim += other;
            } else {
                ensure(*dim == other, || format!("dimensions {dim} and {other} differ"))?;
            }
        }
        Ok(vec![Output::New(shape(&dims)?, DType::F32)])
    }
}
