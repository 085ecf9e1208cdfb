//! Runtime: models on a device, and texts that are generated with them, in rooms of which none imports a later one.
//!
//! - `sequence`: a [`Sequence`] is a text with everything that decides how it goes on. It knows no device.
//! - `load`: a [`Model`] has its weights on a device.
//! - `scheduler`: which rows the next step has where sequences advance together.
//! - `session`: a [`Session`] has the states of a sequence on a device. They grow, rewind, and can be saved and moved.
//! - `run`: a [`Run`] submits the steps of a sequence in a session, and reads their tokens.
//! - `batch`: a [`Batch`] has sessions that advance together, and [`Sessions`] bring sequences to them in turn.
//!
//! [`Embedder`] and [`StageSession`] use these for vectors and for a part of a model's layers.

mod batch;
mod embed;
mod load;
mod run;
mod scheduler;
mod sequence;
mod session;
mod stage;

pub use batch::{Batch, SessionInfo, Sessions};
pub use embed::{Embedder, Embedding};
pub use load::{Footprint, LoadTimes, Model};
pub use run::{DraftError, Run};
pub use sequence::{
    Adjust, AllowFuture, Constraint, Finish, GenerateOptions, Generation, Header, LogProb, LogProbEntry,
    MAX_CONSTRAINT, OnPiece, Overflow, Overflowed, Piece, Rows, Sampling, SavedRequest, Saving, Sequence, Snapshot,
    SnapshotError, SnapshotSink, TokenEntry, Words,
};
pub use session::{Fault, Session, StepTimes, TracedKernel};
pub use stage::{Seam, StageError, StageOutput, StageSession, StageStep};
