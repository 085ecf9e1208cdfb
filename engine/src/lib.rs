//! The only crate that knows every backend: it [selects](select()) one by proof and runs models on it ([`Engine`]).
#![forbid(unsafe_code)]

pub mod bench;
mod engine;
mod error;
#[cfg(not(target_arch = "wasm32"))]
pub mod native;
mod report;
mod rig;
mod select;
mod selftest;
mod tune;
#[cfg(target_arch = "wasm32")]
pub mod web;

pub use engine::{Engine, EngineOptions, Progress};
pub use error::EngineError;
pub use report::{Outcome, Report, Rung};
pub use select::{Choice, Layout, SelectOptions, select};
pub use tune::{Trial, TuneReport, Values, Winner, Winners, tune};
