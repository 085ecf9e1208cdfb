//! How to load a model, as JavaScript says it.

use std::rc::Rc;

use anygpu::{EngineOptions, KvCache, Layout, Products, Proofs, SelectOptions, Winners};
use serde::Deserialize;
use wasm_bindgen::JsValue;

use crate::error;

/// How to load.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadOptions {
    backend: Option<String>,
    n_ctx: Option<usize>,
    capacity: Option<usize>,
    kv_cache: Option<String>,
    max_memory: Option<u64>,
    pooling: Option<String>,
    /// Rate to assume of the device, whatever it really is: multiply-adds a millisecond.
    rate: Option<f64>,
    /// Bytes that sessions which are not on the device may take of host memory.
    session_memory: Option<usize>,
    webgl_layout: Option<String>,
    webgl_max_texture_size: Option<u32>,
    webgpu_max_binding: Option<u64>,
    webgpu_products: Option<String>,
    /// Rungs that were lost again and again.
    #[serde(default)]
    without: Vec<String>,
    /// Tuning results of earlier visits. Those of another version are ignored.
    tuned: Option<serde_json::Value>,
    /// Self-test results of earlier visits. Those of another version are ignored.
    proven: Option<serde_json::Value>,
}

impl LoadOptions {
    /// From JSON, as the engine takes it.
    pub fn parse(text: &str) -> Result<EngineOptions, JsValue> {
        LoadOptions::read(text)?.parsed()
    }

    /// From JSON.
    pub fn read(text: &str) -> Result<LoadOptions, JsValue> {
        serde_json::from_str(text).map_err(error::options)
    }

    /// Bytes that sessions which are not on the device may take of host memory.
    pub fn session_memory(&self) -> Option<usize> {
        self.session_memory
    }

    /// Returns the tuning results of earlier visits.
    pub fn tuned(&self) -> Winners {
        self.tuned.clone().and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default()
    }

    /// Returns the self-test results of earlier visits.
    pub fn proven(&self) -> Proofs {
        self.proven.clone().and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default()
    }

    /// Converts the options to those of the engine.
    pub fn parsed(&self) -> Result<EngineOptions, JsValue> {
        let backend = self.backend.as_deref().unwrap_or("auto").parse().map_err(error::options)?;
        let webgl_layout = match self.webgl_layout.as_deref() {
            None => None,
            Some("packed") => Some(Layout::Packed),
            Some("r32f") => Some(Layout::R32f),
            Some("bits") => Some(Layout::Bits),
            Some(other) => {
                return Err(error::options(format!("the layout {other:?} is not known; choose packed, r32f or bits")));
            }
        };
        let products = self.webgpu_products.as_deref();
        let webgpu_products = products.map_or(Ok(Products::F32), str::parse).map_err(error::options)?;
        let mut select = SelectOptions {
            backend,
            webgl_layout,
            webgl_max_texture_size: self.webgl_max_texture_size,
            webgpu_max_binding: self.webgpu_max_binding,
            webgpu_products,
            cpu_threads: None,
            candidates: Vec::new(),
            without: Vec::new(),
            tuned: Rc::new(self.tuned()),
            proven: Rc::new(self.proven()),
        };
        self.without.iter().for_each(|name| select.leave_out(name));
        let kv_cache = self.kv_cache.as_deref().map_or(Ok(KvCache::default()), str::parse).map_err(error::options)?;
        let pooling = self.pooling.as_deref().map(str::parse).transpose().map_err(error::options)?;
        let (n_ctx, capacity, max_memory, rate) = (self.n_ctx, self.capacity, self.max_memory, self.rate);
        Ok(EngineOptions {
            select,
            n_ctx,
            capacity,
            kv_cache,
            max_memory,
            pooling,
            stage: None,
            draft: None,
            prepare: true,
            rate,
        })
    }
}
