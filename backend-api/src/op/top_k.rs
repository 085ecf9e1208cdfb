//! `top_k`: the k largest elements of each row, descending; of equals the first comes first.
//!
//! *Operands*: x `[.., n]`. *Results*: values `[.., k]` f32, ids `[.., k]` i32. In a row with an element that is NaN or
//! infinite all values are 0 and all ids -1.

use super::describe::{Describe, EXACT, Output, arity, ensure, floats, with_cols};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopK {
    /// How many; at most [`TopK::MAX`].
    pub k: usize,
}

impl TopK {
    /// The largest k: kernels hold the candidates on chip or pay a pass for each.
    pub const MAX: usize = 64;
}

impl Describe for TopK {
    const NAME: &'static str = "top_k";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        let n = x.shape.cols().min(Self::MAX);
        ensure(self.k >= 1 && self.k <= n, || format!("k = {} is not in 1..={n}", self.k))?;
        let out = with_cols(&x.shape, self.k)?;
        Ok(vec![Output::New(out, DType::F32), Output::New(out, DType::I32)])
    }
}
