//! State of a pool for people.

use anygpu_pool_proto::Range;
use serde::Serialize;

use super::dispatcher::Dispatcher;
use super::said::name;
use super::times::Times;
use super::traces::Trace;
use crate::{ChainState, Counts};

/// Chains, spares and counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Picture {
    /// Those that run, and those that are being prepared or mended.
    pub chains: Vec<PicturedChain>,
    /// Workers that stand by for a range.
    pub spares: Vec<PicturedStage>,
    /// Workers that are there.
    pub workers: usize,
    /// Texts that wait for a chain.
    pub waiting: usize,
    /// Texts on a chain.
    pub running: usize,
    /// Whether a chain is up, and none of its texts waits for states that were lost.
    pub serves: bool,
    /// Tokens so far.
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
    /// Rows that were computed again.
    pub replayed: u64,
    /// Steps that were sent again.
    pub again: u64,
    /// Checks in which two workers computed the same.
    pub checked: u64,
    /// Checks in which they did not.
    pub disputed: u64,
    /// Workers that were banned, since others agreed on something else.
    pub banned: u64,
    /// Where the time went.
    pub times: Times,
}

/// A chain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PicturedChain {
    /// Its number.
    pub id: u64,
    /// Whether it takes steps.
    pub up: bool,
    /// Texts on it.
    pub sessions: usize,
    /// In order.
    pub stages: Vec<PicturedStage>,
}

/// A stage, or a spare for one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PicturedStage {
    /// Worker that has it, if there is one.
    pub worker: Option<String>,
    /// The first block.
    pub first: u32,
    /// The block after the last.
    pub end: u32,
    /// Whether the embedding is before them.
    pub embedding: bool,
    /// Whether the head is after them.
    pub head: bool,
    /// Whether it is fetched and compiled.
    pub ready: bool,
    /// Time of a row through a block at the worker.
    ///
    /// *Units*: microseconds.
    pub block_micros: u64,
}

impl Dispatcher {
    /// The last steps of all texts, oldest first.
    pub fn traces(&self) -> Vec<Trace> {
        self.traces.kept()
    }

    /// Returns the present state of the pool.
    pub fn picture(&self) -> Picture {
        let coordinator = self.coordinator();
        let stage = |worker: Option<u64>, range: Range, ready: bool| PicturedStage {
            worker: worker.map(name),
            first: range.first,
            end: range.end,
            embedding: range.embedding,
            head: range.head,
            ready,
            block_micros: worker.and_then(|worker| coordinator.offer(worker)).map_or(0, |offer| offer.block),
        };
        let chains = coordinator.chains().map(|(id, state, slots, sessions)| PicturedChain {
            id,
            up: state == ChainState::Up,
            sessions,
            stages: slots.iter().map(|slot| stage(slot.worker, slot.range, slot.ready)).collect(),
        });
        let spares = coordinator.spares().map(|(worker, range)| stage(Some(worker), range, true));
        let (waiting, running) = coordinator.load();
        let counts = coordinator.counts();
        let Counts { tokens, lost, promoted, exchanged, recruited, given_up, replayed, again, .. } = counts;
        let Counts { checked, disputed, banned, .. } = counts;
        Picture {
            chains: chains.collect(),
            spares: spares.collect(),
            workers: self.workers.len(),
            waiting,
            running,
            serves: coordinator.serves(),
            tokens,
            lost,
            promoted,
            exchanged,
            recruited,
            given_up,
            replayed,
            again,
            checked,
            disputed,
            banned,
            times: self.watch.times(),
        }
    }
}
