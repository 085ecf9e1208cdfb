//! An engine on a thread of its own, for servers, windows and async runtimes. The device's objects stay on that thread;
//! a [`Handle`] to it can be cloned and sent to any thread.
//!
//! ```
//! use anygpu::handle::{Generate, Handle, Limits, Prompt};
//! use anygpu::native::block_on;
//! use anygpu::{Choice, EngineOptions, SelectOptions};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   std::env::set_current_dir("..")?; // from the package to the repository
//!     let options = || EngineOptions {
//!         select: SelectOptions { backend: Choice::Cpu, ..Default::default() },
//!         ..Default::default()
//!     };
//!     let (handle, _) = block_on(Handle::open("models/gab-q4_0.gguf", options, Limits::default()))?;
//!     // An answer is a `Stream`; any async runtime can await it, and dropping it cancels the request.
//!     let story = handle.generate(Generate::new(Prompt::Text("Once upon a time".into())).with(|options| {
//!         options.max_tokens = Some(64);
//!     }))?;
//!     let poem = handle.generate(Generate::new(Prompt::Text("One day".into())))?;
//!     println!("{}", block_on(story.whole())?.text);
//!     println!("{}", block_on(poem.whole())?.text);
//!     Ok(())
//! }
//! ```
//!
//! Answers are `Send`, so a task of any runtime can await them. With tokio:
//!
//! ```
//! # use anygpu::handle::{Generate, Handle, Limits, Prompt, Told};
//! # use anygpu::{Choice, EngineOptions, SelectOptions};
//! use futures_util::StreamExt;
//!
//! # fn options() -> EngineOptions {
//! #   EngineOptions { select: SelectOptions { backend: Choice::Cpu, ..Default::default() }, ..Default::default() }
//! # }
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   std::env::set_current_dir("..")?;
//!     let (handle, _) = Handle::open("models/gab-q4_0.gguf", options, Limits::default()).await?;
//!     let mut answer = handle.generate(Generate::new(Prompt::Text("One day".into())))?;
//!     let told = tokio::spawn(async move {
//!         while let Some(told) = answer.next().await {
//!             if let Told::Piece { text, .. } = told? {
//!                 print!("{text}");
//!             }
//!         }
//!         Ok::<_, anygpu::EngineError>(())
//!     });
//!     Ok(told.await??)
//! }
//! ```
//!
//! A window's event loop must not block. A thread waits instead and wakes the loop with each event. With winit, `wake`
//! is `move |told| drop(proxy.send_event(told))` for an `EventLoopProxy`:
//!
//! ```
//! # use anygpu::handle::{Answer, Told};
//! # use anygpu::native::block_on;
//! use futures_util::StreamExt;
//!
//! fn tell(mut answer: Answer, wake: impl Fn(Told) + Send + 'static) -> std::thread::JoinHandle<()> {
//!     std::thread::spawn(move || {
//!         block_on(async {
//!             while let Some(Ok(told)) = answer.next().await {
//!                 wake(told);
//!             }
//!         });
//!     })
//! }
//! ```
//!
//! Several sequences take turns of a few tokens each, so a long answer does not block the others. Batching and turns do
//! not change what is sampled. A prompt reuses the longest beginning that an earlier sequence has computed.

mod actor;
mod answer;
pub mod elsewhere;
mod prompter;
mod turns;

use std::future::Future;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use futures_channel::oneshot;
use model::{
    ByteSource, ChatError, ChatOptions, ChatTemplate, GenerateOptions, KvCache, Message, Metadata, Overflow, Parts,
};
use model::{Pooling, Recipe, Tokenizer, TokenizerError};

use crate::builder::open_model;
use crate::engine::{Engine, EngineOptions};
use crate::error::EngineError;
use crate::native::{NativeHost, block_on, seconds};
use actor::{Actor, Job};
pub use answer::{Answer, Outcome, Told};
pub(crate) use prompter::Prompter;

/// Limits on the requests that are accepted.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most requests at a time, waiting ones included; further ones are refused.
    pub requests: usize,
    /// Most sequences that take turns; other requests wait until one of them has ended. If [`Self::session_memory`] has
    /// no room for that many, fewer take turns.
    pub begun: usize,
    /// Tokens of a turn while other requests wait.
    pub slice: usize,
    /// Most host memory for the states of sequences that wait for their turn or for the next question; by default as
    /// much as `begun` sequences can need, and at least [`Sessions::BUDGET`](crate::Sessions::BUDGET).
    ///
    /// *Units*: bytes.
    pub session_memory: Option<usize>,
    /// Most device memory for the KV caches of sequences that advance in the same steps. Where it is too little for the whole
    /// context of each, short ones do, and long ones in smaller groups that take turns. By default as much as the weights take,
    /// and at least 1 GiB, or 2 GiB on the CPU.
    ///
    /// *Units*: bytes.
    pub batch_memory: Option<usize>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { requests: 64, begun: 4, slice: 16, session_memory: None, batch_memory: None }
    }
}

/// Error of a request to a [`Handle`].
#[derive(Debug, thiserror::Error)]
pub enum HandleError {
    /// An error of the engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The limit of concurrent requests is reached.
    #[error("{requests} requests are being answered or wait, and no more are taken on; try again later")]
    Busy {
        /// The limit.
        requests: usize,
    },
    /// The engine's thread has ended.
    #[error("the engine's thread has ended; open the model again")]
    Stopped,
}

/// Input to answer, continue, embed or score.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompt {
    /// A text; an empty one stands for the token that begins a text (BOS).
    Text(String),
    /// The tokens of a text.
    Tokens(Vec<u32>),
    /// A conversation; the model writes the next turn.
    Chat(Vec<Message>),
    /// A query and a document, for a reranker.
    Pair(String, String),
    /// A prompt that [`Handle::encode`] has tokenized.
    Encoded(Arc<Encoded>),
}

/// A tokenized prompt, with what is already known about its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    tokens: Vec<u32>,
    /// Tokens at the beginning that stay when older tokens are dropped to make room.
    keep: usize,
    dropped_messages: usize,
    parts: Parts,
    /// See [`GenerateOptions::shown`].
    shown: Vec<u32>,
    /// Whether the answer must call tools.
    demands: bool,
}

impl Encoded {
    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

type Configure = Box<dyn FnOnce(&mut GenerateOptions) + Send>;

/// A request for generated text.
pub struct Generate {
    prompt: Prompt,
    keep: Option<usize>,
    key: Option<u64>,
    user: u64,
    chat: ChatOptions,
    configure: Configure,
}

impl Generate {
    /// Makes a request with the options that suit the backend. Unless [`Self::with`] limits the tokens, the answer may
    /// fill the context.
    pub fn new(prompt: Prompt) -> Generate {
        Generate { prompt, keep: None, key: None, user: 0, chat: ChatOptions::default(), configure: Box::new(|_| ()) }
    }

    /// Changes the generation options. `configure` runs on the engine's thread, after those of earlier calls. The
    /// engine overwrites [`GenerateOptions::cancel`] and [`GenerateOptions::done`].
    #[must_use]
    pub fn with(mut self, configure: impl FnOnce(&mut GenerateOptions) + Send + 'static) -> Generate {
        let before = self.configure;
        self.configure = Box::new(|options| {
            before(options);
            configure(options);
        });
        self
    }

    /// Sets the options of a conversation: tools, and variables of its template. [`Told::Begun`] brings the parser that
    /// splits the answer into its parts.
    #[must_use]
    pub fn chatting(mut self, chat: ChatOptions) -> Generate {
        self.chat = chat;
        self
    }

    /// Tags the request with an idempotency key. Where answers are computed [elsewhere], a repeated request with the
    /// same key gets the answer that was already begun. A local engine ignores the key and answers anew.
    #[must_use]
    pub fn keyed(mut self, key: u64) -> Generate {
        self.key = Some(key);
        self
    }

    /// Tags the request with a user id. Where answers are computed [elsewhere], users are served fairly, however many
    /// requests each one has. A local engine ignores the id and serves requests in their order.
    #[must_use]
    pub fn by(mut self, user: u64) -> Generate {
        self.user = user;
        self
    }

    /// Sets how many tokens at the beginning stay when older tokens are dropped to make room. The default is the part
    /// of the prompt that holds for all turns of a conversation. Only for [`Overflow::Shift`].
    #[must_use]
    pub fn keeping(mut self, tokens: usize) -> Generate {
        self.keep = Some(tokens);
        self
    }
}

/// A request for embeddings.
#[derive(Debug, Clone, PartialEq)]
pub struct Embed {
    /// Texts to embed.
    pub texts: Vec<Prompt>,
    /// Shortens each vector to so many numbers, for models that were trained for it (Matryoshka embeddings).
    pub dimensions: Option<usize>,
    /// Scales vectors to length 1.
    pub normalize: bool,
    /// Asks for the scores of a reranker, rather than vectors.
    pub scores: bool,
}

/// Embeddings of texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// One vector for each text, or its scores.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens of all texts together.
    pub prompt_tokens: usize,
}

/// Constant facts about a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// `general.name` of the file.
    pub name: Option<String>,
    /// The architecture.
    pub architecture: &'static str,
    /// Tokens that fit the context.
    pub n_ctx: usize,
    /// Dtype of the KV cache; absent if a remote engine chooses it.
    pub kv_cache: Option<KvCache>,
    /// Most sequences that advance in the same steps.
    pub together: usize,
    /// Pooling of an embedding model; absent for a language model.
    pub pooling: Option<Pooling>,
    /// See [`Engine::has_chat_template`].
    pub has_chat_template: bool,
    /// Time that loading the weights took.
    ///
    /// *Units*: milliseconds.
    pub load_ms: f64,
}

impl Facts {
    /// Takes the facts of a file; `can_chat` says whether its template and its tokenizer can be used.
    fn of(metadata: &Metadata, recipe: &Recipe, can_chat: bool) -> Facts {
        Facts {
            name: metadata.get::<&str>("general.name").ok().flatten().map(Into::into),
            architecture: recipe.architecture(),
            n_ctx: recipe.sizes().n_ctx,
            kv_cache: Some(recipe.kv_cache()),
            together: 1,
            pooling: recipe.pooling(),
            has_chat_template: can_chat && metadata.value("tokenizer.chat_template").is_some(),
            load_ms: 0.0,
        }
    }
}

/// Current load of an engine, as of its last turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The backend in use.
    pub backend: &'static str,
    /// Device and driver as they name themselves.
    pub adapter: String,
    /// Sequences that take turns.
    pub begun: usize,
    /// Requests that wait to begin.
    pub waiting: usize,
    /// Memory that is allocated on the device.
    ///
    /// *Units*: bytes.
    pub device_memory: u64,
}

/// A model for [`Handle::spawn`], with its source and options to load it again if its device is lost.
pub struct Opened {
    /// The model.
    pub engine: Engine,
    /// Source of its file.
    pub source: Box<dyn ByteSource>,
    /// Options that it was loaded with.
    pub options: EngineOptions,
}

#[derive(Debug, Default)]
struct Shared {
    /// Accepted requests that have not ended.
    requests: AtomicUsize,
    status: Mutex<Status>,
}

impl Shared {
    /// Locks the status. A poisoned lock is used all the same: no panic can leave the status half-written.
    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a request in the count of accepted ones; dropping it frees the place.
struct Place(Arc<Shared>);

impl Place {
    fn take(shared: &Arc<Shared>, most: usize) -> Result<Place, HandleError> {
        let place = Place(shared.clone());
        let requests = shared.requests.fetch_add(1, Ordering::Relaxed);
        if requests >= most { Err(HandleError::Busy { requests: most }) } else { Ok(place) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A model on a thread of its own. When the last clone is dropped, the thread answers the remaining requests and ends.
#[derive(Clone)]
pub struct Handle {
    jobs: Sender<Job>,
    shared: Arc<Shared>,
    facts: Arc<Facts>,
    texts: Arc<Texts>,
    limits: Limits,
}

/// The tokenizer and the chat template of a model, for use on any thread.
#[derive(Debug)]
pub(crate) struct Texts {
    pub tokenizer: Result<Arc<Tokenizer>, TokenizerError>,
    pub chat: Result<Arc<ChatTemplate>, ChatError>,
    /// See [`Tokenizer::most_bytes`].
    pub most_bytes: Option<usize>,
}

impl Texts {
    /// Wraps the tokenizer and the template of a file.
    pub fn new(tokenizer: Result<Arc<Tokenizer>, TokenizerError>, chat: Result<ChatTemplate, ChatError>) -> Texts {
        let most_bytes = tokenizer.as_ref().ok().and_then(|tokenizer| tokenizer.most_bytes());
        Texts { tokenizer, chat: chat.map(Arc::new), most_bytes }
    }
}

impl Handle {
    /// Loads a model from disk, as [`Engine::open`] does, on a new thread. `options` runs there, since options are not
    /// `Send`. Also returns the thread, which ends after the last handle was dropped. Programs should join it before
    /// they exit: a driver that is unloaded meanwhile may crash.
    ///
    /// *Errors*: as [`Engine::open`]; the system cannot start a thread.
    pub fn open(
        path: impl Into<PathBuf>,
        options: impl Fn() -> EngineOptions + Send + 'static,
        limits: Limits,
    ) -> impl Future<Output = Result<(Handle, JoinHandle<()>), HandleError>> {
        let path = path.into();
        let open = move || {
            let source = open_model(&path)?;
            let options = options();
            let host = Rc::new(NativeHost::default());
            let engine = block_on(Engine::load(&source, &options, host, &mut |_| {}))?;
            Ok::<_, HandleError>(Opened { engine, source: Box::new(source), options })
        };
        Handle::spawn(open, limits)
    }

    /// Runs a model that `open` loads on the new thread. `open` is called again if an embedding model's device is lost.
    ///
    /// *Errors*: those of `open`; the system cannot start a thread.
    pub fn spawn<E: From<HandleError> + Send + 'static>(
        open: impl FnMut() -> Result<Opened, E> + Send + 'static,
        limits: Limits,
    ) -> impl Future<Output = Result<(Handle, JoinHandle<()>), E>> {
        let (jobs, received) = mpsc::channel();
        let (ready, loaded) = oneshot::channel();
        let shared: Arc<Shared> = Arc::default();
        let on_thread = shared.clone();
        let begin = move || match Actor::new(open, limits, on_thread) {
            Ok(mut actor) => {
                // Loading was given up if nobody receives this.
                if ready.send(Ok((actor.facts(), actor.texts()))).is_ok() {
                    actor.run(&received);
                }
            }
            Err(error) => drop(ready.send(Err(error))),
        };
        let thread = thread::Builder::new().name("anygpu".into()).spawn(begin);
        async move {
            let thread = thread.map_err(|_| HandleError::Stopped)?;
            let (facts, texts) = loaded.await.map_err(|_| HandleError::Stopped)??;
            Ok((Handle { jobs, shared, facts: Arc::new(facts), texts: Arc::new(texts), limits }, thread))
        }
    }

    /// Returns the constant facts about the model.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns the tokenizer, if the file has a usable one.
    pub fn tokenizer(&self) -> Option<&Arc<Tokenizer>> {
        self.texts.tokenizer.as_ref().ok()
    }

    /// Returns the chat template, if the file has a usable one.
    pub fn chat(&self) -> Option<&Arc<ChatTemplate>> {
        self.texts.chat.as_ref().ok()
    }

    /// Returns the current load.
    pub fn status(&self) -> Status {
        self.shared.status().clone()
    }

    /// Returns the number of requests that are being answered or wait.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Tokenizes a prompt on the calling thread, so that a long one does not hold up the engine's thread. If `overflow`
    /// is [`Overflow::Shift`], the oldest turns of a conversation are left out so that `room` tokens are free for the
    /// answer. A request with this prompt ignores its own [`Generate::chatting`].
    ///
    /// *Errors*: the model does not have a tokenizer or template, or the template fails; the text is longer than any
    /// prompt that fits the context.
    pub fn encode(
        &self,
        prompt: &Prompt,
        chat: &ChatOptions,
        overflow: Overflow,
        room: usize,
    ) -> Result<Encoded, EngineError> {
        let (tokenizer, template) = (self.texts.tokenizer.as_ref(), self.texts.chat.as_ref());
        let template = template.map(|template| {
            let mut template = (**template).clone();
            template.set_now(seconds());
            template
        });
        let prompter = Prompter {
            tokenizer: tokenizer.map(|tokenizer| &**tokenizer),
            chat: template.as_ref().map_err(|error| *error),
            n_ctx: self.facts.n_ctx,
            most_bytes: self.texts.most_bytes,
        };
        prompter.encode(prompt, chat, overflow, room)
    }

    /// Requests text. The answer begins with [`Told::Begun`] once the request was checked; dropping it cancels.
    ///
    /// *Errors*: the limit of requests is reached; the thread has ended. All other errors come through the answer.
    pub fn generate(&self, request: Generate) -> Result<Answer, HandleError> {
        let place = Place::take(&self.shared, self.limits.requests)?;
        let (told, answer) = answer::channel();
        self.jobs.send(Job::Generate { request, told, place }).map_err(|_| HandleError::Stopped)?;
        Ok(answer)
    }

    /// Requests embeddings; dropping the future cancels.
    ///
    /// *Errors*: the limit of requests is reached; the thread has ended. All other errors come through the future.
    pub fn embed(
        &self,
        request: Embed,
    ) -> Result<impl Future<Output = Result<Embedded, HandleError>> + Send + 'static, HandleError> {
        let place = Place::take(&self.shared, self.limits.requests)?;
        let (told, answer) = oneshot::channel();
        self.jobs.send(Job::Embed { request, told, place }).map_err(|_| HandleError::Stopped)?;
        Ok(async move { answer.await.unwrap_or(Err(HandleError::Stopped)) })
    }
}

#[cfg(test)]
mod tests;
