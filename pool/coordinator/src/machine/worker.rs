//! A worker, as the coordinator sees it.

use anygpu_pool_proto::Range;

use super::chain::ChainId;
use crate::{Micros, plan};

/// A worker's identity.
pub type WorkerId = u64;

/// Offer of a worker. *Units*: bytes, microseconds, bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Memory.
    pub memory: u64,
    /// Time of a row through a block.
    pub block: u64,
    /// Time of a hop.
    pub hop: u64,
    /// Rate of downloads.
    pub bandwidth: u64,
    /// The range that it has weights of.
    pub cached: Option<Range>,
    /// Whether it may see tokens.
    pub ends: bool,
}

/// Where a worker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Its connection is there.
    Joining,
    /// It said what it can, and has nothing to do.
    Measured,
    /// It fetches and compiles a range.
    Fetching,
    /// It has compiled its range, and its chain waits for others.
    Ready,
    /// It serves as a stage of a chain that is up.
    Serving,
    /// It stands by.
    Spare,
    /// It missed a deadline, and has nothing until it says something.
    Suspect,
    /// It is not there.
    Gone,
}

impl State {
    /// Whether a worker may go from this state to another. Any may go.
    pub fn may(self, next: State) -> bool {
        use State::{Fetching, Gone, Joining, Measured, Ready, Serving, Spare, Suspect};
        matches!(
            (self, next),
            (_, Gone)
                | (Gone, Joining)
                | (Joining | Fetching | Ready | Serving | Spare | Suspect, Measured)
                | (Measured | Spare, Fetching)
                | (Fetching | Spare, Ready | Spare)
                | (Ready, Serving)
                | (Serving, Ready)
                | (Fetching | Ready | Serving | Spare, Suspect)
        )
    }
}

/// Role of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    None,
    Stage(ChainId, usize),
    Spare(Range),
}

#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub id: WorkerId,
    pub state: State,
    pub role: Role,
    pub offer: Offer,
    /// The epoch of its last assignment.
    pub epoch: u64,
    pub since: Micros,
    /// When it was last heard. After a break of the coordinator's own connection this is when silence begins to count.
    pub heard: Micros,
    /// How often it was given more time to prepare.
    pub late: u32,
}

impl Worker {
    pub fn new(id: WorkerId, now: Micros) -> Worker {
        let offer = Offer { memory: 0, block: 0, hop: 0, bandwidth: 1, cached: None, ends: false };
        Worker { id, state: State::Joining, role: Role::None, offer, epoch: 0, since: now, heard: now, late: 0 }
    }

    pub fn turn(&mut self, next: State) {
        debug_assert!(self.state.may(next), "worker {}: {:?} to {next:?}", self.id, self.state);
        self.state = next;
    }

    /// Returns the facts that plans are made with. A worker that has stayed long is expected to stay long: its losses
    /// a second fall with its age.
    pub fn planned(&self, now: Micros, life: f64) -> plan::Worker {
        let offer = &self.offer;
        plan::Worker {
            id: self.id,
            memory: offer.memory,
            block: offer.block as f64 * 1e-6,
            hop: offer.hop as f64 * 1e-6,
            hazard: 1.0 / (life + now.saturating_sub(self.since) as f64 * 1e-6),
            bandwidth: offer.bandwidth.max(1) as f64,
            cached: offer.cached,
            ends: offer.ends,
        }
    }

    /// Whether it can hold a range.
    pub fn fits(&self, model: &plan::Model, range: &Range) -> bool {
        model.bytes(range) <= self.offer.memory && (self.offer.ends || !(range.embedding || range.head))
    }
}
