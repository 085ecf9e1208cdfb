//! Generation: prefill of a prompt, and decoding until the text ends.

use std::borrow::Cow;

use backend_api::{Stats, StepParams};
use serde::{Deserialize, Serialize};

use crate::arch::Head;
use crate::constraint::Mask;
use crate::decode::{Decoding, Total};
use crate::error::ModelError;
use crate::interval::Interval;
use crate::log_probs::LogProb;
use crate::overflow::{Overflowed, Room};
use crate::request::GenerateOptions;
use crate::saving::Saver;
use crate::session::Session;
use crate::tokenizer::Tokenizer;
use crate::words::Words;
use backend_api::run::Host;

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
    /// Returns whether it is only the event between two steps of a prompt.
    pub fn is_pause(&self) -> bool {
        self.token.is_none() && self.text.is_empty() && self.overflow.is_none()
    }
}

/// Receiver of tokens: it detects the end of the text and reports events.
pub(crate) struct Sink<'a> {
    options: &'a GenerateOptions,
    tokenizer: Option<&'a Tokenizer>,
    stop_tokens: &'a [u32],
    words: Words,
    on_piece: &'a mut dyn FnMut(Piece<'_>),
    pub tokens: Vec<u32>,
    log_probs: Vec<LogProb>,
    /// Probability of the next token.
    log_prob: Option<LogProb>,
}

impl Sink<'_> {
    /// Returns the tokens that end the text.
    pub fn stop_tokens(&self) -> &[u32] {
        self.stop_tokens
    }

    /// Returns how many of the likeliest tokens to report at each position.
    pub fn top(&self) -> usize {
        self.options.log_probs.unwrap_or(0)
    }

    /// Sets the probability of the next token.
    pub fn tell_next(&mut self, log_prob: LogProb) {
        self.log_prob = Some(log_prob);
    }

    /// Takes a token; returns the reason if the text ends.
    pub fn push(&mut self, token: u32) -> Option<Finish> {
        if self.is_cancelled() {
            return Some(Finish::Cancelled);
        }
        self.take(token, true)
    }

    fn is_cancelled(&self) -> bool {
        self.options.cancel.as_ref().is_some_and(|c| c.get())
    }

    /// Reports an event between two steps of a prompt; returns whether the generation goes on.
    pub fn goes_on(&mut self) -> bool {
        (self.on_piece)(Piece { token: None, text: "", overflow: None, log_prob: None });
        !self.is_cancelled()
    }

    /// Takes a token, and reports it if `tell` is set; returns the reason if the text ends.
    fn take(&mut self, token: u32, tell: bool) -> Option<Finish> {
        if self.stop_tokens.contains(&token) {
            return Some(Finish::Stop);
        }
        self.tokens.push(token);
        let (text, stopped) = self.tokenizer.map_or(("", false), |tokenizer| self.words.push(tokenizer, token));
        let log_prob = self.log_prob.take();
        if tell {
            (self.on_piece)(Piece { token: Some(token), text, overflow: None, log_prob: log_prob.as_ref() });
        }
        self.log_probs.extend(log_prob);
        if stopped { Some(Finish::Stop) } else { self.full() }
    }

    /// Returns [`Finish::Length`] if the limit of tokens is reached.
    fn full(&self) -> Option<Finish> {
        (self.tokens.len() >= self.options.most()).then_some(Finish::Length)
    }

    /// Reports that old tokens were dropped.
    fn overflowed(&mut self, overflow: Option<Overflowed>) {
        if overflow.is_some() {
            (self.on_piece)(Piece { token: None, text: "", overflow, log_prob: None });
        }
    }

    /// Reports held-back text, and returns the tokens, the text and the probabilities.
    fn finish(mut self) -> (Vec<u32>, String, Vec<LogProb>) {
        let text = self.words.finish();
        if !text.is_empty() {
            (self.on_piece)(Piece { token: None, text, overflow: None, log_prob: None });
        }
        (self.tokens, self.words.into_text(), self.log_probs)
    }
}

/// Start of a generation whose request was checked.
struct Begin {
    room: Room,
    head: Head,
    sampling: StepParams,
    /// Position in the text at which its generated part begins.
    written: usize,
}

impl Session {
    /// Adds a prompt to the session's text and generates the continuation. Afterwards the session has the prompt and
    /// all new tokens except the last, whose keys and values may not have been computed. If the context overflowed, it
    /// has the remaining tokens.
    ///
    /// An interrupted generation, for example after the loss of a device, can be resumed: the prompt then ends with the
    /// tokens that it gave, and `options.done` lists them. The result is the same, since sampling depends only on the
    /// seed and the position in the context, and the context depends only on the length of the text.
    ///
    /// Without a tokenizer there is no text, and only `options.stop_tokens` can stop before `max_tokens`.
    ///
    /// *Errors*: a prompt that is empty, too long for the context, or has unknown tokens; more tokens than fit, with
    /// [`Overflow::Error`](crate::Overflow::Error); options out of range; those of the backend; logits that are not
    /// finite.
    pub async fn generate(
        &mut self,
        prompt: &[u32],
        options: &GenerateOptions,
        tokenizer: Option<&Tokenizer>,
        host: &dyn Host,
        on_piece: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Generation, ModelError> {
        let tokens = self.position() + prompt.len();
        let begin = self.checked(tokens, options, tokenizer)?;
        if begin.room.since(tokens).is_some() {
            let text = [self.tokens(), prompt].concat();
            return self.generate_after(&text, options, tokenizer, host, on_piece).await;
        }
        let sink = self.sink(options, tokenizer, on_piece);
        self.begun(prompt, tokens, begin, sink, host).await
    }

    /// Generates the continuation of a text. Reuses the beginning that the session has already computed.
    ///
    /// *Errors*: as [`Self::generate`].
    pub async fn generate_after(
        &mut self,
        text: &[u32],
        options: &GenerateOptions,
        tokenizer: Option<&Tokenizer>,
        host: &dyn Host,
        on_piece: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Generation, ModelError> {
        let begin = self.checked(text.len(), options, tokenizer)?;
        let context = begin.room.context(text);
        let rest = self.resume(&context);
        let sink = self.sink(options, tokenizer, on_piece);
        self.begun(rest, text.len(), begin, sink, host).await
    }

    /// Checks a request for a text of so many tokens, as [`Self::generate_after`] would, without computing anything.
    ///
    /// *Errors*: options out of range; a text that does not fit the context.
    pub fn check_request(
        &self,
        tokens: usize,
        options: &GenerateOptions,
        tokenizer: Option<&Tokenizer>,
    ) -> Result<(), ModelError> {
        self.checked(tokens, options, tokenizer).map(|_| ())
    }

    /// Checks the request for a text of so many tokens, before anything is computed.
    fn checked(
        &self,
        tokens: usize,
        options: &GenerateOptions,
        tokenizer: Option<&Tokenizer>,
    ) -> Result<Begin, ModelError> {
        let (head, sampling) = options.step(self.model().recipe().sizes().n_vocab)?;
        let n_ctx = self.n_ctx();
        let written = options.check_room(tokens, n_ctx)?;
        if tokenizer.is_none() && !options.stop.is_empty() {
            return Err(ModelError::Options(
                "stop strings need a tokenizer, which this file lacks; use stop tokens".into(),
            ));
        }
        Ok(Begin { room: Room::new(options.overflow, tokens, n_ctx)?, head, sampling, written })
    }

    fn sink<'a>(
        &self,
        options: &'a GenerateOptions,
        tokenizer: Option<&'a Tokenizer>,
        on_piece: &'a mut dyn FnMut(Piece<'_>),
    ) -> Sink<'a> {
        let eog = tokenizer.map_or(&[][..], Tokenizer::eog);
        Sink {
            options,
            tokenizer,
            stop_tokens: options.stop_tokens.as_deref().unwrap_or(eog),
            words: Words::new(options),
            on_piece,
            tokens: Vec::with_capacity(options.most().min(self.n_ctx())),
            log_probs: Vec::new(),
            log_prob: None,
        }
    }

    async fn begun(
        &mut self,
        prompt: &[u32],
        tokens: usize,
        begin: Begin,
        sink: Sink<'_>,
        host: &dyn Host,
    ) -> Result<Generation, ModelError> {
        let since = begin.room.since(tokens).unwrap_or(tokens);
        // Tokens of `done` were decoded one by one, and are recomputed in the same way so that they are rounded alike.
        let again = sink.options.done.len().min(since).min(prompt.len().saturating_sub(1));
        let ended = self.run(prompt, again, begin, sink, host).await;
        if ended.is_err() {
            // Submitted steps hold memory. The first error is the one to return.
            let _ = self.settle_states(host).await;
        }
        ended
    }

    async fn run(
        &mut self,
        prompt: &[u32],
        again: usize,
        Begin { mut room, head, sampling, written }: Begin,
        mut sink: Sink<'_>,
        host: &dyn Host,
    ) -> Result<Generation, ModelError> {
        let (options, start, cached_tokens) = (sink.options, host.now_ms(), self.position());
        let mask = options.constraint.clone();
        let mask = mask.map(|constraint| Mask::new(constraint, &options.adjust, self.model().recipe().sizes().n_vocab));
        // For log probabilities, everything is read before the next step overwrites it. With a constraint, the allowed
        // tokens depend on the token before.
        let one_by_one = options.log_probs.is_some() || mask.is_some();
        let interval = Interval::new(if one_by_one { Some(1) } else { options.fetch_interval }, start);
        let draft_max = if one_by_one { Some(0) } else { options.draft_max };
        let mut decoding = Decoding { head, sampling, host, interval, draft_max, mask, total: Total::default() };
        if options.done.is_empty() {
            sink.overflowed(room.so_far(0.0));
        }
        let told = options.done.len().saturating_sub(options.untold);
        let taken = options.done.iter().enumerate().find_map(|(at, token)| sink.take(*token, at >= told));
        let ended = taken.or_else(|| sink.full());
        // A text that overflowed is not saved any more: a resumed one drops the same tokens again.
        let saving = options.saving.as_ref().filter(|_| room.so_far(0.0).is_none());
        let mut saver = saving.map(|saving| Saver::new(saving, self.tokens(), prompt, options, start));
        if let Some(saver) = &mut saver {
            saver.save(self, &options.done, None, host).await?;
        }
        let is_adjusted = head.is_adjusted();
        if is_adjusted {
            self.write_biases(&options.adjust.biases(self.model().recipe().sizes().n_vocab))?;
            self.write_penalties(&options.adjust, room.place(written))?;
        }
        let mut from = sink.tokens.len();
        let most = if ended.is_some() { 0 } else { options.most() - from };
        let mut stretch = self.stretch(prompt, again, most, &mut decoding, &mut sink, saver.as_mut()).await?;
        let prefill_ms = stretch.first_ms - start;
        let (mut stretches, mut shift_ms) = (1, 0.0);
        let (finish, overflow) = loop {
            let fresh = &sink.tokens[from..];
            if let Some(position) = stretch.broken {
                self.know(&fresh[stretch.known..]);
                sink.finish();
                return Err(self.not_a_number(position, host).await);
            }
            let (last, known) = fresh.split_last().map_or((None, fresh), |(last, known)| (Some(*last), known));
            self.know(&known[stretch.known..]);
            if let Some(finish) = ended.or(stretch.finish) {
                break (finish, room.so_far(shift_ms));
            }
            // The context is full.
            let context: Vec<u32> = self.tokens().iter().copied().chain(last).collect();
            let Some(left) = room.make(&context) else { break (Finish::Length, Some(Overflowed::END)) };
            let full_ms = host.now_ms();
            sink.overflowed(room.so_far(shift_ms));
            self.rewind(0);
            if is_adjusted {
                self.write_penalties(&options.adjust, room.place(written))?;
            }
            (from, saver) = (sink.tokens.len(), None);
            stretch = self.stretch(&left, 0, options.most() - from, &mut decoding, &mut sink, None).await?;
            (stretches, shift_ms) = (stretches + 1, shift_ms + stretch.first_ms - full_ms);
        };
        if let Some(saver) = &mut saver {
            saver.save(self, &sink.tokens, Some(finish), host).await?;
        }
        let (tokens, text, log_probs) = sink.finish();
        // The first token of each stretch belongs to its prefill.
        let decoded = (tokens.len() - options.done.len().min(tokens.len())).saturating_sub(stretches);
        let Total { ms, steps, steady, drafted, accepted } = decoding.total;
        Ok(Generation {
            prompt_tokens: prompt.len(),
            cached_tokens,
            tokens,
            text,
            finish,
            prefill_ms,
            decode_ms_per_token: if decoded > 0 { ms / decoded as f64 } else { 0.0 },
            steady_steps: steps,
            steady,
            drafted_tokens: drafted,
            accepted_tokens: accepted,
            overflow,
            log_probs,
        })
    }
}
