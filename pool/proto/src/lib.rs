//! Messages between the members of a pool, their bounds, and their subjects.
//!
//! A pool is many browsers and native processes that run one model: each a *stage*, a range of blocks. `pool.proto`,
//! beside this crate's sources, is the schema for workers in other languages; nothing here does I/O.
//!
//! ```
//! use anygpu_pool_proto::{Done, Wire};
//!
//! let done = Done { session: 7, epoch: 1, position: 40 };
//! assert_eq!(Done::from_wire(&done.to_wire()?)?, done);
//! # Ok::<(), anygpu_pool_proto::ProtoError>(())
//! ```
//!
//! Steps go from worker to worker. The coordinator begins a lap of the chain by a [`Step`] whose `route` has a
//! [`Hop`] for each stage that follows and, as the last, [`subject::out`]. A stage checks that the step's lease is its
//! own, computes, takes the first hop off the route and sends what it computed there; the last stage sends a
//! [`Token`]. A stage that gets the step of a position again, with the same epoch, sends its last output again.
#![forbid(unsafe_code)]

mod check;

mod error;
mod hello;
pub mod limits;
mod manifest;
mod range;
mod requests;
mod step;
pub mod subject;
mod wire;

pub use error::ProtoError;
pub use hello::{Heartbeat, Hello, Rung, Welcome};
pub use manifest::Manifest;
pub use range::{Range, Seam};
pub use requests::{
    Assign, Assigned, Control, Done, Drop, Export, Failure, Import, Open, Reason, Release, Replay, Reply, control,
    reply,
};
pub use step::{Hop, Sampling, Step, StepDone, Token};
pub use wire::Wire;

/// The version of the protocol: raised whenever a member of another version would misunderstand.
pub const VERSION: u32 = 2;
