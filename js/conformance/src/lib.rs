//! The conformance suite for JavaScript, and what measures backends. They are no part of the engine's module, so that only
//! who runs them downloads them.
#![cfg(target_arch = "wasm32")]
#![forbid(unsafe_code)]

mod bench;
mod suite;

pub use bindings_common::WasmCancel;
#[cfg(target_feature = "atomics")]
pub use bindings_common::threads::{thread_compute, thread_parts, thread_share};

use wasm_bindgen::prelude::wasm_bindgen;

/// Begins to tell of panics.
#[wasm_bindgen(start)]
pub fn start() {
    bindings_common::show_panics();
}
