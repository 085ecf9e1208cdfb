//! Shared code of the modules for JavaScript: errors with a code, JSON texts, files, cancelling, and messages of
//! panics.
#![cfg(target_arch = "wasm32")]
#![forbid(unsafe_code)]

mod cancel;
#[cfg(feature = "engine")]
pub mod engine_error;
pub mod error;
#[cfg(feature = "engine")]
pub mod load;
#[cfg(feature = "engine")]
pub mod source;
#[cfg(target_feature = "atomics")]
pub mod threads;

pub use cancel::WasmCancel;

use serde::Serialize;
use wasm_bindgen::JsValue;

/// Tells of panics, which are bugs, where developers look; without it a trap says nothing.
pub fn show_panics() {
    std::panic::set_hook(Box::new(|info| web_sys::console::error_1(&info.to_string().into())));
}

/// Plain data always becomes JSON.
pub fn json(value: &impl Serialize) -> Result<String, JsValue> {
    serde_json::to_string(value).map_err(|e| error::options(format!("no JSON: {e}; report this as a bug")))
}
