//! The contract between models and backends: tensors, operators, weight formats, graphs, fusion, plans and the
//! [`Backend`] and [`Program`] traits. Nothing here knows a GPU, a file or a thread.
//!
//! A model is recorded as a [`Graph`] of [`Op`]s, [fused](fuse::fuse) to what a backend can run, [planned](Plan) into
//! slots, [compiled](Backend::compile) to a [`Program`], and stepped with [`StepParams`].
#![forbid(unsafe_code)]

mod backend;
pub mod case;
mod error;
pub mod format;
pub mod fuse;
mod graph;
pub mod op;
mod patch;
mod plan;
mod products;
mod step;
mod tensor;
mod tuning;

pub use backend::{
    Backend, BackendInfo, KernelInfo, Profile, Program, ReadId, Stats, StorageDesc, StorageId, host_rows,
};
pub use error::{Error, Unsupported};
pub use format::Format;
pub use graph::{Graph, Node, TensorId};
pub use op::Op;
pub use patch::ShaderPatch;
pub use plan::{Place, Plan};
pub use products::Products;
pub use step::StepParams;
pub use tensor::{DType, Kind, Shape, Tensor};
pub use tuning::{Tunable, Tuned};
