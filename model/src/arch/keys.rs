//! Hyperparameters from metadata, checked.

use crate::error::ModelError;
use crate::gguf::{FromValue, Metadata, Value};

/// Metadata keys of one architecture: `llama.block_count` and the like.
pub(super) struct Keys<'a> {
    pub metadata: &'a Metadata,
    pub architecture: &'static str,
}

impl<'a> Keys<'a> {
    /// The whole key.
    pub fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// An error about a key.
    pub fn wrong(&self, key: &str, reason: impl Into<String>) -> ModelError {
        ModelError::Hyper { key: self.key(key), reason: reason.into() }
    }

    /// A value that may be absent.
    pub fn get<T: FromValue<'a>>(&self, key: &str) -> Result<Option<T>, ModelError> {
        Ok(self.metadata.get(&self.key(key))?)
    }

    /// A size from 1 to `limit`, or `default` where the key is absent; no default makes the key required. Per-layer
    /// arrays are taken if all layers agree.
    pub fn size(&self, key: &str, limit: usize, default: Option<usize>) -> Result<usize, ModelError> {
        let name = self.key(key);
        let size = match (self.metadata.value(&name), default) {
            (None, Some(default)) => default,
            (Some(Value::Uints(_) | Value::Ints(_) | Value::Longs(_)), _) => {
                let layers: Vec<u32> = self.metadata.require(&name)?;
                match layers.split_first() {
                    Some((first, rest)) if rest.iter().all(|l| l == first) => *first as usize,
                    _ => return Err(self.wrong(key, "it differs from layer to layer, which is not supported")),
                }
            }
            _ => self.metadata.require(&name)?,
        };
        if (1..=limit).contains(&size) {
            return Ok(size);
        }
        Err(self.wrong(key, format!("{size} is not in 1 to {limit}")))
    }

    /// A positive, finite number.
    pub fn positive(&self, key: &str, default: Option<f32>) -> Result<f32, ModelError> {
        let value = match (self.get::<f32>(key)?, default) {
            (Some(value), _) => value,
            (None, Some(default)) => default,
            (None, None) => self.metadata.require(&self.key(key))?,
        };
        if value.is_finite() && value > 0.0 {
            return Ok(value);
        }
        Err(self.wrong(key, format!("{value} is no positive number")))
    }
}
