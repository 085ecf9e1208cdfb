//! Events and the result of a generation.

use std::borrow::Cow;

use backend_api::Stats;
use serde::{Deserialize, Serialize};

use super::log_probs::LogProb;
use super::overflow::Overflowed;

/// Reason why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// A stop token or stop string was produced.
    Stop,
    /// The limit of tokens is reached, or the context is full.
    Length,
    /// The caller cancelled the generation.
    Cancelled,
}

impl Finish {
    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::Length => "length",
            Finish::Cancelled => "cancelled",
        }
    }
}

/// Result of a generation.
#[derive(Debug, Clone)]
pub struct Generation {
    /// Prompt tokens that were computed.
    pub prompt_tokens: usize,
    /// Prompt tokens before them, which the session had already computed (prefix cache).
    pub cached_tokens: usize,
    /// The new tokens, without the stop token. Includes those of `options.done`.
    pub tokens: Vec<u32>,
    /// Their text, without the stop string.
    pub text: String,
    /// Reason for the end.
    pub finish: Finish,
    /// Time from the start to the first token.
    ///
    /// *Units*: milliseconds.
    pub prefill_ms: f64,
    /// Mean time from one token to the next, without the time for dropping old tokens.
    ///
    /// *Units*: milliseconds; 0 if there was no second token.
    pub decode_ms_per_token: f64,
    /// Decode steps that [`Self::steady`] covers. A verified draft counts as the steps that it saved.
    pub steady_steps: usize,
    /// Counters of the backend over all decode steps except those of the first interval; includes reads.
    pub steady: Stats,
    /// Drafted tokens, from the text itself or from a draft model.
    pub drafted_tokens: usize,
    /// Drafted tokens that the model accepted: the number of saved steps.
    pub accepted_tokens: usize,
    /// Overflow of the context, if the text outgrew it.
    pub overflow: Option<Overflowed>,
    /// Probabilities of the new tokens, if they were requested. Those of `options.done` are not included.
    pub log_probs: Vec<LogProb>,
}

impl Generation {
    /// Returns the tokens in the context after the generation, from `text`: all of the prompt and the new tokens,
    /// without those that were dropped.
    pub fn context<'t>(&self, text: &'t [u32]) -> Cow<'t, [u32]> {
        self.overflow.map_or(text.into(), |overflow| overflow.context(text))
    }
}

/// Event of a generation. Between two steps of a long prompt, it has neither token nor text, so that the caller may
/// cancel.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// The token; absent during the prompt, and for held-back text that is released at the end.
    pub token: Option<u32>,
    /// Text that is final by now. It may be empty, or include the text of earlier tokens.
    pub text: &'a str,
    /// Overflow of the context so far, reported before the remaining tokens are recomputed; never together with a
    /// token.
    pub overflow: Option<Overflowed>,
    /// Probability of the token, if it was requested.
    pub log_prob: Option<&'a LogProb>,
}

impl Piece<'_> {
    /// Event between two steps of a prompt.
    pub(crate) const PAUSE: Piece<'static> = Piece { token: None, text: "", overflow: None, log_prob: None };

    /// Returns whether it is only the event between two steps of a prompt.
    pub fn is_pause(&self) -> bool {
        self.token.is_none() && self.text.is_empty() && self.overflow.is_none()
    }
}
