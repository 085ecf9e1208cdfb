//! Decode loop: several steps are submitted before their tokens are read.

use backend_api::pace::Mark;
use backend_api::run::{self, Host, finish_read};
use backend_api::{Backend, Pace, ReadId, Stats, StepParams};

use crate::arch::Head;
use crate::constraint::Mask;
use crate::drafts::Drafts;
use crate::error::ModelError;
use crate::generate::{Finish, Sink};
use crate::interval::{Interval, MAX_FETCH_INTERVAL};
use crate::log_probs::{MAX_TOP, Told};
use crate::saving::Saver;
use crate::session::{Session, no_storage};

/// Parameters and results of decoding.
pub(crate) struct Decoding<'a> {
    pub head: Head,
    pub sampling: StepParams,
    pub host: &'a dyn Host,
    pub interval: Interval,
    /// Most tokens of a draft, if the caller limits them.
    pub draft_max: Option<usize>,
    /// Mask of the allowed next tokens, if the text is constrained.
    pub mask: Option<Mask>,
    pub total: Total,
}

/// Totals of decoding, over all stretches of a text.
#[derive(Default)]
pub(crate) struct Total {
    /// Time from the first token of each stretch to its last.
    ///
    /// *Units*: milliseconds.
    pub ms: f64,
    /// Decode steps that `steady` covers: all except those of each stretch's first interval.
    pub steps: usize,
    pub steady: Stats,
    /// Drafted tokens, and those that were accepted.
    pub drafted: usize,
    pub accepted: usize,
}

/// A part of a text that was generated without a context shift.
pub(crate) struct Stretch {
    /// Reason why the text ended; absent if the context is full.
    pub finish: Option<Finish>,
    /// Position after which no token could be chosen, because the logits were not finite.
    pub broken: Option<usize>,
    /// Number of new tokens that the session has recorded already, since they were saved.
    pub known: usize,
    /// Time of the first token.
    ///
    /// *Units*: milliseconds, as the host's.
    pub first_ms: f64,
}

impl Session {
    /// Adds a prompt to the text, and decodes until the text ends, the context is full, or `most` tokens are made. The
    /// last `again` tokens of the prompt were decoded before, and are recomputed one by one in the same way.
    ///
    /// Afterwards the session has not recorded the new tokens, except for those that were saved.
    ///
    /// *Errors*: as [`Self::generate`].
    pub(crate) async fn stretch(
        &mut self,
        prompt: &[u32],
        again: usize,
        most: usize,
        decoding: &mut Decoding<'_>,
        sink: &mut Sink<'_>,
        mut saver: Option<&mut Saver<'_>>,
    ) -> Result<Stretch, ModelError> {
        let Decoding { head, sampling, host, .. } = *decoding;
        let backend = self.model().backend().clone();
        let (begin, from) = (self.position() + prompt.len(), sink.tokens.len());
        // Each token needs a row of the history.
        let mut budget = most.min(self.n_ctx().saturating_sub(begin));
        let (mut finish, mut steady) = (None, None);
        if let Some(mask) = decoding.mask.as_mut().filter(|_| budget > 0)
            && !mask.write(self, sink).await?
        {
            (budget, finish) = (0, Some(Finish::Stop));
        }
        let wanted = if budget == 0 { Head::NONE } else { head };
        let (front, again) = prompt.split_at(prompt.len() - again);
        let chosen = (wanted, &sampling);
        let last = if again.is_empty() {
            self.prefill_while(prompt, chosen, host, &mut || sink.goes_on()).await?
        } else {
            self.prefill_again(front, again, chosen, host, &mut || sink.goes_on()).await?
        };
        let Some(last) = last else {
            self.settle_states(host).await?;
            return Ok(Stretch { finish: Some(Finish::Cancelled), broken: None, known: 0, first_ms: host.now_ms() });
        };

        let n_vocab = self.model().recipe().sizes().n_vocab;
        let buffer = [0; MAX_FETCH_INTERVAL];
        let mut run = Run {
            begin,
            budget,
            made: 0,
            broken: None,
            drafts: None,
            n_vocab,
            head,
            sampling,
            backend: &*backend,
            host,
            buffer,
        };
        if budget > 0 {
            // The first token is read separately, since a person is waiting for it.
            run.made = 1;
            let first = Fetch::begin(&*backend, self, (last, head), begin, 1)?;
            finish = run.accept(self, first, sink).await?;
        }
        if let (None, Some(token)) = (finish, sink.tokens.last()) {
            run.drafts = self.drafts(*token, decoding.draft_max);
            self.drafter.iter_mut().for_each(|drafter| drafter.begin(prompt.len()));
        }
        let first_ms = host.now_ms();
        let joined = finish.is_none().then(|| self.join(head)).flatten();
        let interval = &mut decoding.interval;
        interval.skip_to(first_ms);
        let mut under_way: Option<Fetch> = None;
        let mut known = 0;
        let steps = async {
            while finish.is_none() {
                if let Some(saver) = saver.as_mut().filter(|saver| saver.is_due(sink.tokens.len(), host.now_ms())) {
                    // States match the recorded tokens only when no step is pending.
                    if let Some(fetch) = under_way.take() {
                        finish = run.accept(self, fetch, sink).await?;
                    }
                    if finish.is_none() {
                        known = self.know_all_but_one(&sink.tokens[from..], known);
                        saver.save(self, &sink.tokens, None, host).await?;
                    }
                    interval.skip_to(host.now_ms());
                    continue;
                }
                // A draft depends on all tokens so far, and a constraint on the last one. So pending steps are awaited
                // first if there may be a draft or if there is a constraint.
                let drafter = self.drafter.as_deref();
                let may_draft =
                    |drafts: &Drafts| drafts.are_due() || drafter.is_some_and(|drafter| drafter.is_due(drafts));
                let follows = run.drafts.as_ref().is_some_and(may_draft) || decoding.mask.is_some();
                let awaited = follows && under_way.is_some();
                if let Some(mask) = decoding.mask.as_mut().filter(|_| !awaited && run.made < budget)
                    && !mask.write(self, sink).await?
                {
                    finish = Some(Finish::Stop);
                    continue;
                }
                let next = if awaited { None } else { run.submit(self, interval.steps).await? };
                match std::mem::replace(&mut under_way, next) {
                    Some(fetch) => {
                        let (count, verified) = (fetch.count, fetch.draft.is_some());
                        finish = run.accept(self, fetch, sink).await?;
                        if verified {
                            interval.skip_to(host.now_ms());
                        } else {
                            interval.measure(count, host.now_ms());
                        }
                        steady.get_or_insert_with(|| (run.made, backend.stats()));
                    }
                    None if under_way.is_none() => break,
                    None => {}
                }
            }
            Ok::<_, ModelError>(host.now_ms() - first_ms)
        };
        let decoded = steps.await;
        drop(joined);
        // Steps past the end, or before a failure, make tokens that are not needed. Their read must be finished all the
        // same.
        let finished = match under_way {
            Some(Fetch { read, count, told, .. }) => {
                let read = finish_read(&*backend, read, run.bytes(count), host).await;
                match told {
                    Some(told) => told.finish((run.likeliest(), 0), 0, &*backend, host).await.map(|_| ()).and(read),
                    None => read,
                }
            }
            None => Ok(()),
        };
        decoding.total.ms += decoded?;
        finished?;
        self.settle_states(host).await?;
        let (steady_from, stats_from) = steady.unwrap_or((run.made, backend.stats()));
        decoding.total.steps += run.made - steady_from;
        decoding.total.steady += backend.stats().since(&stats_from);
        if let Some(Drafts { drafted, accepted, .. }) = run.drafts {
            decoding.total.drafted += drafted;
            decoding.total.accepted += accepted;
        }
        Ok(Stretch { finish, broken: run.broken, known, first_ms })
    }
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

impl Fetch {
    fn begin(
        backend: &dyn Backend,
        session: &Session,
        program: (usize, Head),
        first: usize,
        count: usize,
    ) -> Result<Fetch, ModelError> {
        let mark = session.pace.as_ref().map(Pace::mark);
        let read = backend.read(session.history()?, first, count)?;
        let told = session.told(program).map(|told| told.begin(backend)).transpose()?;
        Ok(Fetch { read, first, count, draft: None, told, mark })
    }
}

/// Decode steps of one stretch.
struct Run<'a> {
    /// Position of the first new token.
    begin: usize,
    /// Most new tokens.
    budget: usize,
    /// New tokens of the submitted steps, without those of a pending draft.
    made: usize,
    /// Position after which no token could be chosen, because the logits were not finite.
    broken: Option<usize>,
    drafts: Option<Drafts>,
    n_vocab: usize,
    head: Head,
    sampling: StepParams,
    backend: &'a dyn Backend,
    host: &'a dyn Host,
    buffer: [u32; MAX_FETCH_INTERVAL],
}

impl Run<'_> {
    /// Submits a step that verifies a draft or, without one, up to `interval` steps, and begins to read their tokens.
    /// Returns nothing if the budget is used up.
    async fn submit(&mut self, session: &mut Session, interval: usize) -> Result<Option<Fetch>, ModelError> {
        let (first, left) = (self.begin + self.made, self.budget - self.made);
        let draft = self.draft(session, left).await?;
        let rows = draft.as_ref().map_or(1, |draft| draft.tokens.len() + 1);
        let (head, steps) = match &draft {
            None => (self.head, interval.min(left)),
            Some(_) => (self.head.of_all_rows(), 1),
        };
        if let Some(draft) = &draft {
            session.write_history_at(first, &draft.tokens)?;
        }
        for position in first - 1..first - 1 + steps {
            let params = StepParams { position: position as u32, rows: rows as u32, ..self.sampling };
            session.submit(rows, head, &params, self.host).await?;
        }
        if draft.is_none() {
            self.made += steps;
            return if steps == 0 {
                Ok(None)
            } else {
                Fetch::begin(self.backend, session, (rows, head), first, steps).map(Some)
            };
        }
        let chosen = session.output((rows, head)).ok_or_else(|| no_storage("chosen tokens"))?;
        let mark = session.pace.as_ref().map(Pace::mark);
        Ok(Some(Fetch { read: self.backend.read(chosen, 0, rows)?, first, count: rows, draft, told: None, mark }))
    }

    /// Makes the next draft that fits into `room` rows, if there is one. Lookup comes first, since it is free.
    async fn draft(&self, session: &mut Session, room: usize) -> Result<Option<Draft>, ModelError> {
        let Some(drafts) = &self.drafts else { return Ok(None) };
        if let Some(tokens) = drafts.next(room) {
            return Ok(Some(Draft { tokens, is_by_model: false }));
        }
        let Some(drafter) = &mut session.drafter else { return Ok(None) };
        let drafted = drafter.next(drafts, room, (self.head, &self.sampling), self.host).await?;
        Ok(drafted.map(|tokens| Draft { tokens, is_by_model: true }))
    }

    fn bytes(&mut self, count: usize) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.buffer[..count])
    }

    /// Returns how many of the likeliest tokens each step reports.
    fn likeliest(&self) -> usize {
        MAX_TOP.min(self.n_vocab)
    }

    /// Waits for tokens, and passes them on until the text ends.
    async fn accept(
        &mut self,
        session: &mut Session,
        fetch: Fetch,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Finish>, ModelError> {
        let (backend, host) = (self.backend, self.host);
        let read = finish_read(backend, fetch.read, self.bytes(fetch.count), host).await;
        let sizes = (self.likeliest(), sink.top());
        if let Some(told) = fetch.told {
            let told = told.finish(sizes, self.buffer[0], backend, host).await;
            sink.tell_next(told?);
        }
        read?;
        if let Some((pace, mark)) = session.pace.as_mut().filter(|pace| !pace.is_synchronous()).zip(fetch.mark) {
            pace.done(mark, host.now_ms());
        }
        let mut count = fetch.count;
        let drafter = session.drafter.as_mut();
        if let Some(Draft { tokens: draft, is_by_model }) = &fetch.draft {
            // Accepted are the draft's correct tokens and the model's own token after them, which replaces the draft's
            // in the history.
            let right = draft.iter().zip(&self.buffer).take_while(|(draft, chosen)| draft == chosen).count();
            count = right + 1;
            self.made += count;
            match (drafter, &mut self.drafts) {
                (Some(drafter), Some(drafts)) if *is_by_model => {
                    drafts.count(draft.len(), right);
                    drafter.judged(draft.len(), right);
                }
                (_, drafts) => drafts.iter_mut().for_each(|drafts| drafts.judged(draft.len(), right)),
            }
            session.write_history_at(fetch.first + right, &self.buffer[right..count])?;
        } else if let Some(drafter) = drafter {
            drafter.went_without(count);
        }
        self.drafts.iter_mut().for_each(|drafts| drafts.push(&self.buffer[..count]));
        let mut finish = None;
        for at in 0..count {
            finish = self.take(self.buffer[at], fetch.first + at, sink);
            if finish.is_some() {
                break;
            }
        }
        // On synchronous devices, this is the host's only chance to show tokens and to cancel.
        run::turn(session.pace.as_mut(), host).await;
        Ok(finish)
    }

    /// Passes on the token at a position; returns the reason if the text ends.
    fn take(&mut self, token: u32, position: usize, sink: &mut Sink<'_>) -> Option<Finish> {
        // Logits that are not finite have no best token: its id is -1.
        if token as usize >= self.n_vocab {
            self.broken = Some(position - 1);
            return Some(Finish::Stop);
        }
        sink.push(token)
    }
}
