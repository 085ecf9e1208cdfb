//! Dtypes of the KV cache.

use backend_api::{Codec, DType};
use std::fmt;
use std::str::FromStr;

/// Dtype of the KV cache: f32, or a codec that rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KvCache(Option<Codec>);

impl KvCache {
    /// Half precision: half of the memory, with hardly any effect on the text.
    pub const F16: KvCache = KvCache(Some(Codec::F16));

    /// Selects a codec.
    pub fn coded(codec: Codec) -> KvCache {
        KvCache(Some(codec))
    }

    /// Returns the dtype of the cache's states.
    pub fn dtype(self) -> DType {
        self.0.map_or(DType::F32, DType::Coded)
    }

    /// Iterates over the names of all dtypes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        std::iter::once("f32").chain(Codec::ALL.iter().map(|codec| codec.spec().name))
    }
}

impl FromStr for KvCache {
    type Err = String;

    fn from_str(text: &str) -> Result<KvCache, String> {
        match (text, Codec::named(text)) {
            ("f32", _) => Ok(KvCache(None)),
            (_, Some(codec)) => Ok(KvCache(Some(codec))),
            (other, None) => {
                let known = KvCache::names().collect::<Vec<_>>().join(", ");
                Err(format!("a KV cache of {other:?} is not known; choose one of {known}"))
            }
        }
    }
}

impl fmt::Display for KvCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.map_or("f32", |codec| codec.spec().name))
    }
}
