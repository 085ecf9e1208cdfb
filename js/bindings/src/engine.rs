//! A model for JavaScript.

use crate::error;
use crate::request::{Counters, Request, answer};
use crate::source::{JsSource, Source};
use anygpu::web::WebHost;
use anygpu::{
    ChatPrompt, Embedder, Engine, EngineError, EngineOptions, GenerateOptions, Head, Host, KvCache, Layout, Message,
    ModelError, Pooling, Products, Progress, Sampling, SelectOptions, Session, Snapshot, Winners, select,
};
use bindings_common::{WasmCancel, json};
use js_sys::{Float32Array, Function, Promise, Uint8Array, Uint32Array};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

/// Tokens of a short prompt, whose kernels are those of decoding, and of a longer one, whose kernels are those of any other.
const PROMPTS: [usize; 2] = [2, 16];

/// How to load.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadOptions {
    backend: Option<String>,
    n_ctx: Option<usize>,
    kv_cache: Option<String>,
    max_memory: Option<u64>,
    pooling: Option<String>,
    webgl_layout: Option<String>,
    webgl_max_texture_size: Option<u32>,
    webgpu_max_binding: Option<u64>,
    webgpu_products: Option<String>,
    /// What was kept of tuning; another version's is of no use, and no reason to fail.
    tuned: Option<serde_json::Value>,
}

impl LoadOptions {
    fn parse(text: &str) -> Result<EngineOptions, JsValue> {
        LoadOptions::read(text)?.parsed()
    }

    /// From JSON.
    pub fn read(text: &str) -> Result<LoadOptions, JsValue> {
        serde_json::from_str(text).map_err(error::options)
    }

    /// What is known of devices that were tuned.
    pub fn tuned(&self) -> Winners {
        self.tuned.clone().and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default()
    }

    /// The same, as the engine takes it.
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
        let select = SelectOptions {
            backend,
            webgl_layout,
            webgl_max_texture_size: self.webgl_max_texture_size,
            webgpu_max_binding: self.webgpu_max_binding,
            webgpu_products,
            cpu_threads: None,
            without: Vec::new(),
            tuned: Rc::new(self.tuned()),
        };
        let kv_cache = self.kv_cache.as_deref().map_or(Ok(KvCache::default()), str::parse).map_err(error::options)?;
        let pooling = self.pooling.as_deref().map(str::parse).transpose().map_err(error::options)?;
        Ok(EngineOptions { select, n_ctx: self.n_ctx, kv_cache, max_memory: self.max_memory, pooling })
    }
}

/// What a person wants to know of a model.
#[derive(Serialize)]
struct Info<'a> {
    architecture: &'static str,
    name: Option<&'a str>,
    n_ctx: usize,
    vocab: usize,
    file_bytes: u64,
    has_tokenizer: bool,
    has_chat: bool,
    pooling: Option<&'static str>,
    backend: &'static str,
    adapter: &'a str,
    software: bool,
    open_ms: f64,
    load_ms: f64,
    compile_ms: f64,
}

/// A model on its backend, with one text or what makes embeddings.
#[wasm_bindgen]
pub struct WasmEngine(Rc<Loaded>);

/// What the model is for.
enum Work {
    Text(Session),
    Embeddings(Embedder),
}

struct Loaded {
    engine: Engine,
    /// Absent while it works.
    work: RefCell<Option<Work>>,
    /// What is in the context of the text that was generated last, and how its tokens were chosen.
    text: RefCell<(Vec<u32>, Option<Sampling>)>,
    file_bytes: u64,
    /// Reading the header and choosing the backend, and compiling. In milliseconds.
    open_ms: f64,
    compile_ms: f64,
}

/// Loads a model; see `JsSource` for the source. `on_progress(phase, done, total)` is told `header`, `select`, `weights`.
#[wasm_bindgen]
pub async fn load(source: JsSource, options: String, on_progress: Function) -> Result<WasmEngine, JsValue> {
    let options = LoadOptions::parse(&options)?;
    let host = Rc::new(WebHost::new()?);
    let source = Source(source);
    let file_bytes = anygpu::ByteSource::len(&source);
    let mut progress = |progress: Progress| {
        let (phase, done, total) = match progress {
            Progress::Header => ("header", 0, file_bytes),
            Progress::Selecting => ("select", 0, file_bytes),
            Progress::Weights { done, total } => ("weights", done, total),
        };
        // A listener that throws is no reason to stop loading.
        let _ = on_progress.call3(&JsValue::UNDEFINED, &phase.into(), &(done as f64).into(), &(total as f64).into());
    };
    let start = host.now_ms();
    let engine = Engine::load(&source, &options, host, &mut progress).await.map_err(|e| error::engine(&e))?;
    let loaded = engine.host().now_ms();
    let work = work(&engine).await.map_err(|e| error::engine(&e))?;
    let compile_ms = engine.host().now_ms() - loaded;
    let open_ms = (loaded - start - engine.model().load_ms()).max(0.0);
    let (work, text) = (RefCell::new(Some(work)), RefCell::default());
    Ok(WasmEngine(Rc::new(Loaded { engine, work, text, file_bytes, open_ms, compile_ms })))
}

/// What the model is for, with programs of short texts.
async fn work(engine: &Engine) -> Result<Work, EngineError> {
    // Shaders are compiled now, so that the page is not held up when it shows text. In software that takes seconds, so what
    // a longer prompt needs waits for one.
    let now = if engine.backend().info().software { &PROMPTS[..1] } else { &PROMPTS };
    if engine.model().recipe().pooling().is_some() {
        let mut embedder = engine.embedder()?;
        now.iter().try_for_each(|tokens| embedder.prepare(*tokens))?;
        embedder.settle(engine.host()).await?;
        return Ok(Work::Embeddings(embedder));
    }
    let mut session = engine.session()?;
    now.iter().try_for_each(|tokens| session.prepare_prompt(*tokens, Head::Greedy))?;
    session.settle(engine.host()).await?;
    Ok(Work::Text(session))
}

/// Which backends work here, as JSON.
#[wasm_bindgen]
pub async fn probe(options: String) -> Result<String, JsValue> {
    let options = LoadOptions::parse(&options)?;
    let host = WebHost::new()?;
    match select(None, &options.select, &host).await {
        Ok((_, report)) => json(&report),
        Err(error) => Err(error::engine(&error)),
    }
}

#[wasm_bindgen]
impl WasmEngine {
    /// The selection report, as JSON.
    pub fn report(&self) -> Result<String, JsValue> {
        json(self.0.engine.report())
    }

    /// What a person wants to know of the model, as JSON.
    pub fn info(&self) -> Result<String, JsValue> {
        let engine = &self.0.engine;
        let (recipe, backend) = (engine.model().recipe(), engine.backend().info());
        json(&Info {
            architecture: recipe.architecture(),
            name: engine.metadata().get("general.name").ok().flatten(),
            n_ctx: recipe.sizes().n_ctx,
            vocab: recipe.sizes().n_vocab,
            file_bytes: self.0.file_bytes,
            has_tokenizer: engine.tokenizer().is_ok(),
            has_chat: engine.has_chat_template(),
            pooling: recipe.pooling().map(Pooling::name),
            backend: backend.name,
            adapter: &backend.adapter,
            software: backend.software,
            open_ms: self.0.open_ms,
            load_ms: engine.model().load_ms(),
            compile_ms: self.0.compile_ms,
        })
    }

    /// The backend's counters, as JSON.
    pub fn stats(&self) -> Result<String, JsValue> {
        json(&Counters::from(self.0.engine.backend().stats()))
    }

    /// The tokens of the text that was generated last, or imported, as far as they are in the context.
    pub fn text(&self) -> Vec<u32> {
        self.0.text.borrow().0.clone()
    }

    /// The tokens of a prompt.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, JsValue> {
        self.0.engine.encode(text).map_err(|e| error::engine(&e))
    }

    /// The tokens of a conversation: `[{ role, content }]` as JSON.
    pub fn encode_chat(&self, messages: &str) -> Result<Vec<u32>, JsValue> {
        self.0.engine.encode_chat(&conversation(messages)?).map_err(|e| error::engine(&e))
    }

    /// The prompt of a conversation that is to be generated with these options: `{ tokens, keep, dropped_messages }` as
    /// JSON.
    pub fn chat_prompt(&self, messages: &str, options: &str) -> Result<String, JsValue> {
        let engine = &self.0.engine;
        let request = Request::read(options)?;
        let prompt = engine.chat_prompt(&conversation(messages)?, &request.options(engine, 0)?);
        let ChatPrompt { tokens, keep, dropped_messages } = prompt.map_err(|e| error::engine(&e))?;
        json(&serde_json::json!({ "tokens": tokens, "keep": keep, "dropped_messages": dropped_messages }))
    }

    /// The text of tokens.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, JsValue> {
        let tokenizer = self.0.engine.tokenizer().map_err(|e| error::engine(&e))?;
        Ok(tokenizer.decode(tokens, false))
    }

    /// Generates what follows `tokens`; `on_piece(token, text, overflow)` is told of each token as it comes, and, as
    /// JSON, of tokens that make room. The promise gives JSON. One generation at a time.
    pub fn generate(&self, tokens: Vec<u32>, options: &str, on_piece: Function, cancel: &WasmCancel) -> Promise {
        let (loaded, request, cancel) = (self.0.clone(), Request::read(options), cancel.flag());
        future_to_promise(async move {
            let options = request?.options(&loaded.engine, loaded.engine.kept(&tokens))?;
            let options = GenerateOptions { cancel: Some(cancel), ..options };
            let mut session = loaded.take_text()?;
            let mut told = |piece: anygpu::Piece<'_>| {
                let token = piece.token.map_or(JsValue::UNDEFINED, JsValue::from);
                let overflow = piece.overflow.and_then(|overflow| json(&overflow).ok());
                let overflow = overflow.map_or(JsValue::UNDEFINED, JsValue::from);
                // A listener that throws is no reason to lose what comes after.
                let _ = on_piece.call3(&JsValue::UNDEFINED, &token, &piece.text.into(), &overflow);
            };
            let generation = loaded.engine.generate(&mut session, &tokens, &options, &mut told).await;
            loaded.work.replace(Some(Work::Text(session)));
            if let Ok(generation) = &generation {
                let fresh = generation.tokens.get(options.done.len()..).unwrap_or_default();
                let context = generation.context(&[&tokens[..], fresh].concat()).into_owned();
                loaded.text.replace((context, Some(options.sampling)));
            }
            let generation = generation.map_err(|e| error::engine(&e))?;
            Ok(answer(tokens.len(), &generation)?.into())
        })
    }

    /// The text that was generated last, with what was computed of it: from a position on, if an earlier snapshot has the
    /// rest. The promise gives a `Uint8Array`.
    pub fn export(&self, from: usize) -> Promise {
        let loaded = self.0.clone();
        future_to_promise(async move {
            let mut session = loaded.take_text()?;
            let (text, sampling) = loaded.text.borrow().clone();
            let snapshot = session.export(&text, from, loaded.engine.host()).await;
            loaded.work.replace(Some(Work::Text(session)));
            let mut snapshot = snapshot.map_err(|e| error::engine(&e.into()))?;
            sampling.into_iter().for_each(|sampling| snapshot.set_sampling(sampling));
            Ok(Uint8Array::from(&snapshot.to_bytes()[..]).into())
        })
    }

    /// Takes a text that was exported in the place of this one. The promise gives its tokens.
    pub fn import(&self, bytes: Vec<u8>) -> Promise {
        let loaded = self.0.clone();
        future_to_promise(async move {
            let snapshot = Snapshot::from_bytes(&bytes).map_err(|e| error::engine(&ModelError::from(e).into()))?;
            drop(bytes);
            let mut session = loaded.take_text()?;
            let imported = session.import(&snapshot, loaded.engine.host()).await;
            loaded.work.replace(Some(Work::Text(session)));
            imported.map_err(|e| error::engine(&e.into()))?;
            let tokens = snapshot.tokens();
            loaded.text.replace((tokens.to_vec(), snapshot.header().sampling));
            Ok(Uint32Array::from(tokens).into())
        })
    }

    /// The embedding of a text, of length 1 if `normalize`, and only its first `dimensions` numbers unless that is 0. The
    /// promise gives a `Float32Array`. One at a time.
    pub fn embed(&self, tokens: Vec<u32>, dimensions: usize, normalize: bool) -> Promise {
        let loaded = self.0.clone();
        future_to_promise(async move {
            let mut embedder = match loaded.take()? {
                Work::Embeddings(embedder) => embedder,
                other => return Err(loaded.refuse(other, |architecture| ModelError::NoPooling { architecture })),
            };
            let embedding = loaded.embed(&mut embedder, &tokens, dimensions, normalize).await;
            loaded.work.replace(Some(Work::Embeddings(embedder)));
            Ok(Float32Array::from(&embedding.map_err(|e| error::engine(&e))?[..]).into())
        })
    }
}

/// The turns of a conversation, from JSON.
fn conversation(messages: &str) -> Result<Vec<Message>, JsValue> {
    #[derive(Deserialize)]
    struct Turn {
        role: String,
        content: String,
    }
    let turns: Vec<Turn> = serde_json::from_str(messages).map_err(error::options)?;
    Ok(turns.into_iter().map(|turn| Message::new(turn.role, turn.content)).collect())
}

impl Loaded {
    fn take(&self) -> Result<Work, JsValue> {
        self.work.take().ok_or_else(|| error::options("the model is at work; wait for its end, or load it twice"))
    }

    /// The session, of a model that makes text.
    fn take_text(&self) -> Result<Session, JsValue> {
        match self.take()? {
            Work::Text(session) => Ok(session),
            other => Err(self.refuse(other, |architecture| ModelError::NoText { architecture })),
        }
    }

    /// Puts back what is not for the request, and says so.
    fn refuse(&self, work: Work, why: impl Fn(&'static str) -> ModelError) -> JsValue {
        self.work.replace(Some(work));
        error::engine(&why(self.engine.model().recipe().architecture()).into())
    }

    async fn embed(
        &self,
        embedder: &mut Embedder,
        tokens: &[u32],
        dimensions: usize,
        normalize: bool,
    ) -> Result<Vec<f32>, EngineError> {
        if embedder.pooling() == Pooling::None {
            let why = "this model makes a vector of each token, not of a text; load it with a pooling, such as mean";
            return Err(ModelError::Options(why.into()).into());
        }
        let mut embedding = self.engine.embed(embedder, tokens).await?;
        if dimensions > 0 {
            embedding = embedding.shortened(dimensions)?;
        }
        Ok(if normalize { embedding.normalized() } else { embedding }.values)
    }
}
