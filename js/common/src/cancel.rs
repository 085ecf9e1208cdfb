//! Ending early what runs in a module.

use std::cell::Cell;
use std::rc::Rc;
use wasm_bindgen::prelude::wasm_bindgen;

/// Ends a generation or a run of the suite early.
#[wasm_bindgen]
#[derive(Clone, Default)]
pub struct WasmCancel(Rc<Cell<bool>>);

#[wasm_bindgen]
impl WasmCancel {
    /// Makes one that was not used yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> WasmCancel {
        WasmCancel::default()
    }

    /// Ends it at the next token or case.
    pub fn cancel(&self) {
        self.0.set(true);
    }

    /// Another handle of the same.
    pub fn share(&self) -> WasmCancel {
        self.clone()
    }
}

impl WasmCancel {
    /// Returns the flag that is set when it is used.
    pub fn flag(&self) -> Rc<Cell<bool>> {
        self.0.clone()
    }
}
