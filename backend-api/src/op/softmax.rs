//! `softmax` along rows, with scale, soft cap and mask.
//!
//! *Operands*: x `[.., m, n]`; with `masking.explicit` also a mask `[m, n]` added after scaling.
//! *Results*: like x. Scores are `scale * x`, soft-capped if `softcap > 0`, masked as in
//! [`Attention`](super::Attention); hidden columns give 0, and so does a row that is hidden as a whole.

use super::{Describe, F32, Masking, Output, ensure, floats};
use crate::case::{Case, Fill};
use crate::step::StepParams;
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
        self.masking.check()?;
        let expected = if self.masking.explicit { 2 } else { 1 };
        ensure(inputs.len() == expected, || format!("takes {expected} operands, not {}", inputs.len()))?;
        ensure(self.scale.is_finite() && self.softcap >= 0.0, || "scale and soft cap must be finite".into())?;
        let [_, _, m, n] = inputs[0].shape.dims4();
        if let Some(mask) = inputs.get(1) {
            ensure(mask.shape.dims4() == [1, 1, m, n], || format!("the mask must be [{m}, {n}]"))?;
        }
        Ok(vec![Output::New(inputs[0].shape, DType::F32)])
    }

    fn cases() -> Vec<Case> {
        let none = Masking::default();
        let causal = Masking { causal: true, ..none };
        let cached = Masking { cached: true, ..causal };
        let window = Masking { window: 3, ..cached };
        let explicit = Masking { explicit: true, ..none };
        type Row = (&'static str, &'static [usize], f32, f32, Masking, StepParams);
        let rows: &[Row] = &[
            ("one", &[1, 1], 1.0, 0.0, none, StepParams::at(0, 1)),
            ("rows", &[7, 33], 1.0, 0.0, none, StepParams::at(0, 1)),
            ("wide", &[2, 5000], 0.5, 0.0, none, StepParams::at(0, 1)),
            ("4d", &[2, 3, 4, 20], 2.0, 0.0, none, StepParams::at(0, 1)),
            ("causal", &[3, 5, 9], 0.25, 0.0, causal, StepParams::at(0, 5)),
            ("cached", &[3, 4, 40], 0.25, 0.0, cached, StepParams::at(11, 4)),
            ("window", &[2, 4, 24], 0.25, 0.0, window, StepParams::at(7, 4)),
            ("softcap", &[2, 4, 24], 1.0, 4.0, cached, StepParams::at(7, 4)),
            ("explicit", &[3, 5, 9], 0.25, 0.0, explicit, StepParams::at(0, 5)),
        ];
        rows.iter()
            .map(|&(name, dims, scale, softcap, masking, step)| {
                Case::new(Softmax { scale, softcap, masking }, name, step, |o| {
                    let mut inputs = vec![o.filled(dims, Fill::Uniform(-20.0, 20.0))];
                    if masking.explicit {
                        inputs.push(o.filled(&dims[dims.len() - 2..], Fill::Mask));
                    }
                    inputs
                })
            })
            .collect()
    }
}
