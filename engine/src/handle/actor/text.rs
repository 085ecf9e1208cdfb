//! A request for text, computed in slices of so many tokens a turn.
//!
//! Sampling depends only on the seed and the position, and a sequence can be paused after any token, so slices do not
//! change the text.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use backend_api::run::Host;
use model::{Piece, Sequence, Session, Sessions, Tokenizer};

use super::super::answer::{Outcome, Teller, Told};
use super::super::prompter::Prepared;
use super::super::{Generate, Opened, Place};
use super::{block_on, since};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::recover::Event;

pub(super) struct Text {
    told: Teller,
    sequence: Sequence,
    /// Name among the [`Sessions`], once it has begun.
    name: Option<String>,
    asked: Instant,
    /// Time from the request to the first turn, and that of all turns.
    ///
    /// *Units*: milliseconds.
    waited_ms: f64,
    busy_ms: f64,
    _place: Place,
}

/// Least length of a text's turn: it pauses after it if others wait for its seat.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length {
    /// Number of new tokens.
    tokens: usize,
    /// *Units*: milliseconds.
    ms: f64,
}

impl Length {
    /// Decides the length of a turn from the tokens of a slice and the milliseconds that its texts took to come to the device: a
    /// small part of the time goes into changes, as long as nobody waits for seconds.
    pub fn new(slice: usize, change_ms: f64) -> Length {
        Length { tokens: slice, ms: (4.0 * change_ms).min(2000.0) }
    }

    fn is_reached(self, tokens: usize, ms: f64) -> bool {
        tokens >= self.tokens && ms >= self.ms
    }
}

/// Turn of several texts that advance together.
pub(super) struct Round<'a> {
    pub length: Length,
    /// Number of seats.
    pub seats: usize,
    /// Number of its texts that have not ended.
    pub live: Cell<usize>,
    /// Whether one of them needs a slot with more room.
    pub outgrown: Cell<bool>,
    /// Whether there are requests that do not take part.
    pub others: &'a dyn Fn() -> bool,
}

impl Round<'_> {
    /// Returns whether all pause after their next token, and go on in other company: a request waits that a seat is free for,
    /// or one of them needs another seat.
    fn is_over(&self) -> bool {
        self.outgrown.get() || (self.live.get() < self.seats && (self.others)())
    }
}

impl Text {
    /// Accepts a request; if it is refused, sends the error to the caller.
    pub fn admit(
        request: Generate,
        mut told: Teller,
        place: Place,
        engine: &Engine,
        is_text: Result<(), EngineError>,
    ) -> Option<Text> {
        let prepared = is_text.and_then(|()| {
            let n_vocab = engine.model().recipe().sizes().n_vocab;
            let Prepared { prompt, options, dropped_messages, parts } =
                engine.prompter().prepare(request, engine.generate_options(), n_vocab)?;
            Ok((engine.sequence(&prompt, &options)?, dropped_messages, parts))
        });
        let (sequence, dropped_messages, parts) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                told.tell(Err(error));
                return None;
            }
        };
        let prompt_tokens = sequence.prompt_tokens();
        told.tell(Ok(Told::Begun { prompt_tokens, dropped_messages, parts: Box::new(parts) }));
        let (waited_ms, busy_ms) = (0.0, 0.0);
        Some(Text { told, sequence, name: None, asked: Instant::now(), waited_ms, busy_ms, _place: place })
    }

    pub fn is_wanted(&self) -> bool {
        self.told.is_heard()
    }

    /// Sends an error in place of the text.
    pub fn refuse(&mut self, error: EngineError) {
        self.told.tell(Err(error));
    }

    pub fn is_new(&self) -> bool {
        self.name.is_none()
    }

    pub fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Takes its name at the beginning of its first turn.
    pub fn begin(&mut self, name: String) {
        self.name = Some(name);
        self.waited_ms = since(self.asked);
    }

    /// Generates until the text ends, or until `slice` tokens are there and others wait. Returns the text if it goes on.
    pub fn turn(
        mut self,
        opened: &mut Opened,
        sessions: &mut Sessions,
        slice: usize,
        others: &dyn Fn() -> bool,
    ) -> Option<Text> {
        let start = Instant::now();
        let ended = self.generate(opened, sessions, slice, others);
        self.busy_ms += since(start);
        self.goes_on(ended).then_some(self)
    }

    /// Returns whether the text goes on after a turn; if not, sends the outcome.
    fn goes_on(&mut self, ended: Result<(), EngineError>) -> bool {
        match ended {
            Ok(()) if self.sequence.finish().is_none() => return self.is_wanted(),
            Ok(()) => self.tell_end(),
            Err(error) => drop(self.told.tell(Err(error))),
        }
        false
    }

    /// Runs one turn alone.
    fn generate(
        &mut self,
        opened: &mut Opened,
        sessions: &mut Sessions,
        slice: usize,
        others: &dyn Fn() -> bool,
    ) -> Result<(), EngineError> {
        let Opened { engine, source, options } = opened;
        let name = self.name.as_deref().unwrap_or_default();
        let host = engine.shared_host();
        let start = host.now_ms();
        if let Err(error) = block_on(sessions.turn_to(name, &self.sequence.context(), &*host)) {
            let error = EngineError::from(error);
            if error.lost().is_none() {
                return Err(error);
            }
            // The states of the sequence on the device are lost as well. They are recomputed as needed.
            let gone = sessions.name().to_owned();
            sessions.remove(&gone);
        }
        let tokenizer = engine.shared_tokenizer();
        let heard = Cell::new(true);
        let length = Length::new(slice, host.now_ms() - start);
        let mut pauses = pauses(&self.sequence, &*host, length, others, &heard);
        let told = &mut self.told;
        let mut on_event = |event: Event<'_>| heard.set(tell(told, &event, tokenizer.as_ref()));
        let (session, sequence) = (sessions.session_mut(), &mut self.sequence);
        block_on(engine.run_surviving(&**source, options, session, sequence, &mut pauses, &mut on_event))?;
        sessions.note(&self.sequence);
        Ok(())
    }

    /// Runs one turn in a batch, in a session of its own. Returns whether the text goes on; nothing if the device was
    /// lost. The outcome is sent at once: the others may go on for long.
    pub async fn slice(&mut self, engine: &Engine, session: &mut Session, round: &Round<'_>) -> Option<bool> {
        let start = Instant::now();
        let ended = self.generate_beside(engine, session, round).await;
        self.busy_ms += since(start);
        let is_lost = ended.as_ref().is_err_and(|error| error.lost().is_some());
        if is_lost {
            return None;
        }
        let goes_on = self.goes_on(ended);
        round.live.set(round.live.get() - usize::from(!goes_on));
        Some(goes_on)
    }

    async fn generate_beside(
        &mut self,
        engine: &Engine,
        session: &mut Session,
        round: &Round<'_>,
    ) -> Result<(), EngineError> {
        let tokenizer = engine.shared_tokenizer();
        let heard = Cell::new(true);
        let mut pauses = pauses(&self.sequence, engine.host(), round.length, round.others, &heard);
        let told = &mut self.told;
        let mut on_piece = |piece: Piece<'_>| heard.set(tell(told, &Event::Piece(piece), tokenizer.as_ref()));
        let mut run = engine.begin(session, &mut self.sequence, &mut on_piece).await?;
        while run.advance(&mut on_piece).await? {
            if run.is_out_of_room() {
                round.outgrown.set(true);
                return Ok(run.pause(&mut on_piece).await?);
            }
            // Those that wait for a turn of such a long prompt need not wait for all of it.
            let holds_up = run.is_in_prompt() && run.is_alone() && (round.others)();
            if run.may_pause() && (round.is_over() || holds_up || pauses(run.sequence())) {
                return Ok(run.pause(&mut on_piece).await?);
            }
        }
        Ok(())
    }

    /// Sends the outcome.
    fn tell_end(&mut self) {
        let Text { told, sequence, waited_ms, busy_ms, .. } = self;
        let prompt_tokens = sequence.prompt_tokens();
        let (prefill_ms, cached_tokens) = sequence.first().unwrap_or_default();
        let generation = sequence.generation(&mut |piece| {
            tell(told, &Event::Piece(piece), None);
        });
        told.tell(Ok(Told::Ended(Box::new(Outcome {
            prompt_tokens,
            cached_tokens,
            tokens: generation.tokens,
            text: generation.text,
            finish: generation.finish,
            waited_ms: *waited_ms,
            prefill_ms,
            decode_ms: (*busy_ms - prefill_ms).max(0.0),
            drafted_tokens: generation.drafted_tokens,
            accepted_tokens: generation.accepted_tokens,
            overflow: generation.overflow,
        }))));
    }
}

/// Returns the function that decides when a turn ends: when nobody waits for the text any more, or when it is long enough and
/// others wait.
fn pauses<'a>(
    sequence: &Sequence,
    host: &'a dyn Host,
    length: Length,
    others: &'a dyn Fn() -> bool,
    heard: &'a Cell<bool>,
) -> impl FnMut(&Sequence) -> bool + 'a {
    let (before, start) = (sequence.tokens().len(), host.now_ms());
    move |sequence| {
        let is_over = length.is_reached(sequence.tokens().len().saturating_sub(before), host.now_ms() - start);
        !heard.get() || (is_over && others())
    }
}

/// Sends an event to the caller. Returns whether anybody still waits for the text.
fn tell(told: &mut Teller, event: &Event<'_>, tokenizer: Option<&Arc<Tokenizer>>) -> bool {
    told.tell(Ok(match event {
        Event::Recovered(to) => Told::Recovered((*to).clone()),
        Event::Piece(Piece { overflow: Some(overflow), .. }) => Told::Overflowed(*overflow),
        Event::Piece(piece) if piece.is_pause() => return told.is_heard(),
        Event::Piece(Piece { token, text, log_prob, .. }) => {
            let log_prob = log_prob.map(|log_prob| Box::new(log_prob.entry(tokenizer.map(|tokenizer| &**tokenizer))));
            Told::Piece { token: *token, text: (*text).into(), log_prob }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::Length;

    #[test]
    fn turns_last_for_a_slice_and_four_times_the_change_of_texts_but_at_most_two_seconds() {
        let length = Length::new(8, 100.0);
        assert!(!length.is_reached(7, 400.0));
        assert!(!length.is_reached(8, 399.0));
        assert!(length.is_reached(8, 400.0));
        let slow = Length::new(8, 9000.0);
        assert!(!slow.is_reached(8, 1999.0));
        assert!(slow.is_reached(8, 2000.0));
        assert!(Length::new(8, 0.0).is_reached(8, 0.0));
    }
}
