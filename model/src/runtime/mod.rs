//! Runtime: models on a device, and texts that are generated with them.
//!
//! A [`Sequence`] is a text with everything that decides how it goes on; it knows no device. A [`Session`] has the states of
//! a sequence on a device. A [`Run`] brings both together: it submits steps and reads their tokens.

mod adjust;
mod batch;
mod constraint;
mod diagnose;
mod drafter;
mod drafts;
mod embed;
mod fill;
mod generate;
mod generation;
mod growing;
mod inputs;
mod interval;
mod load;
mod log_probs;
mod logits;
mod mask;
mod options;
mod overflow;
mod request;
mod resume;
mod rewind;
mod run;
mod saver;
mod saving;
mod seat;
mod sequence;
mod session;
mod sessions;
mod snapshot;
mod stage;
mod steps;
mod stop;
mod storages;
mod words;

pub use adjust::Adjust;
pub use batch::Batch;
pub use constraint::{AllowFuture, Constraint, MAX_CONSTRAINT};
pub use diagnose::Fault;
pub use drafter::DraftError;
pub use embed::{Embedder, Embedding};
pub use generation::{Finish, Generation, Piece};
pub use load::{Footprint, LoadTimes, Model};
pub use log_probs::{LogProb, LogProbEntry, TokenEntry};
pub use options::GenerateOptions;
pub use overflow::{Overflow, Overflowed};
pub use request::{Sampling, SavedRequest};
pub use run::Run;
pub use saving::{Saving, SnapshotSink};
pub use sequence::{OnPiece, Sequence};
pub use session::Session;
pub use sessions::{SessionInfo, Sessions};
pub use snapshot::{Header, Rows, Snapshot, SnapshotError};
pub use stage::{Seam, StageError, StageOutput, StageSession, StageStep};
pub use words::Words;
