//! A sequence: a text with everything that decides how it goes on. It is a value that knows no device.

mod adjust;
mod constraint;
mod drafts;
mod generation;
mod interval;
mod log_probs;
mod options;
mod overflow;
mod request;
mod saving;
mod snapshot;
mod stop;
mod words;

pub use adjust::Adjust;
pub use constraint::{AllowFuture, Constraint, MAX_CONSTRAINT};
pub(crate) use drafts::{DraftSource, Drafts, SURE};
pub use generation::{Finish, Generation, Piece};
pub(crate) use interval::{Interval, MAX_FETCH_INTERVAL};
pub(crate) use log_probs::Told;
pub use log_probs::{LogProb, LogProbEntry, TokenEntry};
pub use options::GenerateOptions;
pub(crate) use overflow::Room;
pub use overflow::{Overflow, Overflowed};
pub use request::{Sampling, SavedRequest};
pub use saving::{Saving, SnapshotSink};
pub use snapshot::{Header, Rows, Snapshot, SnapshotError};
pub use words::Words;

use std::borrow::Cow;

use backend_api::{Stats, StepParams};

use crate::arch::{Head, Sizes};
use crate::error::ModelError;
use crate::text::tokenizer::Tokenizer;

/// Receiver of the events of a generation.
pub type OnPiece<'a> = dyn FnMut(Piece<'_>) + 'a;

/// A text that is being generated, and its request. It goes on wherever it is [run](crate::Run): it can be paused,
/// moved to another session or device, and dropped at any time.
#[derive(Debug)]
pub struct Sequence {
    pub(crate) options: GenerateOptions,
    pub(crate) head: Head,
    pub(crate) sampling: StepParams,
    stop_tokens: Vec<u32>,
    words: Words,
    /// All tokens: the prompt, then the generated ones. Tokens that were dropped from the context are included.
    text: Vec<u32>,
    /// Tokens of the prompt.
    prompt: usize,
    /// Generated tokens that were taken: all but those that are still to be reported.
    taken: usize,
    pub(crate) room: Room,
    /// Overflow that was reported already.
    told: Option<usize>,
    log_probs: Vec<LogProb>,
    /// Probability of the next token.
    log_prob: Option<LogProb>,
    finish: Option<Finish>,
    pub(crate) totals: Totals,
}

/// Sums over all runs of a sequence.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Prompt tokens that the first run computed, and those that it found.
    pub prompt_tokens: usize,
    pub cached_tokens: usize,
    /// Tokens that were generated before the first run.
    pub done: usize,
    /// Times that a prompt was computed: the first token after one is part of it.
    pub stretches: usize,
    /// Time to the first token.
    ///
    /// *Units*: milliseconds, as all times here.
    pub prefill_ms: Option<f64>,
    /// Time from the first token of each stretch to its last.
    pub decode_ms: f64,
    /// Time of recomputing contexts that were shifted.
    pub shift_ms: f64,
    /// Decode steps that `steady` covers: all except those of each stretch's first interval.
    pub steps: usize,
    pub steady: Stats,
    /// Drafted tokens, and those that were accepted.
    pub drafted: usize,
    pub accepted: usize,
    /// Whether the text ended because the context was full.
    pub is_full: bool,
}

impl Sequence {
    /// Makes the sequence that continues a text, whose last tokens are those of `options.done`. Without a tokenizer there
    /// is no text, and only `options.stop_tokens` can stop before `max_tokens`.
    ///
    /// *Errors*: options out of range; a text that does not fit the context.
    pub fn new(
        text: &[u32],
        options: &GenerateOptions,
        tokenizer: Option<&Tokenizer>,
        sizes: &Sizes,
    ) -> Result<Sequence, ModelError> {
        let (head, sampling) = options.step(sizes.n_vocab)?;
        let prompt = options.check_room(text.len(), sizes.n_ctx)?;
        if tokenizer.is_none() && !options.stop.is_empty() {
            return Err(ModelError::Options(
                "stop strings need a tokenizer, which this file lacks; use stop tokens".into(),
            ));
        }
        let room = Room::new(options.overflow, text.len(), sizes.n_ctx)?;
        let done = options.done.len();
        let eog = tokenizer.map_or(&[][..], Tokenizer::eog);
        let mut sequence = Sequence {
            head,
            sampling,
            stop_tokens: options.stop_tokens.clone().unwrap_or_else(|| eog.to_vec()),
            words: Words::new(&options.shown, &options.stop),
            text: text.to_vec(),
            prompt,
            taken: 0,
            room,
            told: (done > 0).then(|| room.times()),
            log_probs: Vec::new(),
            log_prob: None,
            finish: None,
            totals: Totals { done, ..Totals::default() },
            options: options.clone(),
        };
        sequence.text.reserve(options.most().min(sizes.n_ctx));
        for token in &options.done[..done - options.untold.min(done)] {
            if sequence.finish.is_none() {
                sequence.take(*token, tokenizer, None);
            }
        }
        sequence.finish = sequence.finish.or_else(|| sequence.full());
        Ok(sequence)
    }

    /// Returns the generated tokens.
    pub fn tokens(&self) -> &[u32] {
        &self.text[self.prompt..self.prompt + self.taken]
    }

    /// Returns all tokens: the prompt and the generated ones, with those that were dropped from the context.
    pub fn text(&self) -> &[u32] {
        &self.text[..self.prompt + self.taken]
    }

    /// Returns the number of tokens of the prompt.
    pub fn prompt_tokens(&self) -> usize {
        self.prompt
    }

    /// Returns the tokens that are in the context.
    pub fn context(&self) -> Cow<'_, [u32]> {
        self.room.context(self.text())
    }

    /// Returns how many tokens the context has when at most `ahead` further ones are generated.
    pub fn needs(&self, ahead: usize) -> usize {
        self.context().len() + self.left().min(ahead)
    }

    /// Returns why the text ended; nothing while it goes on.
    pub fn finish(&self) -> Option<Finish> {
        self.finish
    }

    /// Returns how tokens are chosen.
    pub fn sampling(&self) -> Sampling {
        self.options.sampling
    }

    /// Returns the request in a form that can be saved; nothing if tokens were dropped, since the text then does not
    /// follow from what is saved.
    pub fn request(&self) -> Option<SavedRequest> {
        let is_whole = self.room.so_far(0.0).is_none();
        is_whole.then(|| SavedRequest::of(&self.options, self.prompt, self.finish))
    }

    /// Returns the time to the first token, and how many tokens of the prompt the session had computed before.
    ///
    /// *Units*: milliseconds.
    pub fn first(&self) -> Option<(f64, usize)> {
        Some((self.totals.prefill_ms?, self.totals.cached_tokens))
    }

    /// Returns the tokens that end the text.
    pub(crate) fn stop_tokens(&self) -> &[u32] {
        &self.stop_tokens
    }

    /// Returns how many more tokens may be generated.
    pub(crate) fn left(&self) -> usize {
        if self.finish.is_some() { 0 } else { self.options.most() - self.taken }
    }

    /// Begins a run in a context of `n_ctx` tokens: reports tokens that were generated before and are not told yet, and
    /// an overflow.
    pub(crate) fn begin(
        &mut self,
        tokenizer: Option<&Tokenizer>,
        n_ctx: usize,
        tell: &mut OnPiece<'_>,
    ) -> Result<(), ModelError> {
        let text = self.text.len();
        self.room = Room::new(self.options.overflow, text, n_ctx)?;
        self.tell_overflow(tell);
        while self.finish.is_none()
            && let Some(token) = self.text.get(self.prompt + self.taken).copied()
        {
            self.take(token, tokenizer, Some(tell));
        }
        Ok(())
    }

    /// Reports a shift of the context, once.
    pub(crate) fn tell_overflow(&mut self, tell: &mut OnPiece<'_>) {
        let overflow = self.room.so_far(self.totals.shift_ms);
        if overflow.is_some() && self.told != Some(self.room.times()) {
            self.told = Some(self.room.times());
            tell(Piece { token: None, text: "", overflow, log_prob: None });
        }
    }

    /// Sets the probability of the next token.
    pub(crate) fn set_log_prob(&mut self, log_prob: LogProb) {
        self.log_prob = Some(log_prob);
    }

    /// Takes a new token, unless the text was cancelled or has ended. Returns whether it goes on.
    pub(crate) fn accept(&mut self, token: u32, tokenizer: Option<&Tokenizer>, tell: &mut OnPiece<'_>) -> bool {
        if self.goes_on() {
            self.take(token, tokenizer, Some(tell));
        }
        self.finish.is_none()
    }

    /// Returns whether the text goes on, unless it was cancelled meanwhile.
    pub(crate) fn goes_on(&mut self) -> bool {
        if self.options.cancel.as_ref().is_some_and(|cancel| cancel.get()) {
            self.end(Finish::Cancelled);
        }
        self.finish.is_none()
    }

    /// Ends the text.
    pub(crate) fn end(&mut self, finish: Finish) {
        self.finish.get_or_insert(finish);
    }

    /// Takes a token, and reports it.
    fn take(&mut self, token: u32, tokenizer: Option<&Tokenizer>, tell: Option<&mut OnPiece<'_>>) {
        if self.stop_tokens.contains(&token) {
            self.finish = Some(Finish::Stop);
            return;
        }
        if self.text.len() == self.prompt + self.taken {
            self.text.push(token);
        }
        self.taken += 1;
        let (text, stopped) = tokenizer.map_or(("", false), |tokenizer| self.words.push(tokenizer, token));
        let log_prob = self.log_prob.take();
        if let Some(tell) = tell {
            tell(Piece { token: Some(token), text, overflow: None, log_prob: log_prob.as_ref() });
        }
        self.log_probs.extend(log_prob);
        self.finish = if stopped { Some(Finish::Stop) } else { self.full() };
    }

    /// Returns [`Finish::Length`] if the limit of tokens is reached.
    fn full(&self) -> Option<Finish> {
        (self.taken >= self.options.most()).then_some(Finish::Length)
    }

    /// Reports text that was held back.
    pub(crate) fn flush(&mut self, tell: &mut OnPiece<'_>) {
        let text = self.words.finish();
        if !text.is_empty() {
            tell(Piece { token: None, text, overflow: None, log_prob: None });
        }
    }

    /// Reports text that was held back, and returns the result.
    pub fn into_generation(mut self, tell: &mut OnPiece<'_>) -> Generation {
        self.generation(tell)
    }

    /// Reports text that was held back, and returns the result of a sequence that has ended. Its text is gone then.
    pub fn generation(&mut self, tell: &mut OnPiece<'_>) -> Generation {
        self.flush(tell);
        let Totals { prompt_tokens, cached_tokens, done, stretches, decode_ms, .. } = self.totals;
        // The first token of each stretch belongs to its prefill.
        let decoded = self.taken.saturating_sub(done.min(self.taken)).saturating_sub(stretches);
        let overflow = if self.totals.is_full { Some(Overflowed::END) } else { self.room.so_far(self.totals.shift_ms) };
        Generation {
            prompt_tokens,
            cached_tokens,
            tokens: self.text[self.prompt..][..self.taken].to_vec(),
            text: self.words.take_text(),
            finish: self.finish.unwrap_or(Finish::Cancelled),
            prefill_ms: self.totals.prefill_ms.unwrap_or(0.0),
            decode_ms_per_token: if decoded > 0 { decode_ms / decoded as f64 } else { 0.0 },
            steady_steps: self.totals.steps,
            steady: self.totals.steady,
            drafted_tokens: self.totals.drafted,
            accepted_tokens: self.totals.accepted,
            overflow,
            log_probs: std::mem::take(&mut self.log_probs),
        }
    }
}
