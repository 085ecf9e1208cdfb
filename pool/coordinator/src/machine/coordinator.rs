//! The state machine: what it knows, and which part of it an event goes to.

use std::collections::{BTreeMap, BTreeSet};

use anygpu_pool_proto::Range;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    action::{Action, End},
    chain::{Chain, ChainId, ChainState, Slot},
    checking::Checks,
    config::Config,
    event::Event,
    queue::Queue,
    session::{Session, SessionId},
    timers::{Timer, Timers},
    worker::{Offer, State, Worker, WorkerId},
};
use crate::{Lease, Micros, plan::Model};

/// Counts of events so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tokens that were said.
    pub tokens: u64,
    /// Workers that were lost.
    pub lost: u64,
    /// Stages that were lost, and a ready spare took over.
    pub promoted: u64,
    /// Stages that a spare has instead of who is hidden or slower.
    pub exchanged: u64,
    /// Stages that a worker had to be prepared for.
    pub recruited: u64,
    /// Chains that were given up.
    pub given_up: u64,
    /// Chains that a better one replaced.
    pub replaced: u64,
    /// Laps that were begun again.
    pub again: u64,
    /// Rows that were computed again to restore states.
    pub replayed: u64,
    /// Messages that came too late to count.
    pub stale: u64,
    /// Checks in which two workers agreed.
    pub checked: u64,
    /// Checks in which two differed.
    pub disputed: u64,
    /// Workers that were banned.
    pub banned: u64,
}

/// The coordinator of a pool.
pub struct Coordinator {
    pub(super) config: Config,
    pub(super) now: Micros,
    pub(super) out: Vec<Action>,
    pub(super) workers: BTreeMap<WorkerId, Worker>,
    pub(super) chains: BTreeMap<ChainId, Chain>,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) queue: Queue,
    pub(super) timers: Timers,
    /// Workers with nothing to do, the fastest first.
    pub(super) free: BTreeSet<(u64, WorkerId)>,
    /// Ready spares of a range.
    pub(super) spares: BTreeMap<Range, BTreeSet<WorkerId>>,
    /// Stages and spares of a range, ready or not.
    pub(super) cover: Cover,
    /// Stages without a worker.
    pub(super) wanting: BTreeSet<(ChainId, usize)>,
    /// Chains that take sessions, by how many they have.
    pub(super) open: BTreeSet<(usize, ChainId)>,
    /// Chains that are not up.
    pub(super) unready: BTreeSet<ChainId>,
    /// Chains that take nobody new.
    pub(super) retiring: BTreeSet<ChainId>,
    /// Stages that workers keep after a restart of the coordinator.
    pub(super) remembered: BTreeMap<WorkerId, (ChainId, usize)>,
    pub(super) banned: BTreeSet<WorkerId>,
    /// Workers whose page is hidden.
    pub(super) hidden: BTreeSet<WorkerId>,
    /// Whether the coordinator's own connection is closed.
    pub(super) is_cut_off: bool,
    pub(super) checks: Checks,
    pub(super) epoch: u64,
    pub(super) next_chain: ChainId,
    pub(super) improved: ChainId,
    pub(super) counts: Counts,
    pub(super) chance: StdRng,
}

impl Coordinator {
    /// A coordinator that knows nobody. Leases follow from the seed: a real pool takes one that nobody guesses.
    pub fn new(config: Config, seed: [u8; 32]) -> Coordinator {
        let mut timers = Timers::default();
        if config.improve > 0 {
            timers.set(Timer::Improve, config.improve);
        }
        Coordinator {
            config,
            now: 0,
            out: Vec::new(),
            workers: BTreeMap::new(),
            chains: BTreeMap::new(),
            sessions: BTreeMap::new(),
            queue: Queue::default(),
            timers,
            free: BTreeSet::new(),
            spares: BTreeMap::new(),
            cover: Cover::default(),
            wanting: BTreeSet::new(),
            open: BTreeSet::new(),
            unready: BTreeSet::new(),
            retiring: BTreeSet::new(),
            remembered: BTreeMap::new(),
            banned: BTreeSet::new(),
            hidden: BTreeSet::new(),
            is_cut_off: false,
            checks: Checks::default(),
            epoch: 0,
            next_chain: 1,
            improved: 0,
            counts: Counts::default(),
            chance: StdRng::from_seed(seed),
        }
    }

    /// Takes what happened at a time, and says what is to be done, in order. Time does not go back: an earlier one
    /// counts as the last.
    pub fn handle(&mut self, now: Micros, event: Event) -> Vec<Action> {
        self.now = self.now.max(now);
        if let Some(sender) = event.sender() {
            self.hears(sender);
        }
        match event {
            Event::Connected(worker) => self.connected(worker),
            Event::Hello(worker, offer) => self.hello(worker, offer),
            Event::Heartbeat { worker, block, hop, visible } => {
                self.heartbeat(worker, block, hop);
                self.seen(worker, visible);
            }
            Event::Disconnected(worker) => self.gone(worker),
            Event::Ready(worker, epoch) => self.ready(worker, epoch),
            Event::Failed(worker, epoch) => self.failed(worker, epoch),
            Event::Restored(worker, session, epoch, position) => self.restored(worker, session, epoch, position),
            Event::Exported { from, to, session, position } => self.exported(from, to, session, position),
            Event::StepDone(worker, session, epoch, position) => self.step_done(worker, session, epoch, position),
            Event::Tokens { worker, session, epoch, position, ids } => {
                self.tokens(worker, session, epoch, position, &ids);
            }
            Event::Ask(request) => self.ask(request),
            Event::Cancel(session) => self.end(session, End::Cancelled),
            Event::Cut => self.is_cut_off = true,
            Event::Returned => self.returned(),
            Event::Checked(check, by, verdict) => self.checked(check, by, verdict),
            Event::Tick => {}
        }
        while let Some(timer) = self.timers.pop(self.now) {
            match timer {
                Timer::Session(session) => self.overdue(session),
                Timer::Silence(worker) => self.fell_silent(worker),
                Timer::Prepare(worker) => self.unprepared(worker),
                Timer::GiveUp(chain) => self.give_up(chain),
                Timer::Plan => self.plan(),
                Timer::Improve => self.improve(),
                Timer::Check(check) => self.unsettled(check),
            }
        }
        self.place();
        std::mem::take(&mut self.out)
    }

    /// When [`Event::Tick`] is due, if it is.
    pub fn due(&self) -> Option<Micros> {
        self.timers.first()
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The model's sizes.
    pub fn model(&self) -> &Model {
        &self.config.model
    }

    /// Where a worker stands.
    pub fn worker(&self, worker: WorkerId) -> State {
        self.workers.get(&worker).map_or(State::Gone, |worker| worker.state)
    }

    /// Whether a worker is kept out.
    pub fn is_banned(&self, worker: WorkerId) -> bool {
        self.banned.contains(&worker)
    }

    /// All chains, with their sessions.
    pub fn chains(&self) -> impl Iterator<Item = (ChainId, ChainState, &[Slot], usize)> {
        self.chains.iter().map(|(id, chain)| (*id, chain.state, &chain.slots[..], chain.sessions.len()))
    }

    /// Returns a worker's offer, if the worker is there.
    pub fn offer(&self, worker: WorkerId) -> Option<Offer> {
        self.workers.get(&worker).map(|worker| worker.offer)
    }

    /// Ready spares, with what they stand by for.
    pub fn spares(&self) -> impl Iterator<Item = (WorkerId, Range)> {
        self.spares.iter().flat_map(|(range, workers)| workers.iter().map(|worker| (*worker, *range)))
    }

    /// Chains that run.
    pub fn up(&self) -> usize {
        self.chains.len() - self.unready.len()
    }

    /// Whether a chain is up, and none of its sessions waits for states that were lost.
    pub fn serves(&self) -> bool {
        let whole = |chain: &&Chain| {
            let restoring = |session| self.sessions.get(session).is_some_and(|it| it.restore.is_some());
            chain.state == ChainState::Up && !chain.sessions.iter().any(restoring)
        };
        self.chains.values().any(|chain| whole(&chain))
    }

    /// Sessions that wait, and those that are on a chain.
    pub fn load(&self) -> (usize, usize) {
        let waiting = self.queue.len();
        (waiting, self.sessions.len().saturating_sub(waiting))
    }

    pub(super) fn next_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    pub(super) fn lease(&mut self) -> Lease {
        self.chance.next_u64()
    }
}

/// How many stages and spares each range has, and which has fewest spares for its stages.
#[derive(Debug, Default)]
pub(super) struct Cover {
    ranges: BTreeMap<Range, (u32, u32)>,
    /// Spares for a thousand stages, then the range.
    order: BTreeSet<(u32, Range)>,
}

impl Cover {
    fn key(range: Range, (stages, spares): (u32, u32)) -> (u32, Range) {
        (spares * 1000 / stages.max(1), range)
    }

    fn change(&mut self, range: Range, by: impl FnOnce(&mut (u32, u32))) {
        let counts = self.ranges.entry(range).or_default();
        self.order.remove(&Cover::key(range, *counts));
        by(counts);
        if counts.0 > 0 {
            self.order.insert(Cover::key(range, *counts));
        }
        if *counts == (0, 0) {
            self.ranges.remove(&range);
        }
    }

    pub fn stages(&mut self, range: Range, more: bool) {
        self.change(range, |counts| counts.0 = if more { counts.0 + 1 } else { counts.0.saturating_sub(1) });
    }

    pub fn spares(&mut self, range: Range, more: bool) {
        self.change(range, |counts| counts.1 = if more { counts.1 + 1 } else { counts.1.saturating_sub(1) });
    }

    /// Ranges that are served, those with the fewest spares first.
    pub fn least(&self) -> impl Iterator<Item = Range> {
        self.order.iter().map(|(_, range)| *range)
    }

    /// Ranges that are served, those with the most spares first.
    pub fn most(&self) -> impl Iterator<Item = Range> {
        self.order.iter().rev().map(|(_, range)| *range)
    }

    /// Stages and spares of a range.
    pub fn of(&self, range: &Range) -> (u32, u32) {
        self.ranges.get(range).copied().unwrap_or_default()
    }
}
