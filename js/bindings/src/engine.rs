//! A model for JavaScript.

use crate::kept::Kept;
use crate::openai::refused;
use crate::request::{Counters, Request, chat_template};
use anygpu::web::WebHost;
use anygpu::{
    ChatOptions, ChatPrompt, Embedder, Engine, EngineError, Host, LoadTimes, Message, ModelError, Pooling, Progress,
    Proofs, Sessions, ToolChoice, select,
};
use bindings_common::load::LoadOptions;
use bindings_common::source::{JsSource, Source};
use bindings_common::{engine_error as error, json};
use js_sys::{Float32Array, Function, Promise};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

/// Description of a model for people.
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
    loading: LoadTimes,
    compile_ms: f64,
}

/// A model on its backend, with texts or what makes embeddings.
#[wasm_bindgen]
pub struct WasmEngine(pub(crate) Rc<Loaded>);

/// Purpose of the model, with its programs.
pub(crate) enum Work {
    Text(Sessions),
    Embeddings(Embedder),
}

pub(crate) struct Loaded {
    pub engine: Engine,
    /// Absent while it works.
    pub work: RefCell<Option<Work>>,
    /// Texts that the page keeps, by the names of their sessions.
    pub kept: RefCell<HashMap<String, Rc<Kept>>>,
    file_bytes: u64,
    /// Self-test results: those of earlier visits, with what is new.
    proven: Option<Proofs>,
    /// Reading the header, choosing the backend and beginning to compile; and what compiling took after the weights were
    /// there. In milliseconds.
    open_ms: f64,
    compile_ms: f64,
}

/// Loads a model; see `JsSource` for the source. `on_progress(phase, done, total, rung)` is told `header`, `select`,
/// `compile`, `weights`; with `select`, of the rungs that are tried and what came of them, as JSON of reports.
#[wasm_bindgen]
pub async fn load(source: JsSource, options: String, on_progress: Function) -> Result<WasmEngine, JsValue> {
    let options = LoadOptions::read(&options)?;
    let budget = options.session_memory().unwrap_or(Sessions::BUDGET);
    let mut proven = options.proven();
    let options = options.parsed()?;
    let host = Rc::new(WebHost::new()?);
    let source = Source(source);
    let file_bytes = anygpu::ByteSource::len(&source);
    let mut progress = |progress: Progress| {
        let (phase, done, total, rung) = match progress {
            Progress::Header => ("header", 0, file_bytes, None),
            Progress::Selecting => ("select", 0, file_bytes, None),
            Progress::Rung(rung) => ("select", 0, file_bytes, json(&rung).ok()),
            Progress::Compiling => ("compile", 0, file_bytes, None),
            Progress::Weights { done, total } => ("weights", done, total, None),
        };
        let (done, total) = (JsValue::from(done as f64), JsValue::from(total as f64));
        // A listener that throws is no reason to stop loading.
        let _ = on_progress.call4(&JsValue::UNDEFINED, &phase.into(), &done, &total, &rung.into());
    };
    let start = host.now_ms();
    let engine = Engine::load(&source, &options, host, &mut progress).await.map_err(|e| error::engine(&e))?;
    let loaded = engine.host().now_ms();
    let work = work(&engine, budget).await.map_err(|e| error::engine(&e))?;
    let compile_ms = engine.host().now_ms() - loaded;
    let open_ms = (loaded - start - engine.model().load_ms()).max(0.0);
    let (work, kept) = (RefCell::new(Some(work)), RefCell::default());
    let proven = engine.report().proof.clone().map(|proof| {
        proven.add(*proof);
        proven
    });
    Ok(WasmEngine(Rc::new(Loaded { engine, work, kept, file_bytes, proven, open_ms, compile_ms })))
}

/// Compiles the programs that the model is for.
async fn work(engine: &Engine, budget: usize) -> Result<Work, EngineError> {
    if engine.model().recipe().pooling().is_some() {
        let embedder = engine.embedder()?;
        embedder.settle(engine.host()).await?;
        return Ok(Work::Embeddings(embedder));
    }
    engine.model().recipe().makes_text()?;
    let mut sessions = engine.sessions(budget)?;
    sessions.session_mut().settle(engine.host()).await?;
    Ok(Work::Text(sessions))
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

    /// Returns the self-test results for later loads, as JSON; nothing if they have not changed.
    pub fn proven(&self) -> Result<Option<String>, JsValue> {
        self.0.proven.as_ref().map(json).transpose()
    }

    /// Returns the description of the model, as JSON.
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
            loading: engine.model().load_times(),
            compile_ms: self.0.compile_ms,
        })
    }

    /// The backend's counters, as JSON.
    pub fn stats(&self) -> Result<String, JsValue> {
        json(&Counters::from(self.0.engine.backend().stats()))
    }

    /// The tokens of a prompt.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, JsValue> {
        self.0.engine.encode(text).map_err(|e| error::engine(&e))
    }

    /// The tokens of a conversation: messages as OpenAI's API has them, as JSON.
    pub fn encode_chat(&self, messages: &str) -> Result<Vec<u32>, JsValue> {
        chat_template(&self.0.engine)?;
        self.0.engine.encode_chat(&conversation(messages)?).map_err(|e| error::engine(&e))
    }

    /// The prompt of a conversation that is to be generated with these options: `{ tokens, keep, dropped_messages }` as
    /// JSON.
    pub fn chat_prompt(&self, messages: &str, options: &str) -> Result<String, JsValue> {
        let engine = &self.0.engine;
        let mut request = Request::read(options)?;
        let chat = request.chat.take().unwrap_or_default().template(engine, request.held_to.is_some())?;
        let prompt = engine.chat_prompt_with(&chat, &conversation(messages)?, &request.options(engine, 0)?);
        let ChatPrompt { tokens, keep, dropped_messages } = prompt.map_err(|e| error::engine(&e))?;
        json(&serde_json::json!({ "tokens": tokens, "keep": keep, "dropped_messages": dropped_messages }))
    }

    /// Returns the constraint of an answer that must call functions, or the one of this name, in the form that the
    /// module of formats reads.
    pub fn call_form(&self, messages: &str, options: &str, name: Option<String>) -> Result<String, JsValue> {
        let chat = Request::read(options)?.chat.unwrap_or_default();
        let options = chat.options(name.map_or(ToolChoice::Required, ToolChoice::Named));
        let messages = conversation(messages)?;
        let form = chat_template(&self.0.engine)?.call_form(&messages, &options);
        Ok(format!("{{\"calls\":{}}}", json(&form.map_err(|e| error::engine(&e.into()))?)?))
    }

    /// Returns a format for the answer to a conversation, which thoughts may precede, as the module of formats reads it.
    pub fn format_after(&self, messages: &str, options: &str, format: &str) -> Result<String, JsValue> {
        let options = Request::read(options)?.chat.unwrap_or_default().options(ToolChoice::Auto);
        let options = ChatOptions { held: true, ..options };
        let messages = conversation(messages)?;
        let preface = chat_template(&self.0.engine)?.preface(&messages, &options);
        match preface.map_err(|e| error::engine(&e.into()))? {
            Some(preface) => Ok(format!("{{\"after\":[{},{format}]}}", json(&preface)?)),
            None => Ok(format.into()),
        }
    }

    /// Returns the bytes of all tokens, one behind the other, for the module of formats.
    pub fn words(&self) -> Result<Vec<u8>, JsValue> {
        Ok(self.all_words()?.concat())
    }

    /// How many bytes each of the words has.
    pub fn word_lengths(&self) -> Result<Vec<u32>, JsValue> {
        Ok(self.all_words()?.iter().map(|word| word.len() as u32).collect())
    }

    /// The text of tokens.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, JsValue> {
        let tokenizer = self.0.engine.tokenizer().map_err(|e| error::engine(&e))?;
        Ok(tokenizer.decode(tokens, false))
    }

    /// The tokens of a query and a document, for a reranker.
    pub fn encode_pair(&self, query: &str, document: &str) -> Result<Vec<u32>, JsValue> {
        self.0.engine.encode_pair(query, document).map_err(|e| error::engine(&e))
    }

    /// The embedding of a text, of length 1 if `normalize`, and only its first `dimensions` numbers unless that is 0; or its
    /// scores by a reranker. The promise gives a `Float32Array`. One at a time.
    pub fn embed(&self, tokens: Vec<u32>, dimensions: usize, normalize: bool, scores: bool) -> Promise {
        let loaded = self.0.clone();
        future_to_promise(async move {
            let recipe = loaded.engine.model().recipe();
            recipe.check_pooled(scores).map_err(|e| error::engine(&e.into()))?;
            let mut embedder = match loaded.take()? {
                Work::Embeddings(embedder) => embedder,
                other => {
                    return Err(loaded.refuse(other, ModelError::NoPooling { architecture: recipe.architecture() }));
                }
            };
            let embedding = loaded.embed(&mut embedder, &tokens, dimensions, normalize).await;
            loaded.work.replace(Some(Work::Embeddings(embedder)));
            Ok(Float32Array::from(&embedding.map_err(|e| error::engine(&e))?[..]).into())
        })
    }
}

impl WasmEngine {
    fn all_words(&self) -> Result<Vec<Vec<u8>>, JsValue> {
        let tokenizer = self.0.engine.tokenizer().map_err(|e| error::engine(&e))?;
        Ok((0..tokenizer.vocab_len() as u32).map(|id| tokenizer.word(id)).collect())
    }
}

/// The turns of a conversation, from JSON.
fn conversation(messages: &str) -> Result<Vec<Message>, JsValue> {
    anygpu_openai::conversation(&serde_json::from_str(messages).map_err(error::options)?).map_err(refused)
}

impl Loaded {
    fn take(&self) -> Result<Work, JsValue> {
        self.work.take().ok_or_else(|| error::options("the model is at work; wait for its end, or load it twice"))
    }

    /// The texts, of a model that makes such.
    pub fn take_texts(&self) -> Result<Sessions, JsValue> {
        match self.take()? {
            Work::Text(sessions) => Ok(sessions),
            other => Err(self.refuse(other, self.engine.model().recipe().no_text())),
        }
    }

    /// Puts back what is not for the request, and says so.
    fn refuse(&self, work: Work, why: ModelError) -> JsValue {
        self.work.replace(Some(work));
        error::engine(&why.into())
    }

    async fn embed(
        &self,
        embedder: &mut Embedder,
        tokens: &[u32],
        dimensions: usize,
        normalize: bool,
    ) -> Result<Vec<f32>, EngineError> {
        let mut embedding = self.engine.embed(embedder, tokens).await?;
        if dimensions > 0 {
            embedding = embedding.shortened(dimensions)?;
        }
        Ok(if normalize { embedding.normalized() } else { embedding }.values)
    }
}
