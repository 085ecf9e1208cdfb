//! The engine for JavaScript. What crosses the border is small: JSON texts, byte arrays and callbacks; the package around it
//! makes an API of that.
#![cfg(target_arch = "wasm32")]
#![forbid(unsafe_code)]

mod bench;
mod engine;
mod error;
mod generate;
mod kept;
mod request;
mod sessions;
mod sha256;
mod source;
mod tune;

pub use bindings_common::WasmCancel;

use wasm_bindgen::prelude::{JsCast, wasm_bindgen};

/// Begins to tell of panics.
#[wasm_bindgen(start)]
pub fn start() {
    bindings_common::show_panics();
}

/// Size of the module's memory.
///
/// *Units*: bytes.
#[wasm_bindgen]
pub fn wasm_memory_bytes() -> f64 {
    let memory: js_sys::WebAssembly::Memory = wasm_bindgen::memory().unchecked_into();
    memory.buffer().unchecked_into::<js_sys::ArrayBuffer>().byte_length().into()
}
