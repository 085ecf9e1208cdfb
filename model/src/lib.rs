//! Language models from GGUF files: reader, tokenizers, chat templates, architectures, generation. It does not depend
//! on any GPU API.
//!
//! A file is parsed ([`Gguf`]), its model is described ([`Recipe`]), loaded onto a backend ([`Model`]) and run
//! ([`Session`]).
#![forbid(unsafe_code)]

mod adjust;
pub mod arch;
mod batch;
mod budget;
pub mod chat;
mod constraint;
mod diagnose;
mod drafter;
mod drafts;
mod embed;
mod error;
mod fill;
#[doc(hidden)]
pub mod fuzz;
mod generate;
pub mod gguf;
mod growing;
mod identity;
mod interval;
mod kv_cache;
mod load;
mod log_probs;
mod logits;
mod overflow;
mod request;
mod resume;
mod rewind;
mod run;
mod saving;
mod sequence;
mod session;
mod sessions;
mod snapshot;
mod stage;
mod steps;
mod stop;
pub mod tokenizer;
mod words;

pub use backend_api::run::Host;

pub use adjust::Adjust;
pub use arch::{Head, OutputRows, Pooling, Recipe, Sizes, Stage, StateSpec, TokenChoice};
pub use batch::Batch;
pub use chat::{
    CallForm, ChatError, ChatOptions, ChatTemplate, Message, Part, Parts, Preface, ToolCall, ToolChoice, call_arguments,
};
pub use constraint::{AllowFuture, Constraint, MAX_CONSTRAINT};
pub use diagnose::Fault;
pub use drafter::DraftError;
pub use embed::{Embedder, Embedding};
pub use error::ModelError;
pub use fill::LoadTimes;
pub use generate::{Finish, Generation, Piece};
pub use gguf::{ByteSource, BytesSource, Files, Gguf, GgufError, Metadata, SourceError, SplitError, TensorInfo};
pub use identity::Identity;
pub use kv_cache::KvCache;
pub use load::{Footprint, Model};
pub use log_probs::{LogProb, LogProbEntry, MAX_TOP, TokenEntry};
pub use overflow::{Overflow, Overflowed};
pub use request::{GenerateOptions, Sampling, SavedRequest};
pub use run::Run;
pub use saving::{Saving, SnapshotSink};
pub use sequence::{OnPiece, Sequence};
pub use session::Session;
pub use sessions::{SessionInfo, Sessions};
pub use snapshot::{Header, Rows, Snapshot, SnapshotError};
pub use stage::{Seam, StageError, StageOutput, StageSession, StageStep};
pub use tokenizer::{StreamDecoder, Tokenizer, TokenizerError};
pub use words::Words;
