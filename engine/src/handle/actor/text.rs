//! A request for text: so many tokens a turn.
//!
//! What is drawn follows from the seed and the position, and a generation goes on where it was broken off, so a text in
//! slices is the text at once.

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
    /// What is in the context at its next turn: the prompt and all tokens, unless some made room.
    context: Vec<u32>,
    /// Among the others' texts, once it has begun.
    name: Option<String>,
    asked: Instant,
    times: Times,
    _place: Place,
}

/// What the first turn found, and what all took.
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
    /// Takes a request on; if that is refused, the caller is told.
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

    /// Its first turn comes.
    pub fn begin(&mut self, name: String) {
        self.name = Some(name);
        self.times.waited_ms = since(self.asked);
    }

    /// Generates until the text ends, or so many tokens are there while others wait. Whether it goes on.
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

    /// Takes note of how a turn of some milliseconds ended, and tells it if it was the last. Whether the text goes on.
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

    /// One turn: what was generated so far, and text that was held back until its end.
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
            // The states of the text on the device are lost as well. The generation sees to the rest.
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

    /// One turn beside those of other texts, each in a session of its own, of which the end is told at once. What it came
    /// to, and whether the text goes on; nothing if the device was lost, and then the tokens that came before are done.
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
        // Drafts would have the others wait.
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

    /// The prompt, and what was generated so far.
    fn text(&self) -> Vec<u32> {
        [&self.prompt[..], &self.options.done].concat()
    }

    /// What is in the context at its next turn.
    pub fn context(&self) -> &[u32] {
        &self.context
    }

    /// Takes note of the text as its turn left it.
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

/// What is told of a text during one turn, and when that ends.
struct Turn<'a> {
    told: &'a mut Teller,
    tokenizer: Option<Arc<Tokenizer>>,
    slice: usize,
    others: &'a dyn Fn() -> bool,
    cancel: Rc<Cell<bool>>,
    fresh: Vec<u32>,
    /// Text that was held back until the end.
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
            // At the end of a turn it may still turn out to be part of a stop string. In a prompt there is none.
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
