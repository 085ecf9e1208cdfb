//! Deadlines, in order of time.

use std::collections::{BTreeMap, BTreeSet};

use super::{chain::ChainId, checking::CheckId, session::SessionId, worker::WorkerId};
use crate::Micros;

/// Purpose of a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A session's step or restoration.
    Session(SessionId),
    /// A worker's next word.
    Silence(WorkerId),
    /// A worker's range.
    Prepare(WorkerId),
    /// A chain's missing stages.
    GiveUp(ChainId),
    /// The next plan.
    Plan,
    /// The next look for something better.
    Improve,
    /// A check's result.
    Check(CheckId),
}

/// Timers, each at one moment at most.
#[derive(Debug, Default)]
pub(super) struct Timers {
    queue: BTreeSet<(Micros, Timer)>,
    at: BTreeMap<Timer, Micros>,
}

impl Timers {
    pub fn set(&mut self, timer: Timer, at: Micros) {
        self.clear(timer);
        self.queue.insert((at, timer));
        self.at.insert(timer, at);
    }

    /// Sets what is not set yet.
    pub fn set_once(&mut self, timer: Timer, at: Micros) {
        if !self.at.contains_key(&timer) {
            self.set(timer, at);
        }
    }

    pub fn clear(&mut self, timer: Timer) {
        if let Some(at) = self.at.remove(&timer) {
            self.queue.remove(&(at, timer));
        }
    }

    pub fn first(&self) -> Option<Micros> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Takes the first that is due.
    pub fn pop(&mut self, now: Micros) -> Option<Timer> {
        let &(at, timer) = self.queue.first().filter(|(at, _)| *at <= now)?;
        self.queue.remove(&(at, timer));
        self.at.remove(&timer);
        Some(timer)
    }
}
