//! Language models from GGUF files: reader, tokenizers, chat templates, architectures, generation. It does not depend
//! on any GPU API.
//!
//! A file is parsed ([`gguf`]), its model is described ([`arch`]: [`Recipe`]), loaded onto a backend ([`Model`]) and run
//! ([`Session`], [`Sequence`]). [`text`] turns conversations into tokens and back.
#![forbid(unsafe_code)]

pub mod arch;
mod error;
#[doc(hidden)]
pub mod fuzz;
pub mod gguf;
mod runtime;
pub mod text;

pub use backend_api::run::Host;

pub use arch::{
    DEFAULT_N_CTX, Head, Identity, KvCache, MAX_TOP, OutputRows, Pooling, Recipe, Sizes, Stage, StateSpec, TokenChoice,
};
pub use error::ModelError;
pub use gguf::{ByteSource, BytesSource, Files, Gguf, GgufError, Metadata, SourceError, SplitError, TensorInfo};
pub use runtime::{
    Adjust, AllowFuture, Batch, Constraint, DraftError, Embedder, Embedding, Fault, Finish, Footprint, GenerateOptions,
    Generation, Header, LoadTimes, LogProb, LogProbEntry, MAX_CONSTRAINT, Model, OnPiece, Overflow, Overflowed, Piece,
    Rows, Run, Sampling, SavedRequest, Saving, Seam, Sequence, Session, SessionInfo, Sessions, Snapshot, SnapshotError,
    SnapshotSink, StageError, StageOutput, StageSession, StageStep, StepTimes, TokenEntry, TracedKernel, Words,
};
pub use text::chat::{
    self, CallForm, ChatError, ChatOptions, ChatTemplate, Message, Part, Parts, Preface, ToolCall, ToolChoice,
    call_arguments,
};
pub use text::tokenizer::{self, PairMarks, StreamDecoder, Tokenizer, TokenizerError};
