//! `penalize`: logits as a request wants them, by the tokens that came before.
//!
//! *Operands*: logits `[rows, n]` f32; the token history `[n_ctx]` i32; a bias for each token `[1, n]` f32; [`Penalties`]
//! as a row `[1, 8]` f32. *Results*: `[rows, n]` f32. Where each row is of a sequence of its own, the latter three are states,
//! and have as many times the rows.
//!
//! One row of logits is that of the step's last row, several are those of its rows from the first on. The tokens before
//! such a row end with its own, which is at the step's position plus the row. Of them, the last `last` are *recent*; and of
//! those from position `begin` on, the last `counted` *count*. A logit whose token is among the recent ones is divided
//! by `repetition` if it is positive, and multiplied by it otherwise. Then, if its token counts c times and c is not 0,
//! `presence + c * frequency` is subtracted. Its bias is added last.
//! *Source*: Keskar et al., "CTRL: A Conditional Transformer Language Model for Controllable Generation", 2019
//! (repetition); the reference of OpenAI's API (presence, frequency and bias).

use super::describe::{Describe, F32, Output, arity, ensure, floats};
use crate::tensor::{DType, Tensor};

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Penalize;

/// Adjustments that [`Penalize`] and [`Sample`](super::Sample) read from an operand, since they change from one
/// request to the next. Programs without adjustments have no such operand.
///
/// *Units*: positions and numbers of tokens, which must be below 2^24.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalties {
    /// Divides positive logits of recent tokens, and multiplies others; 1 changes nothing.
    pub repetition: f32,
    /// How many tokens are recent.
    pub last: u32,
    /// Is subtracted once from logits of tokens that count.
    pub presence: f32,
    /// Is subtracted as often as the token counts.
    pub frequency: f32,
    /// How many tokens count.
    pub counted: u32,
    /// The position from which on tokens count.
    pub begin: u32,
    /// The smallest probability of a candidate as a part of the best one's; 0 keeps all.
    pub min_p: f32,
}

impl Penalties {
    /// Columns of the operand.
    pub const COLS: usize = 8;

    /// The operand's row. The inverse is in it so that no backend divides: some do so inexactly.
    pub fn row(&self) -> [f32; Penalties::COLS] {
        let Penalties { repetition, last, presence, frequency, counted, begin, min_p } = *self;
        [repetition, 1.0 / repetition, last as f32, presence, frequency, counted as f32, begin as f32, min_p]
    }

    /// Whether a tensor can be the operand.
    pub(super) fn fit(tensor: &Tensor) -> Result<(), String> {
        floats(&[tensor])?;
        let fits = tensor.shape.rows() == 1 && tensor.shape.cols() == Penalties::COLS;
        ensure(fits, || format!("penalties must be [1, {}], not {}", Penalties::COLS, tensor.shape))
    }
}

impl Describe for Penalize {
    const NAME: &'static str = "penalize";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [logits, history, bias, penalties] = arity(inputs)?;
        floats(&[logits, bias])?;
        let is_history = history.dtype == DType::I32 && history.shape.rank() == 1;
        ensure(is_history, || "the history must be [n_ctx] of i32".into())?;
        ensure(logits.shape.rank() == 2, || "logits must be [rows, n]".into())?;
        let fits = bias.shape.rows() == 1 && bias.shape.cols() == logits.shape.cols();
        ensure(fits, || format!("the bias must be [1, {}], not {}", logits.shape.cols(), bias.shape))?;
        Penalties::fit(penalties)?;
        Ok(vec![Output::New(logits.shape, DType::F32)])
    }
}
