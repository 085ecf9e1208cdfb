//! Options of a generation: how tokens are sampled, and when the generation ends.

use std::cell::Cell;
use std::rc::Rc;

use backend_api::StepParams;
use backend_api::op::TopK;

use super::adjust::Adjust;
use super::constraint::{Constraint, MAX_CONSTRAINT};
use super::generation::Finish;
use super::interval::MAX_FETCH_INTERVAL;
use super::overflow::{Overflow, Room};
use super::request::{Sampling, SavedRequest};
use super::saving::Saving;
use crate::arch::{Head, MAX_TOP, TokenChoice};
use crate::error::ModelError;

impl Sampling {
    /// Returns the head that samples, and its parameters.
    pub(crate) fn step(&self) -> Result<(Head, StepParams), ModelError> {
        let refused = |what: &str| Err(ModelError::Options(what.into()));
        let greedy = StepParams::at(0, 1);
        match *self {
            Sampling::Greedy => Ok((Head::GREEDY, greedy)),
            Sampling::Random { temperature, .. } if !(temperature.is_finite() && temperature >= 0.0) => {
                refused("the temperature must be at least 0; try 0.8")
            }
            Sampling::Random { top_p, .. } if !(top_p > 0.0 && top_p <= 1.0) => {
                refused("top-p must be above 0 and at most 1; 1 keeps all candidates")
            }
            Sampling::Random { top_k, .. } if top_k as usize > TopK::MAX => {
                refused("top-k can be at most 64; 0 keeps as many as possible")
            }
            Sampling::Random { temperature: 0.0, .. } => Ok((Head::GREEDY, greedy)),
            Sampling::Random { temperature, top_k, top_p, seed } => {
                let (seed_lo, seed_hi) = (seed as u32, (seed >> 32) as u32);
                Ok((Head::SAMPLE, StepParams { temperature, top_k, top_p, seed_lo, seed_hi, ..greedy }))
            }
        }
    }
}

/// Most bytes of all stop strings, and most stop tokens: they are saved with each snapshot.
const MAX_STOP: usize = 32 << 10;

/// Options of a generation.
#[derive(Debug, Clone)]
pub struct GenerateOptions {
    /// Most tokens to generate. The default is 256 or, if [`Self::overflow`] drops no tokens, the rest of the context
    /// if that is smaller.
    pub max_tokens: Option<usize>,
    /// Policy for a text that outgrows the context.
    pub overflow: Overflow,
    /// Method of choosing tokens.
    pub sampling: Sampling,
    /// Adjustments of the probabilities of tokens.
    pub adjust: Adjust,
    /// Number of likeliest tokens to report at each position, at most [`MAX_TOP`], in
    /// [`Generation::log_probs`](crate::Generation::log_probs). Each token is then read separately, and drafting is
    /// off.
    pub log_probs: Option<usize>,
    /// Constraint of the answer (structured output): only tokens that can come next are chosen, and the text ends only
    /// where it may. Each token is then read separately, and drafting is off. An answer that is cut off, by a stop
    /// string or the token limit, is the beginning of a valid one.
    pub constraint: Option<Rc<dyn Constraint>>,
    /// Tokens that end the text and are not part of it; by default the tokenizer's end-of-generation tokens.
    pub stop_tokens: Option<Vec<u32>>,
    /// Strings that end the text and are not part of it.
    pub stop: Vec<String>,
    /// Control tokens whose text is shown, such as those around calls of tools
    /// ([`ChatTemplate::marks`](crate::ChatTemplate::marks)).
    pub shown: Vec<u32>,
    /// Decode steps that are submitted between two reads, 1 to 64. More keep a GPU busy, fewer show tokens sooner. The
    /// default is the number that takes a few milliseconds on the device.
    pub fetch_interval: Option<usize>,
    /// Most tokens of a draft, which is taken from the text itself or from a draft model
    /// ([`Session::set_draft`](crate::Session::set_draft)) and verified in one step. The text does not depend on it, to
    /// the last bit. 0 turns drafting off; the default suits the device.
    pub draft_max: Option<usize>,
    /// Flag that ends the generation when it is true, at the next token or at the next step of a long prompt.
    pub cancel: Option<Rc<Cell<bool>>>,
    /// Tokens that were generated already, to resume an interrupted generation. The prompt must end with them. They
    /// count as new tokens, but are not reported again.
    pub done: Vec<u32>,
    /// Number of the last tokens of `done` that were not reported, and are reported at once.
    pub untold: usize,
    /// Sink of snapshots that are taken during the generation.
    pub saving: Option<Saving>,
}

impl GenerateOptions {
    /// Returns the head that chooses tokens, and its parameters.
    pub(crate) fn step(&self, n_vocab: usize) -> Result<(Head, StepParams), ModelError> {
        let (head, params) = self.sampling.step()?;
        self.adjust.check(n_vocab)?;
        if let Some(top) = self.log_probs.filter(|top| *top > MAX_TOP) {
            let why =
                format!("log probabilities of {top} tokens are more than {MAX_TOP} for each place; ask for fewer");
            return Err(ModelError::Options(why));
        }
        // A constraint is a mask in the biases.
        let adjust = !self.adjust.is_neutral() || self.constraint.is_some();
        let token = head.token.map(|choice| TokenChoice { adjust, ..choice });
        Ok((Head { token, log_probs: self.log_probs.is_some(), ..head }, params))
    }

    /// Refuses stops and constraints that are too large to be saved.
    pub(crate) fn check_stops(&self) -> Result<(), ModelError> {
        let refused = |why: String| Err(ModelError::Options(why));
        let bytes: usize = self.stop.iter().map(String::len).sum();
        if bytes > MAX_STOP {
            return refused(format!("the stop strings have {bytes} bytes, and may have {MAX_STOP}; use shorter ones"));
        }
        let bytes = self.constraint.as_ref().map_or(0, |constraint| constraint.source().len());
        if bytes > MAX_CONSTRAINT {
            return refused(format!("the format has {bytes} bytes, and may have {MAX_CONSTRAINT}; use a simpler one"));
        }
        match self.stop_tokens.as_ref().map_or(0, Vec::len) {
            count if count > MAX_STOP => refused(format!("{count} stop tokens are more than {MAX_STOP}; use fewer")),
            _ => Ok(()),
        }
    }
}

impl GenerateOptions {
    /// Checks the options for a text of so many tokens, without a session: for remote engines.
    ///
    /// *Errors*: options out of range; a text that does not fit the context.
    pub fn check(&self, tokens: usize, n_ctx: usize, n_vocab: usize) -> Result<(), ModelError> {
        self.step(n_vocab)?;
        self.check_room(tokens, n_ctx)?;
        Room::new(self.overflow, tokens, n_ctx).map(|_| ())
    }

    /// Checks that the request fits; returns the tokens of the prompt without those of `done`.
    pub(crate) fn check_room(&self, tokens: usize, n_ctx: usize) -> Result<usize, ModelError> {
        self.check_stops()?;
        if let Some(given) = self.fetch_interval.filter(|given| !(1..=MAX_FETCH_INTERVAL).contains(given)) {
            return Err(ModelError::Options(format!("the fetch interval {given} is not in 1 to {MAX_FETCH_INTERVAL}")));
        }
        let prompt = tokens.saturating_sub(self.done.len());
        match (self.overflow, self.max_tokens) {
            (Overflow::Error, Some(max_tokens)) if prompt.saturating_add(max_tokens) > n_ctx => {
                Err(ModelError::Overflow { prompt, max_tokens, n_ctx })
            }
            _ => Ok(prompt),
        }
    }
}

/// Most tokens to generate, by default.
const MAX_TOKENS: usize = 256;

impl GenerateOptions {
    /// Returns the most tokens to generate, whatever the context holds.
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
            adjust: Adjust::default(),
            log_probs: None,
            constraint: None,
            stop_tokens: None,
            stop: Vec::new(),
            shown: Vec::new(),
            fetch_interval: None,
            draft_max: None,
            cancel: None,
            done: Vec::new(),
            untold: 0,
            saving: None,
        }
    }
}

impl SavedRequest {
    /// Makes the request of a generation with a prompt of so many tokens.
    pub fn of(options: &GenerateOptions, prompt: usize, finish: Option<Finish>) -> SavedRequest {
        let GenerateOptions { max_tokens, overflow, stop, stop_tokens, log_probs, .. } = options;
        let (stop, stop_tokens, adjust, log_probs) =
            (stop.clone(), stop_tokens.clone(), options.adjust.clone(), *log_probs);
        let constraint = options.constraint.as_ref().map(|constraint| constraint.source().to_owned());
        let max_tokens = max_tokens.map(|tokens| tokens as u64);
        let keep = match overflow {
            Overflow::Shift { keep } => Some(*keep),
            Overflow::Error | Overflow::Stop => None,
        };
        let overflow = overflow.name().into();
        SavedRequest { prompt, max_tokens, overflow, keep, stop, stop_tokens, adjust, log_probs, constraint, finish }
    }

    /// Returns the options that resume the generation. The prompt is then all of `text`, with the generated tokens. If
    /// the request has a [`Self::constraint`], the caller must compile it again.
    ///
    /// *Errors*: an unknown overflow policy; the constraint is missing.
    pub fn options(
        &self,
        text: &[u32],
        sampling: Sampling,
        constraint: Option<Rc<dyn Constraint>>,
    ) -> Result<GenerateOptions, ModelError> {
        if self.constraint.is_some() && constraint.is_none() {
            let why = "the text was to have a format, which cannot be made here; ask anew, with the whole prompt";
            return Err(ModelError::Constraint(why.into()));
        }
        let overflow: Overflow = self.overflow.parse().map_err(ModelError::Options)?;
        Ok(GenerateOptions {
            max_tokens: self.max_tokens.map(|tokens| usize::try_from(tokens).unwrap_or(usize::MAX)),
            overflow: overflow.keeping(self.keep, 0)?,
            sampling,
            adjust: self.adjust.clone(),
            log_probs: self.log_probs,
            constraint,
            stop_tokens: self.stop_tokens.clone(),
            stop: self.stop.clone(),
            done: text.get(self.prompt..).unwrap_or_default().to_vec(),
            ..GenerateOptions::default()
        })
    }
}
