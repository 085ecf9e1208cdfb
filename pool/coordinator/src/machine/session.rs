//! A session, as the coordinator sees it.

use std::collections::{BTreeSet, VecDeque};

use anygpu_pool_proto::Sampling;

use super::{chain::ChainId, event::Request, worker::WorkerId};
use crate::{Lease, Micros};

/// A session's name.
pub type SessionId = u64;

/// A step on its way around a chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lap {
    pub position: u32,
    pub rows: u32,
    /// The stage that has it.
    pub stage: usize,
    /// The furthest that it came, in all tries.
    pub reached: usize,
}

impl Lap {
    /// The row after its last.
    pub fn end(&self) -> u32 {
        self.position + self.rows
    }
}

/// States that are being made again.
#[derive(Debug, Clone)]
pub(super) struct Restore {
    /// Stages that are still to be restored, with the row that each begins at. The first is under way.
    pub stages: VecDeque<(usize, u32)>,
    /// Whether it is tried since deadlines were missed, which go on counting.
    pub is_tried: bool,
}

/// A snapshot that somebody holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub holder: WorkerId,
    /// The holder's assignment: with another it has forgotten.
    pub epoch: u64,
    pub position: u32,
}

/// Place of a session at a stage.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seat {
    pub lease: Lease,
    /// The row from which the stage keeps what it sent.
    pub kept: u32,
    pub snapshot: Option<Snapshot>,
}

#[derive(Debug, Clone)]
pub(super) struct Session {
    pub user: u64,
    /// The prompt's tokens, then the answer's.
    pub tokens: Vec<u32>,
    pub prompt: usize,
    pub most: usize,
    pub sampling: Sampling,
    /// Tokens that end the text.
    pub stop: Vec<u32>,
    pub chain: Option<ChainId>,
    pub seats: Vec<Seat>,
    /// Rows that all stages have states of.
    pub done: u32,
    /// Steps under way, oldest first: of a prompt, each stage may have one. What is awaited is the oldest.
    pub laps: VecDeque<Lap>,
    /// Stages whose states are lost.
    pub lost: BTreeSet<usize>,
    pub restore: Option<Restore>,
    /// Rows at the last snapshot.
    pub exported: u32,
    /// Deadlines that were missed in a row.
    pub missed: u32,
    /// The next one.
    pub due: Micros,
}

impl Session {
    pub fn new(request: Request) -> Session {
        Session {
            user: request.user,
            prompt: request.prompt.len(),
            tokens: request.prompt,
            most: request.most,
            sampling: request.sampling,
            stop: request.stop,
            chain: None,
            seats: Vec::new(),
            done: 0,
            laps: VecDeque::new(),
            lost: BTreeSet::new(),
            restore: None,
            exported: 0,
            missed: 0,
            due: 0,
        }
    }

    /// Forgets the chain it was on, and keeps the text.
    pub fn leave(&mut self) {
        self.chain = None;
        self.seats.clear();
        self.done = 0;
        self.laps.clear();
        self.lost.clear();
        self.restore = None;
        self.exported = 0;
        self.missed = 0;
    }

    /// Tokens that the answer may still have.
    pub fn left(&self) -> usize {
        (self.prompt + self.most).saturating_sub(self.tokens.len())
    }
}
