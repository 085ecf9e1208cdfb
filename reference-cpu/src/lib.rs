//! The CPU: the truth that other backends are held to, and the last rung of the ladder.
//!
//! - [`decode`]: one file a weight format, file bytes to f32, as the formats are defined.
//! - `plain`: one function an operator that reads like its definition: f32 data, f64 accumulation. Primitives only;
//!   fused operators are run as their expansions.
//! - `fast`: SIMD kernels for what takes the time, fused operators among them; held to `plain` by the conformance suite.
//! - `threads`: natively, and in pages that may have threads, cores share the fast path's work. `plain` is computed by one.
//! - [`Cpu`]: the backend that runs either.
#![forbid(unsafe_code)]

mod args;
mod cpu;
pub mod decode;
mod fast;
mod plain;
#[doc(hidden)]
pub mod testing;
mod threads;
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
pub mod workers {
    //! The threads of a module in a browser.
    pub use crate::threads::{compute, share};
}

pub use cpu::{Cpu, Options};
pub use fast::lanes::Instructions;
