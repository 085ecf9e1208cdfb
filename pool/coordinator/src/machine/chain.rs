//! A chain, as the coordinator sees it.

use std::collections::BTreeSet;

use anygpu_pool_proto::Range;

use super::{session::SessionId, worker::WorkerId};

/// A chain's name.
pub type ChainId = u64;

/// Where a chain stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChainState {
    /// Its ranges are known, its workers are not all there.
    Planned,
    /// Its workers fetch and compile.
    Preparing,
    /// It runs.
    Up,
    /// It lost a stage.
    Mending,
}

/// A stage of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Blocks that it computes.
    pub range: Range,
    /// Worker that serves the stage, if there is one.
    pub worker: Option<WorkerId>,
    /// Whether that worker is ready.
    pub ready: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Chain {
    /// Raised when a stage changes hands: what was sent before is ignored then.
    pub epoch: u64,
    pub state: ChainState,
    pub slots: Vec<Slot>,
    pub sessions: BTreeSet<SessionId>,
    /// The chain whose place this one takes.
    pub replaces: Option<ChainId>,
}

impl Chain {
    /// The state that its slots say.
    pub fn settled(&self) -> ChainState {
        let was_up = matches!(self.state, ChainState::Up | ChainState::Mending);
        if self.slots.iter().all(|slot| slot.worker.is_some() && slot.ready) {
            ChainState::Up
        } else if was_up {
            ChainState::Mending
        } else if self.slots.iter().all(|slot| slot.worker.is_some()) {
            ChainState::Preparing
        } else {
            ChainState::Planned
        }
    }
}
