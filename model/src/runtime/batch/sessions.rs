//! Several sequences that take turns on the device, which has room for one or more at a time. The states of the others
//! are kept in host memory, within a budget. A sequence reuses the beginning that any other one has computed, such as a
//! common system prompt.

use std::borrow::Cow;

use backend_api::run::Host;
use backend_api::sort_by_key;

use super::Batch;
use crate::error::ModelError;
use crate::runtime::sequence::{Sampling, SavedRequest, Sequence, Snapshot};
use crate::runtime::session::{Session, common_prefix};

/// Most bytes that a sequence takes besides its tokens and states.
const OVERHEAD: usize = 4096;
/// Least number of additional tokens for which the states of another sequence on the device are copied.
const COPIED: usize = 32;
/// Most bytes of a name.
const MAX_NAME: usize = 256;

/// Description of a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo<'a> {
    /// The name.
    pub name: &'a str,
    /// Number of tokens, including those without states.
    pub tokens: usize,
    /// Host memory that counts against the budget.
    ///
    /// *Units*: bytes.
    pub bytes: usize,
    /// Whether it is on the device.
    pub is_on_device: bool,
}

/// Tokens and request of a sequence on the device.
#[derive(Debug, Default)]
struct Text {
    name: String,
    tokens: Vec<u32>,
    sampling: Option<Sampling>,
    request: Option<SavedRequest>,
}

/// A slot on the device, with its sequence.
struct Seat {
    session: Session,
    text: Text,
    /// Turn in which it was last used.
    used: u64,
}

impl Seat {
    fn new(session: Session) -> Seat {
        Seat { session, text: Text::default(), used: 0 }
    }

    /// Reads its sequence from a position on.
    async fn read(&mut self, from: usize, host: &dyn Host) -> Result<Snapshot, ModelError> {
        let Text { tokens, sampling, request, .. } = &self.text;
        let mut snapshot = self.session.export(tokens, from, host).await?;
        sampling.iter().for_each(|sampling| snapshot.set_sampling(*sampling));
        request.iter().for_each(|request| snapshot.set_request(request.clone()));
        Ok(snapshot)
    }
}

/// A sequence in host memory. It stays there while the sequence is on the device, so that only new rows are read later.
#[derive(Debug)]
struct Aside {
    name: String,
    snapshot: Snapshot,
    /// Turn in which it was last used.
    used: u64,
}

impl Aside {
    fn bytes(&self) -> usize {
        self.snapshot.bytes() + OVERHEAD
    }

    /// Returns its memory if `tokens` replaced its tokens.
    fn bytes_with(&self, tokens: &[u32]) -> usize {
        self.bytes() + 4 * tokens.len() - 4 * self.snapshot.tokens().len()
    }

    /// Returns the tokens that have states.
    fn computed(&self) -> &[u32] {
        let snapshot = &self.snapshot;
        &snapshot.tokens()[..snapshot.header().position]
    }
}

/// Named sequences that share one session on the device, or those of a [`Batch`]. For each request, [`Self::turn_to`]
/// brings a sequence to the device, [`Self::session_mut`] generates, and [`Self::note`] records the result.
pub struct Sessions {
    /// Slots; there is at least one.
    seats: Vec<Seat>,
    /// Index of the current slot.
    at: usize,
    budget: usize,
    turns: u64,
    aside: Vec<Aside>,
}

impl Sessions {
    /// Default budget of host memory.
    ///
    /// *Units*: bytes.
    pub const BUDGET: usize = 256 << 20;

    /// Makes an empty set. `budget` limits the host memory of sequences that are not on the device, tokens and states
    /// together; the least recently used ones are dropped first. With 0, none is kept.
    ///
    /// *Units*: bytes.
    pub fn new(session: Session, budget: usize) -> Sessions {
        Sessions { seats: vec![Seat::new(session)], at: 0, budget, turns: 0, aside: Vec::new() }
    }

    /// Returns the number of slots on the device.
    pub fn seats(&self) -> usize {
        self.seats.len()
    }

    /// Returns the most tokens of a text in any of the slots.
    pub fn room(&self) -> usize {
        self.seats.iter().map(|seat| seat.session.room()).min().unwrap_or(0)
    }

    /// Replaces all slots by one with an empty session, or else by the current one, if no session could be made; the sequences
    /// are kept in host memory, as far as the budget allows. If the device was lost, they are recomputed at their next
    /// turns.
    pub async fn reduce_to(&mut self, session: Option<Session>, host: &dyn Host) {
        let current = self.at;
        for at in 0..self.seats.len() {
            self.at = at;
            if self.set_aside(host).await.is_err() {
                break;
            }
        }
        let seat = session.map_or_else(|| self.seats.swap_remove(current), Seat::new);
        (self.seats, self.at) = (vec![seat], 0);
    }

    /// Replaces the single slot, which is empty, by those of a batch. Sequences in them can advance together.
    pub fn extend_to(&mut self, batch: Batch) {
        (self.seats, self.at) = (batch.into_sessions().into_iter().map(Seat::new).collect(), 0);
    }

    /// Compiles the next program that sequences need once they advance together; returns whether there was one. Without it,
    /// each is compiled when so many sequences first do, while all of them wait.
    ///
    /// *Errors*: shader or driver errors, memory, the device was lost.
    pub fn compile_ahead(&self) -> Result<bool, ModelError> {
        self.session().compile_ahead()
    }

    /// Returns the current slot.
    pub fn seat(&self) -> usize {
        self.at
    }

    /// Makes a slot the current one.
    pub fn select(&mut self, seat: usize) {
        self.at = seat.min(self.seats.len() - 1);
    }

    /// Returns the session of the current slot.
    pub fn session(&self) -> &Session {
        &self.seats[self.at].session
    }

    /// Returns the session of the current slot, to generate with.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.seats[self.at].session
    }

    /// Iterates over the sessions of all slots, in order.
    pub fn sessions_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.seats.iter_mut().map(|seat| &mut seat.session)
    }

    /// Returns the name of the current sequence.
    pub fn name(&self) -> &str {
        &self.seats[self.at].text.name
    }

    /// Returns the tokens of a sequence; nothing if it does not exist.
    pub fn tokens(&self, name: &str) -> Option<&[u32]> {
        if let Some(seat) = self.seat_of(name) {
            return Some(&self.seats[seat].text.tokens);
        }
        self.find(name).map(|at| self.aside[at].snapshot.tokens())
    }

    /// Lists all sequences, most recently used first. Those on the device come first.
    pub fn list(&self) -> Vec<SessionInfo<'_>> {
        let bytes = |name| self.find(name).map_or(0, |at| self.aside[at].bytes());
        let mut seats: Vec<&Seat> = self.seats.iter().collect();
        sort_by_key(&mut seats, |seat| u64::MAX - seat.used);
        let mut all: Vec<SessionInfo<'_>> = seats
            .into_iter()
            .map(|Seat { text: Text { name, tokens, .. }, .. }| SessionInfo {
                name,
                tokens: tokens.len(),
                bytes: bytes(name),
                is_on_device: true,
            })
            .collect();
        let mut others: Vec<&Aside> = self.aside.iter().filter(|aside| self.seat_of(&aside.name).is_none()).collect();
        sort_by_key(&mut others, |aside| u64::MAX - aside.used);
        all.extend(others.into_iter().map(|aside| SessionInfo {
            name: &aside.name,
            tokens: aside.snapshot.tokens().len(),
            bytes: aside.bytes(),
            is_on_device: false,
        }));
        all.retain(|info| info.tokens > 0);
        all
    }

    /// Makes a sequence the current one, and brings it to the device. If needed, the least recently used sequence there
    /// is moved to host memory, of which only rows without a copy are read. If another sequence has a longer common
    /// beginning with the prompt, its rows are copied.
    ///
    /// *Errors*: a name of more than 256 bytes; the device was lost.
    pub async fn turn_to(&mut self, name: &str, prompt: &[u32], host: &dyn Host) -> Result<(), ModelError> {
        self.turn_beside(name, prompt, &[], host).await
    }

    /// Makes a sequence the current one, like [`Self::turn_to`], while the slots in `stay` keep their sequences. Not
    /// all slots may be in `stay`.
    ///
    /// *Errors*: as [`Self::turn_to`].
    pub async fn turn_beside(
        &mut self,
        name: &str,
        prompt: &[u32],
        stay: &[usize],
        host: &dyn Host,
    ) -> Result<(), ModelError> {
        check(name)?;
        self.at = self.seat_for(name, stay);
        if self.name() != name {
            self.set_aside(host).await?;
        }
        let session = self.session();
        let own = session.reusable(prompt);
        let of_aside = |aside: &Aside| session.reusable_of(&aside.snapshot, prompt);
        let aside = (0..self.aside.len()).max_by_key(|at| (of_aside(&self.aside[*at]), self.aside[*at].used));
        let aside = aside.map(|at| (of_aside(&self.aside[at]), at));
        // The states of another sequence on the device are copied only if that saves more than a few steps.
        let of_seat = |at: usize| common_prefix(self.seats[at].session.tokens(), prompt);
        let others = (0..self.seats.len()).filter(|at| *at != self.at);
        let seat = others.map(|at| (of_seat(at), at)).max().filter(|(count, _)| *count >= own + COPIED);
        match (seat, aside) {
            (Some((count, seat)), aside) if aside.is_none_or(|(other, _)| count > other) => {
                let snapshot = self.seats[seat].read(0, host).await?;
                let count = self.session().reusable_of(&snapshot, prompt);
                if count > own {
                    self.seats[self.at].session.bring(&snapshot, count, host).await?;
                }
            }
            (_, Some((count, at))) if count > own => {
                self.seats[self.at].session.bring(&self.aside[at].snapshot, count, host).await?;
            }
            _ => {}
        }
        self.turns += 1;
        let seat = &mut self.seats[self.at];
        seat.used = self.turns;
        seat.text = Text { name: name.into(), tokens: prompt.to_vec(), ..Text::default() };
        if let Some(at) = self.find(name) {
            self.aside[at].used = self.turns;
        }
        Ok(())
    }

    /// Records the current sequence after it ran: the tokens of its context, how they are chosen and, if none were
    /// dropped, its request.
    pub fn note(&mut self, sequence: &Sequence) {
        let text = &mut self.seats[self.at].text;
        text.tokens = sequence.context().into_owned();
        text.sampling = Some(sequence.sampling());
        text.request = sequence.request();
    }

    /// Returns a snapshot of a sequence; nothing if it does not exist.
    ///
    /// *Errors*: the device was lost.
    pub async fn export(&mut self, name: &str, host: &dyn Host) -> Result<Option<Cow<'_, Snapshot>>, ModelError> {
        let Some(seat) = self.seat_of(name) else {
            return Ok(self.find(name).map(|at| Cow::Borrowed(&self.aside[at].snapshot)));
        };
        Ok(Some(Cow::Owned(self.seats[seat].read(0, host).await?)))
    }

    /// Loads a snapshot as a sequence with this name, and makes it the current one.
    ///
    /// *Errors*: as [`Session::import`], or a name of more than 256 bytes; then nothing has changed.
    pub async fn import(&mut self, name: &str, snapshot: &Snapshot, host: &dyn Host) -> Result<(), ModelError> {
        check(name)?;
        self.session().check(snapshot)?;
        self.at = self.seat_for(name, &[]);
        if self.name() != name {
            self.set_aside(host).await?;
        }
        self.session_mut().import(snapshot, host).await?;
        self.turns += 1;
        let header = snapshot.header();
        let seat = &mut self.seats[self.at];
        seat.used = self.turns;
        seat.text = Text {
            name: name.into(),
            tokens: snapshot.tokens().to_vec(),
            sampling: header.sampling,
            request: header.request.clone(),
        };
        Ok(())
    }

    /// Returns the request and the sampling parameters of a sequence's last generation.
    pub fn request(&self, name: &str) -> Option<(&SavedRequest, Sampling)> {
        let (request, sampling) = if let Some(seat) = self.seat_of(name) {
            let text = &self.seats[seat].text;
            (text.request.as_ref(), text.sampling)
        } else {
            let header = self.aside[self.find(name)?].snapshot.header();
            (header.request.as_ref(), header.sampling)
        };
        request.zip(sampling)
    }

    /// Removes a sequence; returns whether it existed.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.aside.len();
        self.aside.retain(|aside| aside.name != name);
        let seat = self.seat_of(name).map(|at| &mut self.seats[at]);
        let is_on_device = seat.as_ref().is_some_and(|seat| !seat.text.tokens.is_empty());
        if let Some(seat) = seat {
            seat.session.rewind(0);
            seat.text = Text::default();
        }
        is_on_device || self.aside.len() < before
    }

    /// Returns the slot of a sequence that is on the device.
    fn seat_of(&self, name: &str) -> Option<usize> {
        // Unused slots have unnamed sequences as well, so the current slot comes first.
        let has = |at: &usize| self.seats[*at].text.name == name;
        Some(self.at).filter(has).or_else(|| (0..self.seats.len()).find(has))
    }

    /// Returns the slot of a sequence. If it is not on the device: an empty slot, or that of the least recently used
    /// sequence, except for those in `stay`.
    fn seat_for(&self, name: &str, stay: &[usize]) -> usize {
        let free = (0..self.seats.len()).filter(|at| !stay.contains(at));
        let emptiest = free.min_by_key(|at| (!self.seats[*at].session.tokens().is_empty(), self.seats[*at].used));
        self.seat_of(name).or(emptiest).unwrap_or(self.at)
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.aside.iter().position(|aside| aside.name == name)
    }

    /// Copies the new rows of the current sequence to host memory.
    async fn set_aside(&mut self, host: &dyn Host) -> Result<(), ModelError> {
        let position = self.session().saves(&self.seats[self.at].text.tokens);
        let own = self.find(self.name());
        let known = own.map_or(0, |at| common_prefix(self.aside[at].computed(), &self.seats[self.at].text.tokens));
        // With recurrent states, an earlier copy may be of a later position than the session can be rewound to now.
        if let Some(at) = own.filter(|at| known > position && known == self.aside[*at].computed().len()) {
            let bytes = self.aside[at].bytes_with(&self.seats[self.at].text.tokens);
            if !self.make_room(bytes) {
                self.forget_copy();
            } else if let Some(at) = self.find(self.name()) {
                let Text { tokens, sampling, request, .. } = &self.seats[self.at].text;
                self.aside[at].snapshot.set_text(tokens, *sampling, request.clone());
            }
            return Ok(());
        }
        if position == 0 || !self.make_room(self.session().snapshot_bytes(&self.seats[self.at].text.tokens)? + OVERHEAD)
        {
            self.forget_copy();
            return Ok(());
        }
        let from = known.min(position);
        let part = match self.seats[self.at].read(from, host).await {
            Ok(part) => part,
            Err(ModelError::Backend(lost @ backend_api::Error::Lost(_))) => return Err(lost.into()),
            // A sequence that cannot be read is recomputed at its next turn.
            Err(_) => {
                self.forget_copy();
                return Ok(());
            }
        };
        match own.and_then(|_| self.find(self.name())) {
            Some(at) if from > 0 => self.aside[at].snapshot.extend(part)?,
            found => {
                found.into_iter().for_each(|at| drop(self.aside.swap_remove(at)));
                // It was on the device until now.
                self.aside.push(Aside { name: self.name().to_owned(), snapshot: part, used: self.turns });
            }
        }
        Ok(())
    }

    /// Drops the copy of the current sequence in host memory.
    fn forget_copy(&mut self) {
        let name = self.name().to_owned();
        self.aside.retain(|aside| aside.name != *name);
    }

    /// Drops the least recently used copies until the current sequence can have so many bytes; returns whether it can.
    fn make_room(&mut self, bytes: usize) -> bool {
        let name = self.name().to_owned();
        if bytes > self.budget {
            return false;
        }
        let others = |all: &[Aside]| all.iter().filter(|a| a.name != *name).map(Aside::bytes).sum::<usize>();
        while others(&self.aside) > self.budget - bytes {
            let oldest = self.aside.iter().enumerate().filter(|(_, aside)| aside.name != *name);
            let Some((at, _)) = oldest.min_by_key(|(_, aside)| aside.used) else { break };
            self.aside.swap_remove(at);
        }
        true
    }
}

fn check(name: &str) -> Result<(), ModelError> {
    if name.len() > MAX_NAME {
        let why =
            format!("the session's name has {} bytes, and may have {MAX_NAME}; give it a shorter one", name.len());
        return Err(ModelError::Options(why));
    }
    Ok(())
}
