//! What is asked of a generation: how tokens are chosen, and when it ends.

use std::cell::Cell;
use std::rc::Rc;

use backend_api::StepParams;
use backend_api::op::TopK;
use serde::{Deserialize, Serialize};

use crate::arch::Head;
use crate::error::ModelError;
use crate::overflow::Overflow;

/// How the next token is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// The best one.
    Greedy,
    /// A random one of the best.
    Random {
        /// Divides the logits; 0 is greedy.
        temperature: f32,
        /// Candidates, at most [`TopK::MAX`]; 0 = as many as that.
        top_k: u32,
        /// The smallest set of candidates whose probability reaches this; 1 = all.
        top_p: f32,
        /// Equal seeds give equal texts.
        seed: u64,
    },
}

impl Sampling {
    /// The head that draws, and its parameters.
    pub(crate) fn step(&self) -> Result<(Head, StepParams), ModelError> {
        let refused = |what: &str| Err(ModelError::Options(what.into()));
        let greedy = StepParams::at(0, 1);
        match *self {
            Sampling::Greedy => Ok((Head::Greedy, greedy)),
            Sampling::Random { temperature, .. } if !(temperature.is_finite() && temperature >= 0.0) => {
                refused("the temperature must be at least 0; try 0.8")
            }
            Sampling::Random { top_p, .. } if !(top_p > 0.0 && top_p <= 1.0) => {
                refused("top-p must be above 0 and at most 1; 1 keeps all candidates")
            }
            Sampling::Random { top_k, .. } if top_k as usize > TopK::MAX => {
                refused("top-k can be at most 64; 0 keeps as many as possible")
            }
            Sampling::Random { temperature: 0.0, .. } => Ok((Head::Greedy, greedy)),
            Sampling::Random { temperature, top_k, top_p, seed } => {
                let (seed_lo, seed_hi) = (seed as u32, (seed >> 32) as u32);
                Ok((Head::Sample, StepParams { temperature, top_k, top_p, seed_lo, seed_hi, ..greedy }))
            }
        }
    }
}

/// What to generate.
#[derive(Debug, Clone)]
pub struct GenerateOptions {
    /// Tokens to generate at most; without it 256, or as many as the context has room for if those are fewer and
    /// [`Self::overflow`] makes no more room.
    pub max_tokens: Option<usize>,
    /// What is done about a text that outgrows the context.
    pub overflow: Overflow,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Tokens that end the text and are not part of it; by default those that the tokenizer says end a generation.
    pub stop_tokens: Option<Vec<u32>>,
    /// Strings that end the text and are not part of it.
    pub stop: Vec<String>,
    /// Decode steps in flight between two reads, 1 to 64: more keep a GPU busy, fewer show tokens sooner. Without it,
    /// as many as take a few milliseconds on this device.
    pub fetch_interval: Option<usize>,
    /// Set to true, it ends the generation at the next token.
    pub cancel: Option<Rc<Cell<bool>>>,
    /// The tokens that were generated already, if this goes on with a generation that was broken off: the prompt ends with
    /// them. They count as new ones, but are not told again.
    pub done: Vec<u32>,
}

/// Tokens that are generated without a word on how many.
const MAX_TOKENS: usize = 256;

impl GenerateOptions {
    /// Tokens to generate at most, whatever the context holds.
    pub fn most(&self) -> usize {
        self.max_tokens.unwrap_or(MAX_TOKENS)
    }
}

impl Default for GenerateOptions {
    fn default() -> GenerateOptions {
        GenerateOptions {
            max_tokens: None,
            overflow: Overflow::default(),
            sampling: Sampling::Greedy,
            stop_tokens: None,
            stop: Vec::new(),
            fetch_interval: None,
            cancel: None,
            done: Vec::new(),
        }
    }
}
