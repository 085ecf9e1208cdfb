//! Measuring: a model, single operators, and the floors of the device that it runs on. The same natively and in
//! browsers: everything waits through a [`Host`](::model::Host), and goes through the [`Backend`](backend_api::Backend)
//! trait alone.
//!
//! Decoding is a race against two floors: bytes of weights over the bandwidth of memory, and the cost of each dispatch or
//! draw. [`Floors`] measures both here, and a [`ModelReport`] says how near decoding comes to them.

mod ablate;
mod floors;
mod load;
mod model;
mod ops;
mod profile;
mod spread;
mod text;
mod together;

pub use ablate::{Ablation, AblationReport, ablate};
pub use floors::{Bandwidth, Floors, floors};
pub use load::{LoadReport, RepackRate, load};
pub(crate) use model::time;
pub use model::{DecodeFloor, FirstToken, ModelOptions, ModelReport, PerToken, run};
pub use ops::{OpTime, OpsReport, QUEUED, ops};
pub use profile::{KernelTime, profile};
pub use spread::Spread;
pub use together::{TogetherReport, together};
