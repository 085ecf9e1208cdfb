//! Benchmarks of a model, of single operators, and of the floors (roofline) of the device. They work natively and in
//! browsers: all waiting goes through a [`Host`](::model::Host), and all work through the
//! [`Backend`](backend_api::Backend) trait.
//!
//! Two floors limit decoding: the bytes of weights over the memory bandwidth, and the cost of each dispatch or draw.
//! [`Floors`] measures both on the device, and a [`ModelReport`] says how near decoding comes to them.

mod ablate;
mod floors;
mod load;
mod model;
mod ops;
mod profile;
mod spread;
mod steps;
mod text;
mod together;

pub use ablate::{Ablation, AblationReport, ablate};
pub use floors::{Bandwidth, Floors, floors};
pub use load::{LoadReport, RepackRate, load};
pub(crate) use model::time;
pub use model::{DecodeFloor, FirstToken, ModelOptions, ModelReport, PerToken, prompt, run};
pub use ops::{OpTime, OpsReport, QUEUED, ops};
pub use profile::{KernelTime, RoleTime, by_role, profile};
pub use spread::Spread;
pub use steps::{Buffers, Phases, Roles};
pub use together::{TogetherReport, together};
