//! `softmax` along rows, with scale, soft cap and mask.
//!
//! *Operands*: x `[.., m, n]`; with `masking.explicit` also a mask `[m, n]` added after scaling.
//! *Results*: like x. Scores are `scale * x`, soft-capped if `softcap > 0`, masked as in
//! [`Attention`](super::Attention); hidden columns give 0, and so does a row that is hidden as a whole.

use super::attention::Masking;
use super::describe::{Describe, F32, Output, ensure, floats};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Softmax {
    /// Multiplies x.
    pub scale: f32,
    /// Soft cap of the scores; 0 = none.
    pub softcap: f32,
    /// Which columns are seen.
    pub masking: Masking,
}

impl Describe for Softmax {
    const NAME: &'static str = "softmax";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        floats(inputs)?;
        let expected = if self.masking.explicit { 2 } else { 1 };
        ensure(inputs.len() == expected, || format!("takes {expected} operands, not {}", inputs.len()))?;
        ensure(self.scale.is_finite() && self.softcap >= 0.0, || "scale and soft cap must be finite".into())?;
        let [_, _, m, n] = inputs[0].shape.dims4();
        if let Some(mask) = inputs.get(1) {
            ensure(mask.shape.dims4() == [1, 1, m, n], || format!("the mask must be [{m}, {n}]"))?;
        }
        Ok(vec![Output::New(inputs[0].shape, DType::F32)])
    }
}
