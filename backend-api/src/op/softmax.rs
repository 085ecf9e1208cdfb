//! `softmax` along rows, with scale, soft cap and mask.
//!
//! *Operands*: x `[.., m, n]`; with `masking.explicit` also a mask `[m, n]` added after scaling; with `sinks` also `[h]`,
//! last, for x `[.., h, m, n]`.
//! *Results*: like x. Scores are `scale * x`, soft-capped if `softcap > 0`, masked as in
//! [`Attention`](super::Attention); hidden columns give 0, and so does a row that is hidden as a whole, by a mask too. A sink is one
//! more score of each row of its matrix, which takes a share of the sum and has no column.

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
    /// Whether each matrix has a score without a column.
    pub sinks: bool,
}

impl Softmax {
    /// The place of the sinks among its operands.
    pub fn sinks_at(&self) -> Option<usize> {
        self.sinks.then(|| 1 + usize::from(self.masking.explicit))
    }
}

impl Describe for Softmax {
    const NAME: &'static str = "softmax";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        floats(inputs)?;
        let expected = 1 + usize::from(self.masking.explicit) + usize::from(self.sinks);
        ensure(inputs.len() == expected, || format!("takes {expected} operands, not {}", inputs.len()))?;
        ensure(self.scale.is_finite() && self.softcap >= 0.0, || "scale and soft cap must be finite".into())?;
        let [_, h, m, n] = inputs[0].shape.dims4();
        if self.masking.explicit {
            ensure(inputs[1].shape.dims4() == [1, 1, m, n], || format!("the mask must be [{m}, {n}]"))?;
        }
        if let Some(at) = self.sinks_at() {
            ensure(inputs[at].shape.dims().eq([h]), || format!("the sinks must be [{h}]"))?;
        }
        Ok(vec![Output::New(inputs[0].shape, DType::F32)])
    }
}
