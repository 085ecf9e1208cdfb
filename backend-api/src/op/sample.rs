//! `sample`: draws one of some candidates, after the step's last row or after each.
//!
//! *Operands*: values `[rows, k]` f32, descending; ids `[rows, k]` i32; optionally [`Penalties`] as a row `[1, 8]` f32,
//! or as a state with a row of each sequence.
//! *Results*: `[rows]` i32.
//!
//! One row of candidates is that of the step's last row, several are those of its rows from the first on.
//! With the step's temperature T at 0 it is the first id. Otherwise candidates beyond `StepParams::top_k` are dropped,
//! the others weigh `exp((value - first value) / T)`; the shortest prefix whose weight reaches `top_p` of the whole
//! stays, but of it only those that weigh at least [`Penalties::min_p`]; and the first candidate at which the running weight exceeds `StepParams::uniform` times the weight that
//! stayed is drawn. If one of the values is NaN or infinite, -1 is drawn.
//! *Source*: Holtzman et al., "The Curious Case of Neural Text Degeneration", 2019 (nucleus sampling).

use super::describe::{Describe, EXACT, Output, arity, ensure, floats, shape};
use super::penalize::Penalties;
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample;

impl Describe for Sample {
    const NAME: &'static str = "sample";
    const TOLERANCE: f64 = EXACT;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let (candidates, penalties) = inputs.split_at(inputs.len().min(2));
        let [values, ids] = arity(candidates)?;
        ensure(penalties.len() <= 1, || format!("takes 2 or 3 operands, not {}", inputs.len()))?;
        penalties.iter().try_for_each(|tensor| Penalties::fit(tensor))?;
        floats(&[values])?;
        ensure(ids.dtype == DType::I32, || "ids must be i32".into())?;
        let same = values.shape == ids.shape && values.shape.rank() == 2;
        ensure(same, || "values and ids must both be [rows, k]".into())?;
        Ok(vec![Output::New(shape(&[values.shape.rows()])?, DType::I32)])
    }
}
