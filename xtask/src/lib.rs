//! `cargo xtask`: runs all tests by itself, and starts the other tasks, which are a larger program (`xtask/tasks`).
//!
//! It is small so that `cargo xtask test` says within a minute of a fresh checkout what it is going to do. What the tasks use
//! of a machine as well (browsers, drivers, compilers, processes) is here.
#![forbid(unsafe_code)]

pub mod arm;
pub mod browsers;
mod crashed;
mod drivers;
pub mod nats;
pub mod process;
pub mod programs;
mod runs;
pub mod tally;
pub mod test;
pub mod toolchain;

use std::path::PathBuf;

/// Returns the root of the workspace.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}
