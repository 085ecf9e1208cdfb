//! The contract between models and backends: tensors, operators, weight formats, graphs, forms, plans and the
//! [`Backend`] and [`Program`] traits. Nothing here knows a GPU or a file.
//!
//! A model is recorded as a [`Graph`] of primitive [`Op`]s; a backend [covers](Backend::cover) it with the [`Form`]s that
//! it has kernels for; what lies between covers is [planned](Plan) into slots; the plan is
//! [compiled](Backend::compile) to a [`Program`], and stepped with [`StepParams`].
#![forbid(unsafe_code)]

mod backend;
pub mod case;
pub mod cases;
mod codec;
pub mod compare;
mod cost;
mod cover;
pub mod elementary;
mod error;
pub mod form;
pub mod format;
mod graph;
mod kernel;
mod limits;
mod links;
mod made;
pub mod op;
mod order;
pub mod pace;
mod part;
mod plan;
mod products;
mod role;
pub mod run;
pub mod shader;
mod step;
mod tensor;
#[doc(hidden)]
pub mod testing;
mod tuning;
mod watch;

pub use backend::{Backend, BackendInfo, Held, Profile, Program, ReadId, Stats, StorageDesc, StorageId, host_rows};
pub use codec::{Codec, CodecSpec, Levels};
pub use cost::Cost;
pub use cover::cover;
pub use error::{Error, Unsupported};
pub use form::{Cover, Form, Matcher};
pub use format::Format;
pub use graph::{Graph, Node, TensorId};
pub use kernel::{Bound, KernelInfo, Traffic};
pub use limits::{StepLimits, check_one_sequence, check_sequences};
pub use links::Links;
pub use made::Made;
pub use op::Op;
pub use order::{ordered, sort_by_key};
pub use pace::Pace;
pub use part::{Cuts, Part, Piece};
pub use plan::{Place, Plan};
pub use products::Products;
pub use role::Role;
pub use step::StepParams;
pub use tensor::{DType, Kind, Shape, Tensor, Update};
pub use tuning::{Tunable, Tuned};
pub use watch::{Pass, Watcher};
