//! A request for text, computed in slices of so many tokens a turn.
//!
//! Sampling depends only on the seed and the position, and a generation resumes where it stopped, so slices do not
//! change the text.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use model::{Finish, GenerateOptions, Generation, Piece, Session, Sessions, Tokenizer};

use super::super::answer::{Outcome, Teller, Told};
use super::super::prompter::Prepared;
use super::super::{Generate, Opened, Place};
use super::{block_on, since};
use crate::engine::{Engine, note};
use crate::error::EngineError;
use crate::recover::Event;

pub(super) struct Text {
    told: Teller,
    prompt: Vec<u32>,
    options: GenerateOptions,
    /// Tokens in the context at the next turn: the prompt and all new tokens, unless some were dropped to make room.
    context: Vec<u32>,
    /// Name among the [`Sessions`], once it has begun.
    name: Option<String>,
    asked: Instant,
    times: Times,
    _place: Place,
}

/// Prefill time and cached tokens of the first turn, and sums over all turns.
#[derive(Default)]
struct Times {
    waited_ms: f64,
    prefill_ms: f64,
    busy_ms: f64,
    cached_tokens: usize,
    drafted: usize,
    accepted: usize,
}

impl Text {
    /// Accepts a request; if it is refused, sends the error to the caller.
    pub fn admit(
        request: Generate,
        mut told: Teller,
        place: Place,
        engine: &Engine,
        texts: Result<&Sessions, EngineError>,
    ) -> Option<Text> {
        let prepared = texts.and_then(|sessions| {
            let n_vocab = engine.model().recipe().sizes().n_vocab;
            let prepared = engine.prompter().prepare(request, engine.generate_options(), n_vocab)?;
            let Prepared { prompt, options, .. } = &prepared;
            sessions.session().check_request(prompt.len(), options, engine.tokenizer().ok())?;
            Ok(prepared)
        });
        let Prepared { prompt, options, dropped_messages, parts } = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                told.tell(Err(error));
                return None;
            }
        };
        told.tell(Ok(Told::Begun { prompt_tokens: prompt.len(), dropped_messages, parts: Box::new(parts) }));
        let (asked, times, context) = (Instant::now(), Times::default(), prompt.clone());
        Some(Text { told, prompt, options, context, name: None, asked, times, _place: place })
    }

    pub fn is_wanted(&self) -> bool {
        self.told.is_heard()
    }

    pub fn is_new(&self) -> bool {
        self.name.is_none()
    }

    pub fn prompt(&self) -> &[u32] {
        &self.prompt
    }

    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Takes its name at the beginning of its first turn.
    pub fn begin(&mut self, name: String) {
        self.name = Some(name);
        self.times.waited_ms = since(self.asked);
    }

    /// Generates until the text ends, or until `slice` tokens are there and others wait. Returns whether it goes on.
    pub fn turn(
        &mut self,
        opened: &mut Opened,
        sessions: &mut Sessions,
        slice: usize,
        others: impl Fn() -> bool,
    ) -> bool {
        let start = Instant::now();
        let ended = self.generate(opened, sessions, slice, &others);
        self.goes_on(ended, since(start))
    }

    /// Records how a turn of `ms` milliseconds ended, and sends the outcome if it was the last. Returns whether the
    /// text goes on.
    fn goes_on(&mut self, ended: Result<(Generation, String), EngineError>, ms: f64) -> bool {
        let (fresh, tail) = match ended {
            Ok(generated) => generated,
            Err(error) => {
                self.told.tell(Err(error));
                return false;
            }
        };
        let is_first = self.options.done.is_empty();
        self.times.busy_ms += ms;
        self.times.drafted += fresh.drafted_tokens;
        self.times.accepted += fresh.accepted_tokens;
        if is_first {
            self.times.prefill_ms = fresh.prefill_ms;
            self.times.cached_tokens = fresh.cached_tokens;
        }
        if fresh.finish == Finish::Cancelled {
            let text = [&self.prompt[..], &fresh.tokens].concat();
            self.context = fresh.context(&text).into_owned();
            self.options.done = fresh.tokens;
            return self.is_wanted();
        }
        if !tail.is_empty() {
            self.told.tell(Ok(Told::Piece { token: None, text: tail, log_prob: None }));
        }
        self.told.tell(Ok(Told::Ended(Box::new(self.outcome(fresh)))));
        false
    }

    /// Runs one turn alone. Returns all tokens so far, and text that was held back until the end of the turn.
    fn generate(
        &mut self,
        opened: &mut Opened,
        sessions: &mut Sessions,
        slice: usize,
        others: &dyn Fn() -> bool,
    ) -> Result<(Generation, String), EngineError> {
        let Opened { engine, source, options: loaded } = opened;
        let name = self.name.as_deref().unwrap_or_default();
        if let Err(error) = block_on(sessions.turn_to(name, &self.context, engine.host())) {
            let error = EngineError::from(error);
            if error.lost().is_none() {
                return Err(error);
            }
            // The states of the sequence on the device are lost as well. `generate_surviving` recomputes what it needs.
            let gone = sessions.name().to_owned();
            sessions.remove(&gone);
        }
        let (text, options) = (self.text(), self.options.clone());
        let mut turn = Turn::new(&mut self.told, engine, slice, others);
        let options = GenerateOptions { cancel: Some(turn.cancel.clone()), ..options };
        let mut on_event = |event: Event<'_>| turn.take(&event);
        let session = sessions.session_mut();
        let ended = block_on(engine.generate_surviving(&**source, loaded, session, &text, &options, &mut on_event));
        let (generation, tail) = (ended?, turn.tail);
        self.note(sessions, &generation);
        Ok((generation, tail))
    }

    /// Runs one turn in a batch, in a session of its own. Returns the generation, and whether the text goes on; nothing
    /// if the device was lost. In that case the tokens that were sent before are kept as done.
    pub async fn slice(
        &mut self,
        engine: &Engine,
        session: &mut Session,
        slice: usize,
        others: &dyn Fn() -> bool,
    ) -> Option<(Option<Generation>, bool)> {
        let start = Instant::now();
        let (text, options) = (self.text(), self.options.clone());
        let mut turn = Turn::new(&mut self.told, engine, slice, others);
        // Drafts would delay the rest of the batch.
        let options = GenerateOptions { cancel: Some(turn.cancel.clone()), draft_max: Some(0), ..options };
        let ended = engine.generate(session, &text, &options, &mut |piece| turn.take(&Event::Piece(piece))).await;
        let Turn { tail, fresh, .. } = turn;
        if ended.as_ref().is_err_and(|error| EngineError::lost(error).is_some()) {
            self.options.done.extend(fresh);
            return None;
        }
        let generation = ended.as_ref().ok().cloned();
        let goes_on = self.goes_on(ended.map(|generation| (generation, tail)), since(start));
        Some((generation, goes_on))
    }

    /// Returns the prompt and the tokens so far.
    fn text(&self) -> Vec<u32> {
        [&self.prompt[..], &self.options.done].concat()
    }

    /// Returns the tokens in the context at the next turn.
    pub fn context(&self) -> &[u32] {
        &self.context
    }

    /// Records the sequence as its turn left it.
    pub fn note(&self, sessions: &mut Sessions, generation: &Generation) {
        note(sessions, &self.text(), &self.options, generation);
    }

    fn outcome(&self, generation: Generation) -> Outcome {
        let Generation { tokens, text, finish, overflow, .. } = generation;
        let Times { waited_ms, prefill_ms, busy_ms, cached_tokens, drafted, accepted } = self.times;
        Outcome {
            prompt_tokens: self.prompt.len(),
            cached_tokens,
            tokens,
            text,
            finish,
            waited_ms,
            prefill_ms,
            decode_ms: (busy_ms - prefill_ms).max(0.0),
            drafted_tokens: drafted,
            accepted_tokens: accepted,
            overflow,
        }
    }
}

/// One turn of a text: sends its events, and decides when it ends.
struct Turn<'a> {
    told: &'a mut Teller,
    tokenizer: Option<Arc<Tokenizer>>,
    slice: usize,
    others: &'a dyn Fn() -> bool,
    cancel: Rc<Cell<bool>>,
    fresh: Vec<u32>,
    /// Text that was held back until the end of the turn.
    tail: String,
}

impl<'a> Turn<'a> {
    fn new(told: &'a mut Teller, engine: &Engine, slice: usize, others: &'a dyn Fn() -> bool) -> Turn<'a> {
        let tokenizer = engine.shared_tokenizer();
        Turn { told, tokenizer, slice, others, cancel: Rc::default(), fresh: Vec::new(), tail: String::new() }
    }

    fn take(&mut self, event: &Event<'_>) {
        let heard = match event {
            Event::Recovered(to) => self.told.tell(Ok(Told::Recovered((*to).clone()))),
            Event::Piece(Piece { overflow: Some(overflow), .. }) => self.told.tell(Ok(Told::Overflowed(*overflow))),
            // Text without a token comes at the end of a turn and may still be part of a stop string. During a prompt
            // it is empty.
            Event::Piece(Piece { token: None, text, .. }) => {
                self.tail.push_str(text);
                self.told.is_heard()
            }
            Event::Piece(Piece { token, text, log_prob, .. }) => {
                self.fresh.extend(*token);
                let log_prob = log_prob.map(|log_prob| Box::new(log_prob.entry(self.tokenizer.as_deref())));
                self.told.tell(Ok(Told::Piece { token: *token, text: (*text).into(), log_prob }))
            }
        };
        if !heard || (self.fresh.len() >= self.slice && (self.others)()) {
            self.cancel.set(true);
        }
    }
}
