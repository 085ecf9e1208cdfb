//! The coordinator of a pool, as a state machine, and what goes with it: plans ([`plan`]), what is between it and a
//! broker ([`dispatch`]), and simulated pools around it ([`sim`]).
//!
//! [`Coordinator::handle`] takes what happened and when, and says what is to be done. It has no clock, no I/O and no
//! chance but a seed's, so that the simulator and tests run the same code as a pool does. What is around it turns
//! messages into [`Event`]s and [`Action`]s into messages, and sends [`Event::Tick`] at [`Coordinator::due`].
//!
//! - A **worker** ([`State`]) joins, is measured, fetches a range, and then serves as a stage of a chain or stands by
//!   as a spare. One that misses a deadline is suspect; one whose connection closed is gone.
//! - A **chain** ([`ChainState`]) is planned, prepared, up, and mended when it loses a stage. A better one is prepared
//!   aside, and takes new sessions when it is up; those under way end where they are.
//! - A **session** is queued, placed on a chain, and goes around it in laps: a step from stage to stage, and a token.
//!
//! A lost stage is restored alone: a spare takes the snapshot that it was sent, if it was, and the stage before sends
//! again what it kept since. Then the lap under way begins again; stages that did it already answer from what they
//! kept. A token is accepted once, for the position that is awaited.
#![forbid(unsafe_code)]

pub mod dispatch;
mod machine;
pub mod plan;
pub mod sim;

pub use machine::{
    Action, ChainId, ChainState, CheckId, Config, Coordinator, Copy, Counts, End, Event, Facts, Offer, Request,
    SavedChain, SavedSession, SessionId, Slot, Source, State, Stop, Verdict, WorkerId,
};

/// Microseconds since a moment that whoever runs the coordinator chooses.
pub type Micros = u64;

/// Unguessable number of a member's part in a session: only workers that were given it can name it.
pub type Lease = u64;
