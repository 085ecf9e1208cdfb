//! Identity of a model, so that a text's states are never given to another model: a digest of its hyperparameters, of
//! the beginning of each tensor, and of how positions are told apart. It is made of bytes that loading reads anyway.

use sha2::{Digest, Sha256};
use std::fmt;

use crate::gguf::{Metadata, TensorInfo};

/// Bytes of each tensor that count.
const HEAD: usize = 4096;

/// The digest of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity([u8; 32]);

impl Identity {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Identity {
    fn from(bytes: [u8; 32]) -> Identity {
        Identity(bytes)
    }
}

/// In hexadecimal digits.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// An identity in the making.
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

    /// Adds a tensor, of which these are the first bytes or more.
    pub fn tensor(&mut self, tensor: &TensorInfo, bytes: &[u8]) {
        self.text(&tensor.name);
        self.text(tensor.format.name());
        tensor.shape.iter().for_each(|dim| self.0.update((*dim as u64).to_le_bytes()));
        self.0.update(&bytes[..bytes.len().min(HEAD)]);
    }

    /// Adds the first rows of a table for positions.
    pub fn positions(&mut self, rows: &[f32]) {
        rows.iter().for_each(|value| self.0.update(value.to_le_bytes()));
    }

    pub fn finish(self) -> Identity {
        Identity(self.0.finalize().into())
    }

    /// With its length, so that texts side by side cannot be mistaken for others.
    fn text(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text);
    }
}
