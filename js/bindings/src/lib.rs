//! The engine and the conformance suite for JavaScript. What crosses the border is small: JSON texts, byte arrays and
//! callbacks; the package around it makes an API of that.
#![cfg(target_arch = "wasm32")]
#![forbid(unsafe_code)]

mod bench;
mod conformance;
mod engine;
mod error;
mod sha256;
mod source;
mod tune;

use wasm_bindgen::prelude::{JsCast, wasm_bindgen};

/// Tells of panics, which are bugs, where developers look; without it a trap says nothing.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|info| web_sys::console::error_1(&info.to_string().into())));
}

/// Size of the module's memory.
///
/// *Units*: bytes.
#[wasm_bindgen]
pub fn wasm_memory_bytes() -> f64 {
    let memory: js_sys::WebAssembly::Memory = wasm_bindgen::memory().unchecked_into();
    memory.buffer().unchecked_into::<js_sys::ArrayBuffer>().byte_length().into()
}
