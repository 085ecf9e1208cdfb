//! Language models from GGUF files on any device: WebGPU, WebGL2 or the CPU, natively and in browsers. [`select()`]
//! chooses a backend by self-tests and timing, and an [`Engine`] runs a model on it.
//!
//! The small model of the repository tells a story:
//!
//! ```
//! use anygpu::native::block_on;
//! use anygpu::{Choice, Engine, EngineError, EngineOptions, GenerateOptions, SelectOptions};
//!
//! fn main() -> Result<(), EngineError> {
//! #   std::env::set_current_dir("..").unwrap(); // from the package to the repository
//!     // The default is the fastest device that computes correctly.
//!     let select = SelectOptions { backend: Choice::Cpu, ..Default::default() };
//!     let engine = block_on(Engine::open("models/gab-q4_0.gguf", &EngineOptions { select, ..Default::default() }))?;
//!     let mut session = engine.session()?;
//!     let prompt = engine.encode("Once upon a time")?;
//!     let options = GenerateOptions { max_tokens: Some(64), ..engine.generate_options() };
//!     let print = &mut |piece: anygpu::Piece<'_>| print!("{}", piece.text);
//!     let story = block_on(engine.generate(&mut session, &prompt, &options, print))?;
//! #   assert!(story.text.starts_with(", there was") && story.tokens.len() == 64, "{}", story.text);
//!     println!("\n{:.1} ms a token on {}", story.decode_ms_per_token, engine.backend().info().adapter);
//!     Ok(())
//! }
//! ```
//!
//! Applications need only this crate: it re-exports the types of the other crates that they use. Custom backends
//! implement `backend-api`'s traits. As a [`Candidate`], one is tried, timed and tested like those of this crate;
//! [`Engine::with_backend`] takes one as it is.
#![forbid(unsafe_code)]

pub mod bench;
mod builder;
mod chat;
mod draft;
mod engine;
mod error;
#[cfg(not(target_arch = "wasm32"))]
pub mod handle;
mod inspect;
mod ladder;
#[cfg(not(target_arch = "wasm32"))]
pub mod native;
mod prepare;
mod proof;
mod proven;
mod race;
mod recover;
mod report;
mod rung;
mod select;
mod selftest;
mod stream;
mod timing;
mod tune;
mod watch;
#[cfg(target_arch = "wasm32")]
pub mod web;
mod winners;

pub use backend_api::op::TopK;
pub use backend_api::run::Host;
pub use backend_api::{Backend, BackendInfo, KernelInfo, Made, Products, Role, Stats, StepParams, Traffic};
pub use model::gguf::ReadFuture;
pub use model::{
    Adjust, AllowFuture, ByteSource, BytesSource, CallForm, ChatError, ChatOptions, ChatTemplate, Constraint,
    DEFAULT_N_CTX, DraftError, Embedder, Embedding, Fault, Files, Finish, Footprint, GenerateOptions, Generation, Gguf,
    GgufError, Head, KvCache, LoadTimes, LogProb, LogProbEntry, MAX_TOP, Message, Metadata, Model, ModelError,
    OutputRows, Overflow, Overflowed, Part, Parts, Piece, Pooling, Preface, Recipe, Run, Sampling, SavedRequest,
    Saving, Seam, Sequence, Session, SessionInfo, Sessions, Snapshot, SnapshotError, SnapshotSink, SourceError,
    SplitError, Stage, StageError, StageOutput, StageSession, StageStep, StreamDecoder, TokenChoice, TokenEntry,
    Tokenizer, TokenizerError, ToolCall, ToolChoice, TracedKernel, call_arguments,
};

pub use builder::EngineBuilder;
pub use chat::ChatPrompt;
pub use draft::DraftModel;
pub use engine::{Engine, EngineOptions, Progress};
pub use error::EngineError;
pub use inspect::{InspectedRung, InspectedTensor, Inspection, inspect};
pub use ladder::{Candidate, Choice, Layout, SelectOptions};
pub use proof::{Proof, Proofs};
pub use recover::{Event, Recovered};
pub use report::Report;
pub use rung::{Outcome, Rung};
pub use select::{select, select_telling};
pub use stream::{Generated, TextStream};
pub use tune::{Trial, TuneReport, tune};
pub use watch::{Watch, WatchedMatrix, WatchedStep};
pub use winners::{Values, Winner, Winners};
