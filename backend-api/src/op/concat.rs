//! `concat`: two tensors one after the other along an axis.
//!
//! *Operands*: a, b that differ in dimension `axis` at most. *Results*: that dimension is the sum.

use super::{Describe, EXACT, Output, arity, ensure, floats, shape};
use crate::case::Case;
use crate::step::StepParams;
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concat {
    /// The axis, outermost first.
    pub axis: usize,
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

    fn cases() -> Vec<Case> {
        let rows: &[(&[usize], &[usize], usize)] = &[
            (&[7, 33], &[7, 2], 1),
            (&[7, 33], &[1, 33], 0),
            (&[2, 3, 5], &[2, 4, 5], 1),
            (&[2, 3, 4, 5], &[2, 3, 4, 6], 3),
            (&[9], &[4], 0),
        ];
        let case = |&(a, b, axis): &(&[usize], &[usize], usize)| {
            Case::new(Concat { axis }, format!("{a:?} {b:?} axis {axis}"), StepParams::at(0, 1), |o| {
                vec![o.input(a), o.input(b)]
            })
        };
        rows.iter().map(case).collect()
    }
}
