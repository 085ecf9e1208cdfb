//! Events that a coordinator is told of.

use anygpu_pool_proto::Sampling;

use super::{
    checking::CheckId,
    session::SessionId,
    worker::{Offer, WorkerId},
};

/// Somebody asks for an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The session's name, never used before.
    pub session: SessionId,
    /// User of the request: sessions of different users take turns in the queue.
    pub user: u64,
    /// The prompt's tokens, one at least.
    pub prompt: Vec<u32>,
    /// Tokens that the answer may have.
    pub most: usize,
    /// How they are chosen.
    pub sampling: Sampling,
    /// Tokens that end it.
    pub stop: Vec<u32>,
}

/// Outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is what this one sent.
    With(WorkerId),
    /// It is something else than all that was sent.
    Differs,
    /// It cannot be told: it was not computed, or not from the same.
    Unknown,
}

/// One event. Events of workers, chains and sessions that have ended are ignored, and so are those of an earlier
/// epoch.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A worker's connection is there.
    Connected(WorkerId),
    /// A worker said what it is and can.
    Hello(WorkerId, Offer),
    /// A worker is there.
    Heartbeat {
        /// Worker that the event is about.
        worker: WorkerId,
        /// Microseconds of a row through a block.
        block: u64,
        /// Microseconds of a hop.
        hop: u64,
        /// Whether its page is seen, if it has one: who is hidden is throttled, and perhaps frozen soon.
        visible: bool,
    },
    /// A worker's connection is closed, nobody answers for it, or it says that it leaves.
    Disconnected(WorkerId),
    /// A worker has fetched and compiled what it was assigned under an epoch.
    Ready(WorkerId, u64),
    /// A worker could not do what was asked under an epoch, its own or a chain's.
    Failed(WorkerId, u64),
    /// A stage has states of a session up to a position.
    Restored(WorkerId, SessionId, u64, u32),
    /// A worker holds a snapshot of a session's states in another's stage, at a position.
    Exported {
        /// The worker whose states they are.
        from: WorkerId,
        /// Worker that holds the rows now.
        to: WorkerId,
        /// The session.
        session: SessionId,
        /// Rows that they have seen.
        position: u32,
    },
    /// The step at a position is through a stage, in an epoch.
    StepDone(WorkerId, SessionId, u64, u32),
    /// Tokens from a position on, of an epoch.
    Tokens {
        /// The last stage.
        worker: WorkerId,
        /// The session.
        session: SessionId,
        /// The chain's epoch.
        epoch: u64,
        /// Where the first one stands.
        position: u32,
        /// The tokens, one at least.
        ids: Vec<u32>,
    },
    /// Somebody asks.
    Ask(Request),
    /// Nobody wants the answer any more.
    Cancel(SessionId),
    /// The coordinator's own connection is closed: nobody can be heard.
    Cut,
    /// It is there again. Workers that were cut off as well follow.
    Returned,
    /// A check was made by a worker.
    Checked(CheckId, WorkerId, Verdict),
    /// It is [`due`](crate::Coordinator::due).
    Tick,
}

impl Event {
    /// The worker that is heard by it.
    pub(super) fn sender(&self) -> Option<WorkerId> {
        match *self {
            Event::Heartbeat { worker, .. }
            | Event::Ready(worker, _)
            | Event::Restored(worker, ..)
            | Event::Exported { to: worker, .. }
            | Event::StepDone(worker, ..)
            | Event::Tokens { worker, .. } => Some(worker),
            _ => None,
        }
    }
}
