//! `permute`: copy, reshape and transpose.
//!
//! *Operands*: x of any shape, taken as if it had the shape `view` (of as many elements).
//! *Results*: dimension `i` of the result is dimension `perm[i]` of the view.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats, shape};
use crate::tensor::{DType, Shape, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, PartialEq)]
pub struct Permute {
    /// The shape that x is taken to have.
    pub view: Shape,
    /// Which dimension of the view comes where.
    pub perm: Vec<usize>,
}

impl Permute {
    /// The four-dimensional form: view dimensions and permutation, padded with leading ones.
    pub fn normalized(&self) -> ([usize; 4], [usize; 4]) {
        let pad = 4 - self.perm.len();
        let mut perm = [0, 1, 2, 3];
        for (slot, axis) in perm[pad..].iter_mut().zip(&self.perm) {
            *slot = axis + pad;
        }
        (self.view.dims4(), perm)
    }
}

impl Describe for Permute {
    const NAME: &'static str = "permute";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        ensure(x.shape.len() == self.view.len(), || format!("the view {} has another size", self.view))?;
        let rank = self.view.rank();
        let is_permutation = self.perm.len() == rank && (0..rank).all(|axis| self.perm.contains(&axis));
        ensure(is_permutation, || format!("{:?} is not a permutation", self.perm))?;
        let dims: Vec<usize> = self.perm.iter().map(|axis| self.view.dim(*axis)).collect();
        Ok(vec![Output::New(shape(&dims)?, DType::F32)])
    }
}
