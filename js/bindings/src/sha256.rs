//! SHA-256 of what comes in pieces.

use sha2::Digest;
use std::fmt::Write;
use wasm_bindgen::prelude::wasm_bindgen;

/// A digest in the making.
#[wasm_bindgen]
#[derive(Default)]
pub struct Sha256(sha2::Sha256);

#[wasm_bindgen]
impl Sha256 {
    /// The digest of nothing yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Sha256 {
        Sha256::default()
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest in hexadecimal digits; what is added afterwards begins anew.
    pub fn hex(&mut self) -> String {
        self.0.finalize_reset().iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
