//! `top_k`: the k largest elements of each row, descending; of equals the first comes first.
//!
//! *Operands*: x `[.., n]`. *Results*: values `[.., k]` f32, ids `[.., k]` i32.

use super::{Describe, EXACT, Output, arity, ensure, floats, with_cols};
use crate::case::{Case, Fill};
use crate::step::StepParams;
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

    fn cases() -> Vec<Case> {
        let rows: &[(&str, &[usize], usize, Fill)] = &[
            ("one of one", &[1, 1], 1, Fill::Shuffled),
            ("three of rows", &[4, 33], 3, Fill::Shuffled),
            ("all", &[2, 20], 20, Fill::Shuffled),
            ("vocabulary", &[1, 49_152], 64, Fill::Shuffled),
            ("forty", &[1, 5256], 40, Fill::Uniform(-10.0, 20.0)),
            ("ties", &[2, 300], 9, Fill::Values(vec![0.0, 2.0, 1.0, 2.0, -1.0])),
        ];
        rows.iter()
            .map(|(name, dims, k, fill)| {
                Case::new(TopK { k: *k }, *name, StepParams::at(0, 1), |o| vec![o.filled(dims, fill.clone())])
            })
            .collect()
    }
}
