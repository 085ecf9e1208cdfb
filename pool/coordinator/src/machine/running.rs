//! Sessions are placed, and go around their chains.

use super::{
    action::{Action, End, Stop},
    chain::{Chain, ChainId, Slot},
    coordinator::Coordinator,
    event::Request,
    session::{Lap, Seat, Session, SessionId},
    timers::Timer,
    worker::WorkerId,
};
use crate::Micros;

/// After so many missed deadlines they are not put off further.
const DOUBLINGS: u32 = 3;

impl Coordinator {
    pub(super) fn ask(&mut self, request: Request) {
        let id = request.session;
        if request.prompt.is_empty() || self.sessions.contains_key(&id) || self.queue.len() >= self.config.queue {
            self.out.push(Action::End(id, End::Refused));
            return;
        }
        self.queue.push(request.user, id);
        self.sessions.insert(id, Session::new(request));
        self.timers.set_once(Timer::Plan, self.now + self.config.replan);
    }

    /// Sessions that wait go where there is room.
    pub(super) fn place(&mut self) {
        while let Some(chain) = self.open.iter().map(|(_, chain)| *chain).find(|chain| self.is_back(*chain)) {
            let Some(session) = self.queue.pop() else { return };
            if self.sessions.contains_key(&session) {
                self.seat(session, chain);
            }
        }
    }

    /// Whether all workers of a chain can hear: those that are not back since a break do not learn that a session begins.
    fn is_back(&self, chain: ChainId) -> bool {
        !self.chains[&chain].slots.iter().any(|slot| slot.worker.is_some_and(|worker| self.is_excused(worker)))
    }

    fn seat(&mut self, id: SessionId, on: ChainId) {
        self.close(on);
        let Some(chain) = self.chains.get_mut(&on) else { return };
        chain.sessions.insert(id);
        let (epoch, slots) = (chain.epoch, chain.slots.clone());
        let seats: Vec<_> = slots.iter().map(|_| Seat { lease: self.lease(), ..Seat::default() }).collect();
        for (slot, seat) in slots.iter().zip(&seats) {
            if let Some(worker) = slot.worker {
                self.out.push(Action::Open { worker, session: id, epoch, lease: seat.lease });
            }
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.chain = Some(on);
            session.seats = seats;
        }
        self.reopen(on);
        self.draw_check(id);
        self.lap(id);
    }

    /// The session's next step begins, or the oldest under way again; those behind it are sent again as it gets on.
    pub(super) fn lap(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let reached = session.laps.front().map_or(0, |lap| lap.reached);
        session.laps.clear();
        let done = session.done;
        self.send(id, done, reached);
    }

    /// A step begins at a position.
    fn send(&mut self, id: SessionId, position: u32, reached: usize) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(chain) = session.chain.and_then(|chain| self.chains.get(&chain)) else { return };
        // A chain that lacks a stage goes on when it is whole again.
        if chain.slots.iter().any(|slot| slot.worker.is_none()) {
            return;
        }
        let rows = (session.tokens.len() as u32 - position).min(self.config.chunk);
        session.laps.push_back(Lap { position, rows, stage: 0, reached });
        let (from, to) = (position as usize, (position + rows) as usize);
        let want = if to == session.tokens.len() { self.config.lap.min(session.left() as u32) } else { 0 };
        let stop = |(slot, seat): (&Slot, &Seat)| slot.worker.map(|worker| Stop { worker, lease: seat.lease });
        self.out.push(Action::Step {
            session: id,
            epoch: chain.epoch,
            position,
            tokens: session.tokens[from..to].to_vec(),
            want,
            sampling: session.sampling,
            route: chain.slots.iter().zip(&session.seats).filter_map(stop).collect(),
        });
        self.await_stage(id);
    }

    /// Where the first stage is through with the rows of a prompt that it was sent, it takes the next, while the others
    /// have those before.
    fn follow(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else { return };
        let Some(chain) = session.chain.and_then(|chain| self.chains.get(&chain)) else { return };
        let Some(last) = session.laps.back().filter(|lap| lap.stage > 0) else { return };
        if (last.end() as usize) < session.tokens.len() && session.laps.len() < chain.slots.len() {
            let end = last.end();
            self.send(id, end, 0);
        }
    }

    /// Sets the deadline of the stage that has a session's step.
    fn await_stage(&mut self, id: SessionId) {
        let session = &self.sessions[&id];
        let chain = session.chain.and_then(|chain| self.chains.get(&chain));
        let Some((lap, chain)) = session.laps.front().zip(chain) else { return };
        // After the last stage the token's way here is awaited.
        let stage = lap.stage.min(chain.slots.len() - 1);
        let tokens = if lap.end() as usize == session.tokens.len() { self.config.lap } else { 1 };
        // A stage may have another step of the same text before it.
        let time = self.allowed(chain, stage, lap.rows, tokens) * session.laps.len() as Micros;
        self.allow(id, time);
    }

    /// Gives a session's step time from now on, twice as much after each deadline that it missed: first steps compile, and
    /// a machine may have other work.
    pub(super) fn allow(&mut self, id: SessionId, time: Micros) {
        let missed = self.sessions.get(&id).map_or(0, |session| session.missed);
        self.expect(id, self.now.saturating_add(time << missed.min(DOUBLINGS)));
    }

    /// Sets a session's deadline. Whether those whose turn it is are there is looked at before.
    pub(super) fn expect(&mut self, id: SessionId, due: Micros) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.due = due;
            self.timers.set(Timer::Session(id), due.min(self.now.saturating_add(self.config.quiet)));
        }
    }

    /// Time that a stage may take: some medians of what it was measured at, for all sessions that it serves. Of a lap
    /// of several tokens the other stages' time is part.
    pub(super) fn allowed(&self, chain: &Chain, stage: usize, rows: u32, tokens: u32) -> Micros {
        let time = |slot: &Slot| {
            let offer = slot.worker.and_then(|worker| self.workers.get(&worker)).map(|worker| worker.offer);
            let blocks = self.config.model.work(&slot.range) + 2.0;
            offer.map_or(0, |offer| offer.hop + (offer.block as f64 * blocks) as u64)
        };
        let around = if tokens > 1 { chain.slots.iter().map(time).sum() } else { time(&chain.slots[stage]) };
        let rows = (f64::from(rows) / self.config.prompt_rows).max(1.0) + f64::from(tokens) - 1.0;
        let turns = chain.sessions.len().max(1) as f64;
        self.config.patience + (self.config.medians as f64 * around as f64 * rows * turns) as u64
    }

    pub(super) fn step_done(&mut self, worker: WorkerId, id: SessionId, epoch: u64, position: u32) {
        let Some((stage, stages)) = self.current(worker, id, epoch) else {
            self.counts.stale += 1;
            return;
        };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let is_new = |lap: &Lap| lap.position == position && lap.stage <= stage;
        // While states are made again, what was under way comes to nothing.
        let Some(at) = session.laps.iter().position(is_new).filter(|_| session.restore.is_none()) else {
            self.counts.stale += 1;
            return;
        };
        // A stage takes steps in order: it is through with those before as well.
        session.laps.iter_mut().take(at + 1).for_each(|lap| lap.stage = lap.stage.max(stage + 1));
        // What a stage answers from what it kept is no progress, and neither are steps behind one that does not get on.
        if let Some(lap) = session.laps.front_mut().filter(|lap| lap.stage > lap.reached) {
            lap.reached = lap.stage;
            session.missed = 0;
        }
        // The step that gives a token is over with it.
        let is_through = |lap: &&Lap| lap.stage == stages && (lap.end() as usize) < session.tokens.len();
        while let Some(lap) = session.laps.front().filter(is_through) {
            session.done = lap.end();
            session.laps.pop_front();
        }
        if session.laps.is_empty() {
            self.lap(id);
        } else {
            self.follow(id);
            self.await_stage(id);
        }
    }

    /// The stage that a worker has in a session's chain, and the number of stages, if the epoch is that of now.
    fn current(&self, worker: WorkerId, id: SessionId, epoch: u64) -> Option<(usize, usize)> {
        let session = self.sessions.get(&id)?;
        let chain = self.chains.get(&session.chain?).filter(|chain| chain.epoch == epoch)?;
        let stage = chain.slots.iter().position(|slot| slot.worker == Some(worker))?;
        Some((stage, chain.slots.len()))
    }

    pub(super) fn tokens(&mut self, worker: WorkerId, id: SessionId, epoch: u64, at: u32, ids: &[u32]) {
        let last = self.current(worker, id, epoch).is_some_and(|(stage, stages)| stage + 1 == stages);
        let awaited = |session: &&mut Session| {
            let want = self.config.lap.min(session.left() as u32) as usize;
            // It says that the last stage is through with all before, too.
            let is_whole =
                session.laps.back().is_some_and(|lap| lap.end() == at) && session.tokens.len() == at as usize;
            is_whole && session.restore.is_none() && (1..=want).contains(&ids.len())
        };
        let Some(session) = self.sessions.get_mut(&id).filter(awaited).filter(|_| last) else {
            self.counts.stale += 1;
            return;
        };
        session.laps.clear();
        for (token, at) in ids.iter().zip(at..) {
            session.tokens.push(*token);
            self.out.push(Action::Say(id, at, *token));
        }
        self.counts.tokens += ids.len() as u64;
        // States have seen every token but the last.
        session.done = session.tokens.len() as u32 - 1;
        session.missed = 0;
        let end = ids.last().is_some_and(|token| session.stop.contains(token));
        self.timers.clear(Timer::Session(id));
        if end || session.left() == 0 {
            self.end(id, if end { End::Stop } else { End::Length });
            return;
        }
        self.snapshots(id);
        self.lap(id);
    }

    /// A session is over. Its stages forget it.
    pub(super) fn end(&mut self, id: SessionId, why: End) {
        let Some(session) = self.sessions.remove(&id) else { return };
        self.timers.clear(Timer::Session(id));
        self.await_check(id);
        self.out.push(Action::End(id, why));
        let Some(on) = session.chain else { return };
        self.close(on);
        let Some(chain) = self.chains.get_mut(&on) else { return };
        chain.sessions.remove(&id);
        let empty = chain.sessions.is_empty();
        let stages = chain.slots.iter().filter_map(|slot| slot.worker);
        let holders = session.seats.iter().filter_map(|seat| seat.snapshot).map(|it| it.holder);
        let mut all: Vec<_> = stages.chain(holders).filter(|worker| self.workers.contains_key(worker)).collect();
        all.sort_unstable();
        all.dedup();
        self.out.extend(all.into_iter().map(|worker| Action::Drop(worker, id)));
        if empty && self.retiring.contains(&on) {
            self.dissolve(on);
        } else {
            self.reopen(on);
        }
    }
}
