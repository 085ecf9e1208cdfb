//! Generation: a prompt, and tokens after it until the text ends.

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

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// A stop token or stop string was produced.
    Stop,
    /// As many tokens as asked for, or the context is full.
    Length,
    /// The caller cancelled.
    Cancelled,
}

impl Finish {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::Length => "length",
            Finish::Cancelled => "cancelled",
        }
    }
}

/// A generation that ended.
#[derive(Debug, Clone)]
pub struct Generation {
    /// Tokens of the prompt that had to be computed.
    pub prompt_tokens: usize,
    /// Tokens before them, which the session had computed already.
    pub cached_tokens: usize,
    /// The new tokens, without the stop token; those that were done before are among them.
    pub tokens: Vec<u32>,
    /// Their text, without the stop string.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// From the start to the first token.
    ///
    /// *Units*: milliseconds.
    pub prefill_ms: f64,
    /// From one token to the next, on average, where no others had to make room between them.
    ///
    /// *Units*: milliseconds; 0 if there was no second token.
    pub decode_ms_per_token: f64,
    /// Decode steps that [`Self::steady`] covers; a draft counts as those that it saved.
    pub steady_steps: usize,
    /// Counters of the backend over all decode steps but those of the first interval, reads included.
    pub steady: Stats,
    /// Tokens that were drafted, from what the text had already or by a small model.
    pub drafted_tokens: usize,
    /// Those of them that the model chose, too: so many steps were saved.
    pub accepted_tokens: usize,
    /// Overflow of the context, if the text outgrew it.
    pub overflow: Option<Overflowed>,
    /// How likely the new tokens were, if that was asked for; of those that were done before nothing is known any more.
    pub log_probs: Vec<LogProb>,
}

impl Generation {
    /// Returns the tokens of the text that are in the context afterwards: those that were continued, and the new
    /// ones.
    pub fn context<'t>(&self, text: &'t [u32]) -> Cow<'t, [u32]> {
        self.overflow.map_or(text.into(), |overflow| overflow.context(text))
    }
}

/// Report of each new token as it arrives. Between two steps of a long prompt a report has neither token nor text, so that the
/// caller may cancel.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// The token; none when text that was held back is reported at the end, and while a prompt is computed.
    pub token: Option<u32>,
    /// Text that is certain by now: it may be empty, or include that of earlier tokens.
    pub text: &'a str,
    /// Overflow of the context so far, reported before the remaining tokens are computed again; none with a token.
    pub overflow: Option<Overflowed>,
    /// How likely the token was, if that was asked for.
    pub log_prob: Option<&'a LogProb>,
}

impl Piece<'_> {
    /// Whether it tells nothing, but that a prompt is computed.
    pub fn is_pause(&self) -> bool {
        self.token.is_none() && self.text.is_empty() && self.overflow.is_none()
    }
}

/// Takes tokens until the text ends.
pub(crate) struct Sink<'a> {
    options: &'a GenerateOptions,
    tokenizer: Option<&'a Tokenizer>,
    stop_tokens: &'a [u32],
    words: Words,
    on_piece: &'a mut dyn FnMut(Piece<'_>),
    pub tokens: Vec<u32>,
    log_probs: Vec<LogProb>,
    /// That of the next token.
    log_prob: Option<LogProb>,
}

impl Sink<'_> {
    /// The tokens that end the text.
    pub fn stop_tokens(&self) -> &[u32] {
        self.stop_tokens
    }

    /// How many of the likeliest tokens are wanted for each place.
    pub fn top(&self) -> usize {
        self.options.log_probs.unwrap_or(0)
    }

    /// Reports the next token with this probability.
    pub fn tell_next(&mut self, log_prob: LogProb) {
        self.log_prob = Some(log_prob);
    }

    /// Whether the text ends here.
    pub fn push(&mut self, token: u32) -> Option<Finish> {
        if self.is_cancelled() {
            return Some(Finish::Cancelled);
        }
        self.take(token, true)
    }

    fn is_cancelled(&self) -> bool {
        self.options.cancel.as_ref().is_some_and(|c| c.get())
    }

    /// Lets the caller cancel between two steps of a prompt. Whether it goes on.
    pub fn goes_on(&mut self) -> bool {
        (self.on_piece)(Piece { token: None, text: "", overflow: None, log_prob: None });
        !self.is_cancelled()
    }

    /// Whether the text ends here; the caller is told of the token unless it knows it.
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

    /// Whether there are as many tokens as were asked for.
    fn full(&self) -> Option<Finish> {
        (self.tokens.len() >= self.options.most()).then_some(Finish::Length)
    }

    /// Reports that tokens made room.
    fn overflowed(&mut self, overflow: Option<Overflowed>) {
        if overflow.is_some() {
            (self.on_piece)(Piece { token: None, text: "", overflow, log_prob: None });
        }
    }

    /// Reports what was held back, and returns tokens, text and how likely it was.
    fn finish(mut self) -> (Vec<u32>, String, Vec<LogProb>) {
        let text = self.words.finish();
        if !text.is_empty() {
            (self.on_piece)(Piece { token: None, text, overflow: None, log_prob: None });
        }
        (self.tokens, self.words.into_text(), self.log_probs)
    }
}

/// A generation that was checked: what is in the context when it begins, and how tokens are drawn.
struct Begin {
    room: Room,
    head: Head,
    sampling: StepParams,
    /// The position of the text that its generated part begins at.
    written: usize,
}

impl Session {
    /// Adds a prompt to the text and generates what follows. Afterwards the session knows the prompt and all new
    /// tokens but the last, whose keys and values may not have been computed; of a text that outgrew the context, what
    /// is left of it.
    ///
    /// A generation that was broken off, say because a device was lost, goes on where it was if the prompt ends with the
    /// tokens that it gave, which the options name: what is drawn follows from the seed and the position in the
    /// context, and what is in the context from the length of the text.
    ///
    /// Without a tokenizer there is no text, and nothing but `options.stop_tokens` stops before `max_tokens`.
    ///
    /// *Errors*: a prompt that is empty, too long for the context, or has unknown tokens; more tokens asked for than
    /// fit, where [`Overflow::Error`](crate::Overflow::Error) says so; options out of range; what the backend returns; logits that are not
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

    /// Generates what follows a text, of which the beginning that was computed before is used again.
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

    /// Refuses what [`Self::generate_after`] would refuse of a text of so many tokens, before its turn comes.
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

    /// Refuses what cannot be, before anything is computed. The text has so many tokens.
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
        // Tokens that were decoded before are computed one by one again, so that they are rounded alike.
        let again = sink.options.done.len().min(since).min(prompt.len().saturating_sub(1));
        let ended = self.run(prompt, again, begin, sink, host).await;
        if ended.is_err() {
            // What is under way holds memory. The error that counts is the first one.
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
        // Of a token that is told of, all is read before the next step rewrites it. What may come next in a format
        // follows from the token before.
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
        // A text that had to make room is not saved any more: who goes on from what was saved makes the same room.
        let saving = options.saving.as_ref().filter(|_| room.so_far(0.0).is_none());
        let mut saver = saving.map(|saving| Saver::new(saving, self.tokens(), prompt, options, start));
        if let Some(saver) = &mut saver {
            saver.save(self, &options.done, None, host).await?;
        }
        let is_adjusted = matches!(head, Head::Adjusted { .. });
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
        // The first token of a stretch comes with what is before it.
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
