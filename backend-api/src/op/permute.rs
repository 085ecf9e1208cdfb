//! `permute`: copy, reshape and transpose.
//!
//! *Operands*: x of any shape, floats or halves, taken as if it had the shape `view` (of as many elements).
//! *Results*: dimension `i` of the result is dimension `perm[i]` of the view.

use super::{Describe, EXACT, Output, arity, ensure, floats_or_halves, shape};
use crate::case::Case;
use crate::step::StepParams;
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
        floats_or_halves(&[x])?;
        ensure(x.shape.len() == self.view.len(), || format!("the view {} has another size", self.view))?;
        let mut seen: Vec<usize> = self.perm.clone();
        seen.sort_unstable();
        ensure(seen.iter().copied().eq(0..self.view.rank()), || format!("{:?} is no permutation", self.perm))?;
        let dims: Vec<usize> = self.perm.iter().map(|axis| self.view.dim(*axis)).collect();
        Ok(vec![Output::New(shape(&dims)?, DType::F32)])
    }

    fn cases() -> Vec<Case> {
        let rows: &[(&[usize], &[usize], &[usize])] = &[
            (&[7, 33], &[7, 33], &[0, 1]),
            (&[7, 33], &[7, 33], &[1, 0]),
            (&[6, 35], &[6, 5, 7], &[1, 0, 2]),
            (&[4, 64], &[4, 2, 32], &[1, 2, 0]),
            (&[30], &[2, 3, 5], &[0, 1, 2]),
            (&[2, 3, 4, 5], &[2, 3, 4, 5], &[3, 1, 0, 2]),
            (&[2, 3, 4, 5], &[120], &[0]),
        ];
        let case = |&(x, view, perm): &(&[usize], &[usize], &[usize])| {
            let view = Shape::new(view).expect("cases are well-formed");
            let op = Permute { view, perm: perm.to_vec() };
            Case::new(op, format!("{x:?} as {view} {perm:?}"), StepParams::at(0, 1), |o| vec![o.input(x)])
        };
        let halves = Permute { view: Shape::new(&[5, 2, 8]).expect("well-formed"), perm: vec![1, 2, 0] };
        let halves = Case::new(halves, "halves", StepParams::at(0, 1), |o| vec![o.halves(&[5, 16])]);
        rows.iter().map(case).chain([halves]).collect()
    }
}
