//! Generation of a text: a sequence is run to its end.

use std::borrow::Cow;

use backend_api::Stats;
use backend_api::run::Host;
use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::runtime::log_probs::LogProb;
use crate::runtime::overflow::Overflowed;
use crate::runtime::request::GenerateOptions;
use crate::runtime::run::Run;
use crate::runtime::sequence::{OnPiece, Sequence};
use crate::runtime::session::Session;
use crate::text::tokenizer::Tokenizer;

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

impl Session {
    /// Makes the sequence that continues a text, whose last tokens are those of `options.done`.
    ///
    /// *Errors*: options out of range; a text that does not fit the context.
    pub fn sequence(
        &self,
        text: &[u32],
        options: &GenerateOptions,
        tokenizer: Option<&Tokenizer>,
    ) -> Result<Sequence, ModelError> {
        Sequence::new(text, options, tokenizer, self.model().recipe().sizes())
    }

    /// Adds a prompt to the session's text and generates the continuation, as [`Self::generate_after`] does.
    ///
    /// *Errors*: as [`Self::generate_after`].
    pub async fn generate(
        &mut self,
        prompt: &[u32],
        options: &GenerateOptions,
        tokenizer: Option<&Tokenizer>,
        host: &dyn Host,
        on_piece: &mut OnPiece<'_>,
    ) -> Result<Generation, ModelError> {
        if prompt.is_empty() {
            return Err(ModelError::EmptyPrompt);
        }
        let text = [self.tokens(), prompt].concat();
        self.generate_after(&text, options, tokenizer, host, on_piece).await
    }

    /// Generates the continuation of a text. Reuses the beginning that the session has already computed. Afterwards the
    /// session has the prompt and all new tokens except the last, whose keys and values may not have been computed. If
    /// the context overflowed, it has the remaining tokens.
    ///
    /// An interrupted generation, for example after the loss of a device, can be resumed: the text then ends with the
    /// tokens that it gave, and `options.done` lists them. The result is the same, since sampling depends only on the
    /// seed and the position in the context, and the context depends only on the length of the text.
    ///
    /// Without a tokenizer there is no text, and only `options.stop_tokens` can stop before `max_tokens`.
    ///
    /// *Errors*: a prompt that is empty, too long for the context, or has unknown tokens; more tokens than fit, with
    /// [`Overflow::Error`](crate::Overflow::Error); options out of range; those of the backend; logits that are not
    /// finite.
    pub async fn generate_after(
        &mut self,
        text: &[u32],
        options: &GenerateOptions,
        tokenizer: Option<&Tokenizer>,
        host: &dyn Host,
        on_piece: &mut OnPiece<'_>,
    ) -> Result<Generation, ModelError> {
        let mut sequence = self.sequence(text, options, tokenizer)?;
        self.run(&mut sequence, tokenizer, host, on_piece).await?;
        Ok(sequence.into_generation(on_piece))
    }

    /// Runs a sequence until it ends.
    ///
    /// *Errors*: as [`Self::generate_after`].
    pub async fn run(
        &mut self,
        sequence: &mut Sequence,
        tokenizer: Option<&Tokenizer>,
        host: &dyn Host,
        on_piece: &mut OnPiece<'_>,
    ) -> Result<(), ModelError> {
        let mut run = Run::begin(self, sequence, tokenizer, host, on_piece).await?;
        while run.advance(on_piece).await? {}
        Ok(())
    }
}
