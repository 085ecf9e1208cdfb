//! `clamp`: each element brought between two bounds.
//!
//! *Operands*: x `[..]`. *Results*: like x, `min(max(x, lo), hi)`.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clamp {
    /// The least that an element may be; [`f32::MIN`] bounds none.
    pub lo: f32,
    /// The most that an element may be; [`f32::MAX`] bounds none.
    pub hi: f32,
}

impl Describe for Clamp {
    const NAME: &'static str = "clamp";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        let (lo, hi) = (self.lo, self.hi);
        ensure(lo.is_finite() && hi.is_finite() && lo <= hi, || {
            format!("{lo} and {hi} are not finite bounds in order")
        })?;
        Ok(vec![Output::New(x.shape, DType::F32)])
    }
}
