//! The state machine. Other modules of the crate see as much of it as other crates do, and no more.

mod action;
mod chain;
mod checking;
mod config;
mod coordinator;
mod event;
mod facts;
mod joining;
mod mending;
mod planning;
mod queue;
mod restoring;
mod running;
mod session;
mod timers;
mod worker;

pub use action::{Action, Copy, End, Source, Stop};
pub use chain::{ChainId, ChainState, Slot};
pub use checking::CheckId;
pub use config::Config;
pub use coordinator::{Coordinator, Counts};
pub use event::{Event, Request, Verdict};
pub use facts::{Facts, SavedChain, SavedSession};
pub use session::SessionId;
pub use worker::{Offer, State, WorkerId};
