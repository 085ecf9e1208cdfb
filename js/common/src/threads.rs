//! The module for pages that may have threads: what starts them needs of it.

use js_sys::WebAssembly;
use wasm_bindgen::prelude::{JsCast, wasm_bindgen};

/// The module and its memory, which each thread starts with.
#[wasm_bindgen]
pub fn thread_parts() -> js_sys::Array {
    js_sys::Array::of2(&wasm_bindgen::module(), &wasm_bindgen::memory().unchecked_into::<WebAssembly::Memory>())
}

/// The calling thread computes from now on with so many others, which call [`thread_compute`]. `refused`: why they are no
/// more.
#[wasm_bindgen]
pub fn thread_share(others: usize, refused: Option<String>) {
    reference_cpu::workers::share(others, refused);
}

/// Computes in a thread, for as long as its worker lives.
#[wasm_bindgen]
pub fn thread_compute() {
    reference_cpu::workers::compute();
}
