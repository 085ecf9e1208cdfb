//! Builder of an engine.

#[cfg(not(target_arch = "wasm32"))]
use std::path::Path;
use std::rc::Rc;

use backend_api::Backend;
#[cfg(not(target_arch = "wasm32"))]
use model::Files;
use model::{ByteSource, Host, KvCache, Pooling};

use crate::draft::DraftModel;
use crate::engine::{Engine, EngineOptions, Progress};
use crate::error::EngineError;
use crate::ladder::{Candidate, Choice, SelectOptions};
#[cfg(not(target_arch = "wasm32"))]
use crate::native::{FileSource, NativeHost, open_files};

/// Loads a model: [`Engine::builder`].
///
/// ```
/// use anygpu::native::block_on;
/// use anygpu::{Choice, Engine, Progress};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
/// #   std::env::set_current_dir("..")?; // from the package to the repository
///     let mut read = 0;
///     let engine = Engine::builder()
///         .backend(Choice::Cpu)
///         .n_ctx(256)
///         .kv_cache("q8_0".parse()?)
///         .progress(|progress| if let Progress::Weights { done, .. } = progress { read = done });
///     let engine = block_on(engine.open("models/gab-q4_0.gguf"))?;
///     assert_eq!(engine.model().recipe().sizes().n_ctx, 256);
/// #   drop(engine);
/// #   assert!(read > 0);
///     Ok(())
/// }
/// ```
#[must_use]
#[derive(Default)]
pub struct EngineBuilder<'p> {
    options: EngineOptions,
    progress: Option<Box<dyn FnMut(Progress) + 'p>>,
}

/// Opens the files of a model, with an error that names the path.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn open_model(path: &Path) -> Result<Files<FileSource>, EngineError> {
    open_files(path).map_err(|error| EngineError::File { path: path.display().to_string(), reason: error.to_string() })
}

#[cfg(not(target_arch = "wasm32"))]
impl Engine {
    /// Loads a model from disk: [`Engine::load`] with the files of [`open_files`](crate::native::open_files) and a [`NativeHost`]. For a split
    /// model, any of its files can be named.
    ///
    /// *Errors*: a file cannot be opened; as [`Engine::load`].
    pub async fn open(path: impl AsRef<Path>, options: &EngineOptions) -> Result<Engine, EngineError> {
        let source = open_model(path.as_ref())?;
        Engine::load(&source, options, Rc::new(NativeHost::default()), &mut |_| {}).await
    }
}

impl Engine {
    /// Makes a builder. By default it loads the model on the fastest device that computes correctly.
    pub fn builder<'p>() -> EngineBuilder<'p> {
        EngineBuilder::default()
    }
}

impl<'p> EngineBuilder<'p> {
    /// Replaces all options.
    pub fn options(self, options: EngineOptions) -> EngineBuilder<'p> {
        EngineBuilder { options, ..self }
    }

    /// Sets which backend is used: [`SelectOptions::backend`].
    pub fn backend(mut self, backend: Choice) -> EngineBuilder<'p> {
        self.options.select.backend = backend;
        self
    }

    /// Sets which backends may be chosen, and how they are opened: [`EngineOptions::select`].
    pub fn select(mut self, select: SelectOptions) -> EngineBuilder<'p> {
        self.options.select = select;
        self
    }

    /// Adds an own candidate, which is tried before those of this crate: [`SelectOptions::candidates`].
    pub fn candidate(mut self, candidate: Candidate) -> EngineBuilder<'p> {
        self.options.select.candidates.push(candidate);
        self
    }

    /// Sets the size of the context in tokens: [`EngineOptions::n_ctx`].
    pub fn n_ctx(mut self, tokens: usize) -> EngineBuilder<'p> {
        self.options.n_ctx = Some(tokens);
        self
    }

    /// Takes the memory for so many tokens at once: [`EngineOptions::capacity`].
    pub fn capacity(mut self, tokens: usize) -> EngineBuilder<'p> {
        self.options.capacity = Some(tokens);
        self
    }

    /// Sets the dtype of the KV cache: [`EngineOptions::kv_cache`].
    pub fn kv_cache(mut self, kv_cache: KvCache) -> EngineBuilder<'p> {
        self.options.kv_cache = kv_cache;
        self
    }

    /// Limits the memory for weights and states: [`EngineOptions::max_memory`].
    ///
    /// *Units*: bytes.
    pub fn max_memory(mut self, bytes: u64) -> EngineBuilder<'p> {
        self.options.max_memory = Some(bytes);
        self
    }

    /// Sets a small model of the same vocabulary that drafts tokens: [`EngineOptions::draft`].
    pub fn draft(mut self, source: Rc<dyn ByteSource>) -> EngineBuilder<'p> {
        self.options.draft = Some(DraftModel(source));
        self
    }

    /// Loads an embedding model with this pooling: [`EngineOptions::pooling`].
    pub fn pooling(mut self, pooling: Pooling) -> EngineBuilder<'p> {
        self.options.pooling = Some(pooling);
        self
    }

    /// Calls `on_progress` while the model is loaded.
    pub fn progress(mut self, on_progress: impl FnMut(Progress) + 'p) -> EngineBuilder<'p> {
        self.progress = Some(Box::new(on_progress));
        self
    }

    /// Loads a model from disk: [`Engine::open`].
    ///
    /// *Errors*: as [`Engine::open`].
    #[cfg(not(target_arch = "wasm32"))]
    pub async fn open(self, path: impl AsRef<Path>) -> Result<Engine, EngineError> {
        let source = open_model(path.as_ref())?;
        self.load(&source, Rc::new(NativeHost::default())).await
    }

    /// Loads a model from any source: [`Engine::load`].
    ///
    /// *Errors*: as [`Engine::load`].
    pub async fn load(self, source: &dyn ByteSource, host: Rc<dyn Host>) -> Result<Engine, EngineError> {
        let EngineBuilder { options, progress } = self;
        let mut progress = progress.unwrap_or_else(|| Box::new(|_| {}));
        Engine::load(source, &options, host, &mut progress).await
    }

    /// Loads a model on a backend that the caller has opened: [`Engine::with_backend`].
    ///
    /// *Errors*: as [`Engine::with_backend`].
    pub async fn load_on(
        self,
        backend: Box<dyn Backend>,
        source: &dyn ByteSource,
        host: Rc<dyn Host>,
    ) -> Result<Engine, EngineError> {
        let EngineBuilder { options, progress } = self;
        let mut progress = progress.unwrap_or_else(|| Box::new(|_| {}));
        Engine::with_backend(backend, source, &options, host, &mut progress).await
    }
}
