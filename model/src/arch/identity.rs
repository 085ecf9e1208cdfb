//! Identity of a model, so that states are never loaded into another model. It is a digest of the hyperparameters, of
//! the beginning of each tensor, and of the position encoding: bytes that loading reads anyway.

use sha2::{Digest, Sha256};
use std::fmt;

use crate::gguf::{Metadata, TensorInfo};

/// Bytes of each tensor that are included.
const HEAD: usize = 4096;

/// Digest of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity([u8; 32]);

impl Identity {
    /// Returns the bytes of the digest.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Identity {
    fn from(bytes: [u8; 32]) -> Identity {
        Identity(bytes)
    }
}

/// Formats the digest in hexadecimal digits.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// An identity that is being computed.
#[derive(Debug, Clone)]
pub(crate) struct Identifier(Sha256);

impl Identifier {
    /// Starts the identity of a model from its metadata.
    pub fn new(architecture: &str, metadata: &Metadata) -> Identifier {
        let mut identifier = Identifier(Sha256::new());
        identifier.text(architecture);
        for (key, value) in metadata.iter().filter(|(key, _)| key.split('.').next() == Some(architecture)) {
            identifier.text(key);
            identifier.text(&value.to_string());
        }
        identifier
    }

    /// Adds a tensor; `bytes` are its first bytes, or all.
    pub fn tensor(&mut self, tensor: &TensorInfo, bytes: &[u8]) {
        self.text(&tensor.name);
        self.text(tensor.format.name());
        tensor.shape.iter().for_each(|dim| self.0.update((*dim as u64).to_le_bytes()));
        self.0.update(&bytes[..bytes.len().min(HEAD)]);
    }

    /// Adds the first rows of a position table.
    pub fn positions(&mut self, rows: &[f32]) {
        rows.iter().for_each(|value| self.0.update(value.to_le_bytes()));
    }

    pub fn finish(self) -> Identity {
        Identity(self.0.finalize().into())
    }

    /// Adds a text with its length, so that adjacent texts are unambiguous.
    fn text(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text);
    }
}
