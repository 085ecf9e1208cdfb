//! The engine for JavaScript. What crosses the border is small: JSON texts, byte arrays and callbacks; the package around it
//! makes an API of that.
#![cfg(target_arch = "wasm32")]
#![forbid(unsafe_code)]

mod asked;
mod engine;
mod generate;
mod kept;
mod openai;
mod request;
mod sessions;
mod sha256;
mod tune;
mod watching;

pub use bindings_common::WasmCancel;
#[cfg(target_feature = "atomics")]
pub use bindings_common::threads::{thread_compute, thread_parts, thread_share};

use wasm_bindgen::prelude::{JsCast, wasm_bindgen};

/// Begins to tell of panics.
#[wasm_bindgen(start)]
pub fn start() {
    bindings_common::show_panics();
}

/// Has a function called, and what it promises awaited, before the CPU is opened for the first time: it starts threads.
#[cfg(target_feature = "atomics")]
#[wasm_bindgen]
pub fn before_cpu(start: js_sys::Function) {
    anygpu::web::before_cpu(start);
}

/// Size of the module's memory.
///
/// *Units*: bytes.
#[wasm_bindgen]
pub fn wasm_memory_bytes() -> f64 {
    let memory: js_sys::WebAssembly::Memory = wasm_bindgen::memory().unchecked_into();
    memory.buffer().unchecked_into::<js_sys::ArrayBuffer>().byte_length().into()
}
