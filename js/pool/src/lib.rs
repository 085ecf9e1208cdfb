//! A worker of a pool for JavaScript. It is no part of the engine's module, so that only who joins a pool downloads it.
//!
//! JavaScript connects to the broker, knows subjects and carries bytes. What they say is made and read here.
#![cfg(target_arch = "wasm32")]
#![forbid(unsafe_code)]

mod member;
mod models;
mod shown;

pub use bindings_common::WasmCancel;

use wasm_bindgen::prelude::wasm_bindgen;

/// The name of who knows a secret.
#[wasm_bindgen]
pub fn worker_name(secret: &str) -> String {
    anygpu_pool_worker::name(secret)
}

/// Begins to tell of panics.
#[wasm_bindgen(start)]
pub fn start() {
    bindings_common::show_panics();
}
