//! `sample`: draws one of some candidates.
//!
//! *Operands*: values `[1, k]` f32, descending; ids `[1, k]` i32. *Results*: `[1]` i32.
//!
//! With the step's temperature T at 0 it is the first id. Otherwise candidates beyond `StepParams::top_k` are dropped,
//! the others weigh `exp((value - first value) / T)`; the shortest prefix whose weight reaches `top_p` of the whole
//! stays; and the first candidate at which the running weight exceeds `StepParams::uniform` times the weight that
//! stayed is drawn.
//! *Source*: Holtzman et al., "The Curious Case of Neural Text Degeneration", 2019 (nucleus sampling).

use super::{Describe, EXACT, Output, arity, ensure, floats, shape};
use crate::case::{Case, Fill};
use crate::step::StepParams;
use crate::tensor::{DType, Kind, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample;

impl Describe for Sample {
    const NAME: &'static str = "sample";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [values, ids] = arity(inputs)?;
        floats(&[values])?;
        ensure(ids.dtype == DType::I32, || "ids must be i32".into())?;
        let same = values.shape == ids.shape && values.shape.rank() == 2 && values.shape.rows() == 1;
        ensure(same, || "values and ids must both be [1, k]".into())?;
        Ok(vec![Output::New(shape(&[1])?, DType::I32)])
    }

    fn cases() -> Vec<Case> {
        let mut cases = Vec::new();
        for (temperature, top_k, top_p) in
            [(0.0, 0, 1.0), (1.0, 0, 1.0), (0.8, 40, 0.95), (1.5, 3, 1.0), (1.0, 0, 0.3), (0.1, 10, 0.9)]
        {
            for seed in 0..6 {
                let params =
                    StepParams { temperature, top_k, top_p, seed_lo: seed, seed_hi: 7, ..StepParams::at(11 + seed, 1) };
                let name = format!("T {temperature}, k {top_k}, p {top_p}, seed {seed}");
                cases.push(Case::new(Sample, name, params, |o| {
                    let values = o.filled(&[1, 64], Fill::Descending(8.0));
                    vec![values, o.external(Kind::Input, &[1, 64], DType::I32, Fill::Shuffled)]
                }));
            }
        }
        cases
    }
}
