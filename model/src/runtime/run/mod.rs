//! Run of a sequence in a session: steps are submitted before the tokens of earlier ones are read.

mod drafter;
mod generate;
mod saver;

pub use drafter::DraftError;

use std::rc::Rc;

use backend_api::pace::Mark;
use backend_api::run::{self, Host, finish_read};
use backend_api::{Backend, Pace, ReadId, Stats, StepParams};

use crate::arch::Head;
use crate::arch::MAX_TOP;
use crate::error::ModelError;
use crate::runtime::load::no_storage;
use crate::runtime::scheduler::Joined;
use crate::runtime::sequence::{Drafts, Finish, Interval, MAX_FETCH_INTERVAL, OnPiece, Piece, Sequence, Told};
use crate::runtime::session::{Mask, Prefill, Session};
use crate::text::tokenizer::Tokenizer;
use saver::Saver;

/// A sequence that is being generated in a session. It can be left after each [`Self::advance`], with [`Self::pause`],
/// and begun again later, in this session or another.
pub struct Run<'a> {
    session: &'a mut Session,
    sequence: &'a mut Sequence,
    tokenizer: Option<&'a Tokenizer>,
    host: &'a dyn Host,
    backend: Rc<dyn Backend>,
    /// Time at which the run began.
    ///
    /// *Units*: milliseconds, as the host's.
    start_ms: f64,
    interval: Interval,
    /// Mask of the allowed next tokens, if the text is constrained.
    mask: Option<Mask>,
    saver: Option<Saver>,
    may_draft: bool,
    stretch: Stretch,
    buffer: [u32; MAX_FETCH_INTERVAL],
}

/// A part of a text without a context shift: a prompt, and the tokens after it.
#[derive(Default)]
struct Stretch {
    /// Steps of the prompt that are still to be taken; nothing once there is a token after it.
    prefill: Option<Prefill>,
    /// Time at which the stretch began, and that of its first token.
    ///
    /// *Units*: milliseconds, as the host's.
    begin_ms: f64,
    first_ms: f64,
    /// Position of the first new token.
    begin: usize,
    /// Most new tokens.
    budget: usize,
    /// New tokens of the submitted steps, without those of a pending draft.
    made: usize,
    /// Generated tokens of the sequence before this stretch.
    from: usize,
    /// New tokens that the session has recorded.
    known: usize,
    /// Whether the session has no room for the next token, though the context has.
    is_out_of_room: bool,
    drafts: Option<Drafts>,
    under_way: Option<Fetch>,
    joined: Option<Joined>,
    /// New tokens and counters of the backend after the first interval.
    steady: Option<(usize, Stats)>,
}

/// A draft: tokens that may come next.
struct Draft {
    tokens: Vec<u32>,
    /// Whether the draft model made it.
    is_by_model: bool,
}

/// A pending read of tokens.
struct Fetch {
    read: ReadId,
    /// Position of the first token.
    first: usize,
    count: usize,
    /// Draft that is being verified: one token of the model is read for each of its rows.
    draft: Option<Draft>,
    /// Pending read of the token's probabilities.
    told: Option<Told<ReadId>>,
    /// Time mark of the device before the read.
    mark: Option<Mark>,
}

impl<'a> Run<'a> {
    /// Begins a run. Reuses the beginning of the text that the session has already computed.
    ///
    /// *Errors*: a model that does not continue texts; an empty text, or one with unknown tokens; more tokens than fit,
    /// with [`Overflow::Error`](crate::Overflow::Error); those of the backend.
    pub async fn begin(
        session: &'a mut Session,
        sequence: &'a mut Sequence,
        tokenizer: Option<&'a Tokenizer>,
        host: &'a dyn Host,
        tell: &mut OnPiece<'_>,
    ) -> Result<Run<'a>, ModelError> {
        let start_ms = host.now_ms();
        let recipe = session.model().recipe();
        recipe.makes_text()?;
        let sizes = recipe.sizes();
        let (n_ctx, n_vocab) = (sizes.n_ctx, sizes.n_vocab);
        sequence.begin(tokenizer, n_ctx, tell)?;
        let options = &sequence.options;
        let mask = options.constraint.clone().map(|constraint| Mask::new(constraint, &options.adjust, n_vocab));
        // For log probabilities, everything is read before the next step overwrites it. With a constraint, the allowed
        // tokens depend on the token before.
        let one_by_one = options.log_probs.is_some() || mask.is_some();
        let interval = Interval::new(if one_by_one { Some(1) } else { options.fetch_interval }, start_ms);
        // A text that overflowed is not saved any more: a resumed one drops the same tokens again.
        let saving = options.saving.as_ref().filter(|_| sequence.room.so_far(0.0).is_none());
        let saver = saving.map(|saving| Saver::new(saving.clone(), start_ms));
        let backend = session.model().backend().clone();
        let mut run = Run {
            session,
            sequence,
            tokenizer,
            host,
            backend,
            start_ms,
            interval,
            mask,
            saver,
            may_draft: !one_by_one,
            stretch: Stretch::default(),
            buffer: [0; MAX_FETCH_INTERVAL],
        };
        match run.prepare().await {
            Ok(()) => Ok(run),
            Err(error) => Err(run.failed(error).await),
        }
    }

    /// Returns the sequence.
    pub fn sequence(&self) -> &Sequence {
        self.sequence
    }

    /// Returns whether the sequence may be left now: not where a short rest of a prompt would be computed in other steps
    /// later, and be rounded otherwise.
    pub fn may_pause(&self) -> bool {
        self.stretch.prefill.as_ref().is_none_or(|prefill| self.session.is_long(prefill.left()))
    }

    /// Returns whether the text goes on only in a session with more [room](Session::room), after [`Self::pause`].
    pub fn is_out_of_room(&self) -> bool {
        self.stretch.is_out_of_room
    }

    /// Returns whether a prompt is being computed.
    pub fn is_in_prompt(&self) -> bool {
        self.stretch.prefill.is_some()
    }

    /// Returns whether no other sequence of a batch takes part in steps.
    pub fn is_alone(&self) -> bool {
        !self.session.is_beside()
    }

    /// Begins the first stretch.
    async fn prepare(&mut self) -> Result<(), ModelError> {
        let context = self.sequence.context().into_owned();
        let rest = self.session.resume(&context);
        if self.sequence.totals.prefill_ms.is_none() {
            self.sequence.totals.prompt_tokens = rest.len();
            self.sequence.totals.cached_tokens = self.session.tokens().len();
        }
        if let Some(saver) = &mut self.saver {
            saver.save(self.session, self.sequence, self.host).await?;
        }
        if self.sequence.head.is_adjusted() {
            let n_vocab = self.session.model().recipe().sizes().n_vocab;
            self.session.write_biases(&self.sequence.options.adjust.biases(n_vocab))?;
        }
        // Tokens that were decoded one by one are recomputed in the same way, so that they are rounded alike.
        let text = self.sequence.text().len();
        let decoded = self.sequence.tokens().len().min(self.sequence.room.since(text).unwrap_or(text));
        self.stretch(rest, decoded.min(rest.len().saturating_sub(1))).await
    }

    /// Begins a stretch with a prompt, of which the last `again` tokens were decoded before.
    async fn stretch(&mut self, prompt: &[u32], again: usize) -> Result<(), ModelError> {
        let begin = self.session.tokens().len() + prompt.len();
        // Each token needs a row of the history.
        let mut budget = self.sequence.left().min(self.session.room().saturating_sub(begin));
        if self.sequence.head.is_adjusted() {
            let place = self.sequence.room.place(self.sequence.prompt_tokens());
            self.session.write_penalties(&self.sequence.options.adjust, place)?;
        }
        if budget > 0 && !self.mask().await? {
            budget = 0;
        }
        let head = if budget == 0 { Head::NONE } else { self.sequence.head };
        let prefill = Some(self.session.prefill_steps(prompt, again, head, self.host).await?);
        let (from, begin_ms) = (self.sequence.tokens().len(), self.host.now_ms());
        self.stretch = Stretch { prefill, begin_ms, begin, budget, from, ..Stretch::default() };
        Ok(())
    }

    /// Writes the mask of the next token, if the text is constrained. Returns whether there can be one; if not, the text
    /// ends.
    async fn mask(&mut self) -> Result<bool, ModelError> {
        let Some(mask) = &mut self.mask else { return Ok(true) };
        let goes_on = mask.write(self.session, self.sequence.tokens(), self.sequence.stop_tokens()).await?;
        if !goes_on {
            self.sequence.end(Finish::Stop);
        }
        Ok(goes_on)
    }

    /// Takes a step of the prompt, or waits for the next tokens. Returns whether the text goes on.
    ///
    /// *Errors*: those of the backend; logits that are not finite; the run was out of room already. The run has ended then,
    /// and the sequence can be run again.
    pub async fn advance(&mut self, tell: &mut OnPiece<'_>) -> Result<bool, ModelError> {
        if self.is_out_of_room() {
            let n_ctx = self.session.room();
            return Err(self.failed(ModelError::ContextFull { tokens: 1, used: n_ctx, n_ctx }).await);
        }
        let advanced = match self.stretch.prefill.take() {
            Some(prefill) => self.advance_prompt(prefill, tell).await,
            None => self.decode(tell).await,
        };
        match advanced {
            Err(error) => Err(self.failed(error).await),
            Ok(()) if self.sequence.finish().is_none() => Ok(true),
            Ok(()) => self.end().await.map(|()| false),
        }
    }

    /// Leaves the run: takes the tokens of steps that are under way. The session then has all tokens but the last, and the
    /// sequence can be run again.
    ///
    /// *Errors*: as [`Self::advance`].
    pub async fn pause(mut self, tell: &mut OnPiece<'_>) -> Result<(), ModelError> {
        let taken = match self.stretch.under_way.take() {
            Some(fetch) if self.sequence.finish().is_none() => self.accept(fetch, tell).await,
            under_way => {
                self.stretch.under_way = under_way;
                Ok(())
            }
        };
        match taken {
            Err(error) => Err(self.failed(error).await),
            Ok(()) => self.end().await,
        }
    }

    /// Ends the run after an error, of which the first is the one to return: submitted steps hold memory.
    async fn failed(&mut self, error: ModelError) -> ModelError {
        let _ = self.drain().await;
        let _ = self.session.settle_states(self.host).await;
        error
    }

    /// Ends the last stretch.
    async fn end(&mut self) -> Result<(), ModelError> {
        let drained = self.drain().await;
        self.count();
        let fresh = &self.sequence.tokens()[self.stretch.from..];
        self.stretch.known = self.session.know_all_but_one(fresh, self.stretch.known);
        drained?;
        self.session.settle_states(self.host).await?;
        match &mut self.saver {
            Some(saver) if self.sequence.finish().is_some() => saver.save(self.session, self.sequence, self.host).await,
            _ => Ok(()),
        }
    }

    /// Finishes the read of steps past the end, or before a failure, whose tokens are not needed.
    async fn drain(&mut self) -> Result<(), ModelError> {
        self.stretch.joined = None;
        let Some(Fetch { read, count, told, .. }) = self.stretch.under_way.take() else { return Ok(()) };
        let likeliest = self.likeliest();
        let bytes = bytemuck::cast_slice_mut(&mut self.buffer[..count]);
        let read = finish_read(&*self.backend, read, bytes, self.host).await;
        if let Some(told) = told {
            told.finish((likeliest, 0), 0, &*self.backend, self.host).await?;
        }
        Ok(read?)
    }

    /// Adds a stretch to the sums of the sequence.
    fn count(&mut self) {
        let (stretch, totals, now) = (&mut self.stretch, &mut self.sequence.totals, self.host.now_ms());
        if stretch.prefill.is_some() {
            totals.prefill_ms.get_or_insert(now - self.start_ms);
            return;
        }
        let stats = self.backend.stats();
        let (from, before) = stretch.steady.unwrap_or((stretch.made, stats));
        totals.steps += stretch.made - from;
        totals.steady += stats.since(&before);
        totals.decode_ms += now - stretch.first_ms;
        if let Some(Drafts { drafted, accepted, .. }) = stretch.drafts {
            totals.drafted += drafted;
            totals.accepted += accepted;
        }
    }

    /// Takes a step of the prompt; after the last one, waits for the first token.
    async fn advance_prompt(&mut self, mut prefill: Prefill, tell: &mut OnPiece<'_>) -> Result<(), ModelError> {
        if let Some(head) = prefill.head_of_rows() {
            self.join(head);
        }
        let rows = self.session.prefill_step(&mut prefill, &self.sequence.sampling, self.host).await?;
        if prefill.is_left() {
            tell(Piece::PAUSE);
            self.sequence.goes_on();
            self.stretch.prefill = Some(prefill);
            return Ok(());
        }
        if self.stretch.budget > 0 {
            // The first token is read separately, since a person is waiting for it.
            self.stretch.made = 1;
            let fetch = self.fetch((rows, self.sequence.head), self.stretch.begin, 1)?;
            self.accept(fetch, tell).await?;
        }
        let first_ms = self.host.now_ms();
        self.stretch.first_ms = first_ms;
        let totals = &mut self.sequence.totals;
        totals.stretches += 1;
        match totals.prefill_ms {
            None => totals.prefill_ms = Some(first_ms - self.start_ms),
            Some(_) if self.sequence.room.so_far(0.0).is_some() => totals.shift_ms += first_ms - self.stretch.begin_ms,
            Some(_) => {}
        }
        if self.sequence.finish().is_none() && self.stretch.budget > 0 {
            self.begin_decoding(prefill.tokens());
        }
        self.interval.skip_to(first_ms);
        if self.stretch.made >= self.stretch.budget { self.shift(tell).await } else { Ok(()) }
    }

    /// Prepares to decode after a prompt of so many tokens.
    fn begin_decoding(&mut self, prompt: usize) {
        let draft_max = if self.may_draft { self.sequence.options.draft_max } else { Some(0) };
        let last = self.sequence.tokens().last();
        self.stretch.drafts = last.and_then(|last| self.session.drafts(*last, draft_max));
        self.session.drafter.iter_mut().for_each(|drafter| drafter.begin(prompt));
        self.join(self.sequence.head);
    }

    /// Takes part in the steps of a batch from now on, unless it does already.
    fn join(&mut self, head: Head) {
        if self.stretch.joined.is_none() {
            self.stretch.joined = self.session.join(head);
        }
    }

    /// Submits the next steps, and takes the tokens of those before.
    async fn decode(&mut self, tell: &mut OnPiece<'_>) -> Result<(), ModelError> {
        if self.save(tell).await? {
            return Ok(());
        }
        // A draft depends on all tokens so far, and a constraint on the last one. So pending steps are awaited first if
        // there may be a draft or if there is a constraint.
        let beside = self.session.rows_beside();
        let drafter = self.session.drafter.as_deref().filter(|_| beside.is_none());
        let is_due = |drafts: &Drafts| beside != Some(1) && drafts.are_due();
        let may_draft = |drafts: &Drafts| is_due(drafts) || drafter.is_some_and(|drafter| drafter.is_due(drafts));
        let follows = self.stretch.drafts.as_ref().is_some_and(may_draft) || self.mask.is_some();
        let awaited = follows && self.stretch.under_way.is_some();
        if !awaited && self.stretch.made < self.stretch.budget && !self.mask().await? {
            return Ok(());
        }
        let next = if awaited { None } else { self.submit().await? };
        match std::mem::replace(&mut self.stretch.under_way, next) {
            Some(fetch) => {
                let (count, verified) = (fetch.count, fetch.draft.is_some());
                self.accept(fetch, tell).await?;
                if verified {
                    self.interval.skip_to(self.host.now_ms());
                } else {
                    let ms = self.interval.measure(count, self.host.now_ms());
                    self.session.measured(ms);
                }
                let made = self.stretch.made;
                self.stretch.steady.get_or_insert_with(|| (made, self.backend.stats()));
                Ok(())
            }
            None if self.stretch.under_way.is_none() => self.shift(tell).await,
            None => Ok(()),
        }
    }

    /// Saves the text if it is time to. Returns whether it did.
    async fn save(&mut self, tell: &mut OnPiece<'_>) -> Result<bool, ModelError> {
        let (generated, now) = (self.sequence.tokens().len(), self.host.now_ms());
        if !self.saver.as_ref().is_some_and(|saver| saver.is_due(generated, now)) {
            return Ok(false);
        }
        // States match the recorded tokens only when no step is pending.
        if let Some(fetch) = self.stretch.under_way.take() {
            self.accept(fetch, tell).await?;
        }
        if let Some(saver) = self.saver.as_mut().filter(|_| self.sequence.finish().is_none()) {
            let fresh = &self.sequence.tokens()[self.stretch.from..];
            self.stretch.known = self.session.know_all_but_one(fresh, self.stretch.known);
            saver.save(self.session, self.sequence, self.host).await?;
        }
        self.interval.skip_to(self.host.now_ms());
        Ok(true)
    }

    /// Makes room in a full context, or ends the text.
    async fn shift(&mut self, tell: &mut OnPiece<'_>) -> Result<(), ModelError> {
        if self.sequence.finish().is_some() {
            return Ok(());
        }
        self.stretch.joined = None;
        if self.session.room() < self.session.n_ctx() {
            self.stretch.is_out_of_room = true;
            return Ok(());
        }
        let fresh = &self.sequence.tokens()[self.stretch.from..];
        let known = self.session.know_all_but_one(fresh, self.stretch.known);
        self.stretch.known = known;
        let context = [self.session.tokens(), &fresh[known..]].concat();
        let Some(left) = self.sequence.room.make(&context) else {
            self.sequence.totals.is_full = true;
            self.sequence.end(Finish::Length);
            return Ok(());
        };
        self.count();
        self.sequence.tell_overflow(tell);
        self.session.rewind(0);
        self.saver = None;
        self.stretch(&left, 0).await
    }

    /// Submits a step that verifies a draft or, without one, as many steps as the interval, and begins to read their
    /// tokens. Returns nothing if the budget is used up.
    async fn submit(&mut self) -> Result<Option<Fetch>, ModelError> {
        let Stretch { begin, budget, made, .. } = self.stretch;
        let (first, left, sampling) = (begin + made, budget - made, self.sequence.sampling);
        let draft = self.draft(left).await?;
        let rows = draft.as_ref().map_or(1, |draft| draft.tokens.len() + 1);
        let is_beside = self.session.rows_beside().is_some();
        let (head, steps) = match &draft {
            None => (self.sequence.head, self.interval.steps.min(left)),
            Some(_) if is_beside => (self.sequence.head, 1),
            Some(_) => (self.sequence.head.of_all_rows(), 1),
        };
        if let Some(draft) = &draft {
            self.session.write_history_at(first, &draft.tokens)?;
        }
        for position in first - 1..first - 1 + steps {
            let params = StepParams { position: position as u32, rows: rows as u32, ..sampling };
            self.session.submit(rows, head, &params, self.host).await?;
        }
        if draft.is_none() {
            self.stretch.made += steps;
            return (steps > 0).then(|| self.fetch((rows, head), first, steps)).transpose();
        }
        if is_beside {
            // The tokens after all rows are in the history already.
            return Ok(Some(Fetch { draft, ..self.fetch((rows, head), first, rows)? }));
        }
        let chosen = self.session.output((rows, head)).ok_or_else(|| no_storage("chosen tokens"))?;
        let mark = self.session.pace.as_ref().map(Pace::mark);
        Ok(Some(Fetch { read: self.backend.read(chosen, 0, rows)?, first, count: rows, draft, told: None, mark }))
    }

    /// Begins to read tokens from the history.
    fn fetch(&self, program: (usize, Head), first: usize, count: usize) -> Result<Fetch, ModelError> {
        let mark = self.session.pace.as_ref().map(Pace::mark);
        let read = self.backend.read(self.session.history()?, first, count)?;
        let told = self.session.told(program).map(|(told, row)| told.begin(row, &*self.backend)).transpose()?;
        Ok(Fetch { read, first, count, draft: None, told, mark })
    }

    /// Makes the next draft that fits into `room` rows, if there is one. Lookup comes first, since it is free.
    async fn draft(&mut self, room: usize) -> Result<Option<Draft>, ModelError> {
        let Some(drafts) = &self.stretch.drafts else { return Ok(None) };
        let beside = self.session.rows_beside();
        if let Some(tokens) = drafts.next(room.min(beside.unwrap_or(room)), beside.is_some()) {
            return Ok(Some(Draft { tokens, is_by_model: false }));
        }
        // Steps of a draft model would delay the others.
        let drafter = self.session.drafter.as_mut().filter(|drafter| beside.is_none() && drafter.is_due(drafts));
        let Some(drafter) = drafter else {
            return Ok(None);
        };
        let choice = (self.sequence.head, &self.sequence.sampling);
        let drafted = drafter.next(drafts, room, choice, self.host).await?;
        Ok(drafted.map(|tokens| Draft { tokens, is_by_model: true }))
    }

    /// Returns how many of the likeliest tokens each step reports.
    fn likeliest(&self) -> usize {
        MAX_TOP.min(self.session.model().recipe().sizes().n_vocab)
    }

    /// Waits for tokens, and takes them until the text ends.
    async fn accept(&mut self, fetch: Fetch, tell: &mut OnPiece<'_>) -> Result<(), ModelError> {
        let (backend, host, likeliest) = (self.backend.clone(), self.host, self.likeliest());
        let bytes = bytemuck::cast_slice_mut(&mut self.buffer[..fetch.count]);
        let read = finish_read(&*backend, fetch.read, bytes, host).await;
        if let Some(told) = fetch.told {
            let sizes = (likeliest, self.sequence.options.log_probs.unwrap_or(0));
            self.sequence.set_log_prob(told.finish(sizes, self.buffer[0], &*backend, host).await?);
        }
        read?;
        if let Some((pace, mark)) = self.session.pace.as_mut().filter(|pace| !pace.is_synchronous()).zip(fetch.mark) {
            pace.done(mark, host.now_ms());
        }
        let count = match &fetch.draft {
            Some(draft) => self.judge(draft, fetch.first)?,
            None => {
                self.session.drafter.iter_mut().for_each(|drafter| drafter.went_without(fetch.count));
                fetch.count
            }
        };
        let new = &self.buffer[..count];
        self.stretch.drafts.iter_mut().for_each(|drafts| drafts.push(new));
        let n_vocab = self.session.model().recipe().sizes().n_vocab;
        for (at, token) in new.iter().enumerate() {
            // Logits that are not finite have no best token: its id is -1.
            if *token as usize >= n_vocab {
                self.sequence.flush(tell);
                return Err(self.not_a_number(fetch.first + at - 1).await);
            }
            if !self.sequence.accept(*token, self.tokenizer, tell) {
                break;
            }
        }
        // On synchronous devices, this is the host's only chance to show tokens and to cancel.
        run::turn(self.session.pace.as_mut(), host).await;
        Ok(())
    }

    /// Compares a draft with the model's own tokens after each of its rows; returns how many tokens are new. Those are the
    /// draft's correct tokens and the model's own one after them, which replaces the draft's in the history.
    fn judge(&mut self, Draft { tokens: draft, is_by_model }: &Draft, first: usize) -> Result<usize, ModelError> {
        let right = draft.iter().zip(&self.buffer).take_while(|(draft, chosen)| draft == chosen).count();
        let count = right + 1;
        self.stretch.made += count;
        match (&mut self.session.drafter, &mut self.stretch.drafts) {
            (Some(drafter), Some(drafts)) if *is_by_model => {
                drafts.count(draft.len(), right);
                drafter.judged(draft.len(), right);
            }
            (_, drafts) => drafts.iter_mut().for_each(|drafts| drafts.judged(draft.len(), right)),
        }
        self.session.write_history_at(first + right, &self.buffer[right..count])?;
        Ok(count)
    }

    /// Returns the error of logits that are not finite, after the token at a position.
    async fn not_a_number(&mut self, position: usize) -> ModelError {
        if let Err(error) = self.drain().await {
            return error;
        }
        let fresh = &self.sequence.tokens()[self.stretch.from..];
        self.session.know(&fresh[self.stretch.known..]);
        self.session.not_a_number(position, self.host).await
    }
}
