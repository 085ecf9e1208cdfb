//! Actions that a coordinator asks for.

use anygpu_pool_proto::{Range, Sampling};

use super::{checking::CheckId, session::SessionId, worker::WorkerId};
use crate::Lease;

/// Where a stage's inputs come from when it is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// These tokens: for the first stage.
    Tokens(Vec<u32>),
    /// Rows that the stage before kept: its worker and lease.
    Stage(WorkerId, Lease),
}

/// One stop of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// Worker that computes it.
    pub worker: WorkerId,
    /// The lease that it has the session by.
    pub lease: Lease,
}

/// A text that a worker computes beside somebody else. To who computes it, it is one as others are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// Worker that computes it, and its lease.
    pub at: Stop,
    /// The name that it has there.
    pub session: SessionId,
    /// Where it sends what it computed: a stage that is not there.
    pub to: Stop,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The model ended the text.
    Stop,
    /// It has as many tokens as were asked for.
    Length,
    /// It was cancelled.
    Cancelled,
    /// A worker was found to have computed something else: what was said so far is not to be relied on.
    Untrusted,
    /// It could not be taken: a prompt without tokens, a name used twice, or too many wait.
    Refused,
}

/// One action outside of the coordinator.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A worker is to fetch and compile a range, under an epoch of its own, in place of what it had.
    Assign(WorkerId, u64, Range),
    /// A worker is to give back what it has.
    Release(WorkerId),
    /// A stage is to make states for a session.
    Open {
        /// The worker.
        worker: WorkerId,
        /// The session.
        session: SessionId,
        /// The chain's epoch.
        epoch: u64,
        /// The lease of the session's steps there.
        lease: Lease,
    },
    /// A stage is to have states of a session for rows [0, to): from a snapshot of rows [0, from) that it holds if
    /// `from` is not 0, and from what `source` sends of [from, to). [`Event::Restored`](crate::Event::Restored) follows.
    Restore {
        /// The worker.
        worker: WorkerId,
        /// The session.
        session: SessionId,
        /// The chain's epoch.
        epoch: u64,
        /// The lease of the session's steps there.
        lease: Lease,
        /// Rows of the snapshot.
        from: u32,
        /// Rows in the end.
        to: u32,
        /// Where inputs come from.
        source: Source,
    },
    /// A worker is to send a snapshot of a session to another, which keeps the last two.
    Export {
        /// The worker.
        worker: WorkerId,
        /// The session.
        session: SessionId,
        /// Worker that takes the stage.
        to: WorkerId,
    },
    /// A worker is to forget a session, its snapshots too.
    Drop(WorkerId, SessionId),
    /// A lap begins: the first stop takes it.
    Step {
        /// The session.
        session: SessionId,
        /// The chain's epoch.
        epoch: u64,
        /// The position of the first row.
        position: u32,
        /// The rows' tokens.
        tokens: Vec<u32>,
        /// Tokens that are wanted after the last row; 0 within a prompt.
        want: u32,
        /// How they are chosen.
        sampling: Sampling,
        /// The stages, in order.
        route: Vec<Stop>,
    },
    /// A token of an answer, at its position.
    Say(SessionId, u32, u32),
    /// A session ended.
    End(SessionId, End),
    /// Compare the output of a stage for a session, from its first step on, with another worker's output for the same
    /// inputs. [`Event::Checked`](crate::Event::Checked) follows.
    Check {
        /// The check.
        check: CheckId,
        /// The session.
        session: SessionId,
        /// The chain's epoch.
        epoch: u64,
        /// Worker of the stage before; none before the first.
        before: Option<WorkerId>,
        /// The stage.
        suspect: Stop,
        /// The stage that takes what the suspect sends; nobody after the last.
        next: Option<Stop>,
        /// The other worker's text.
        copy: Copy,
    },
    /// Two differ: a further worker is to compute the same. [`Event::Checked`](crate::Event::Checked) follows.
    Recheck {
        /// The check.
        check: CheckId,
        /// The further worker's text.
        copy: Copy,
    },
    /// A check is over, whatever came of it.
    Uncheck(CheckId),
    /// Somebody who was thought to be gone speaks: it is to say hello again.
    Greet(WorkerId),
    /// A worker lied: its connection is to be closed, and its identity kept out.
    Ban(WorkerId),
}
