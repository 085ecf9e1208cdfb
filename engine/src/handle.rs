//! An engine on a thread of its own, for servers, windows and async runtimes: what belongs to a device stays on one
//! thread, and a [`Handle`] to it can be cloned and sent to any.
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
//!     // An answer is a `Stream`; any async runtime can wait for it, and dropping it cancels.
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
//! Answers can be sent, so that a task of any runtime may wait for them. With tokio:
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
//! A window must not wait. A thread does, and wakes its loop with what it is told; with winit `wake` is
//! `move |told| drop(proxy.send_event(told))`, of an `EventLoopProxy`:
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
//! Several texts take turns, a few tokens each, so that a long answer keeps nobody waiting; what is drawn does not depend
//! on that. Of what earlier texts have in common with a prompt nothing is computed again.

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

use crate::engine::{Engine, EngineOptions};
use crate::error::EngineError;
use crate::native::{NativeHost, block_on, open_model, seconds};
use actor::{Actor, Job};
pub use answer::{Answer, Outcome, Told};
pub(crate) use prompter::Prompter;

/// How much is taken on.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests that are there at a time, those that wait included; more are refused.
    pub requests: usize,
    /// Texts that take turns; others wait until one of them has ended. Fewer do if [`Self::session_memory`] has no room
    /// for them.
    pub begun: usize,
    /// Tokens of a turn, if somebody else waits.
    pub slice: usize,
    /// What texts may take of host memory while they wait for their turn or for the next question; by default as much as
    /// `begun` of them can, and at least [`Sessions::BUDGET`](crate::Sessions::BUDGET).
    ///
    /// *Units*: bytes.
    pub session_memory: Option<usize>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { requests: 64, begun: 4, slice: 16, session_memory: None }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HandleError {
    /// What the engine says.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// As many requests are there as may be.
    #[error("{requests} requests are being answered or wait, and no more are taken on; try again later")]
    Busy {
        /// How many.
        requests: usize,
    },
    /// The engine's thread has ended.
    #[error("the engine's thread has ended; open the model again")]
    Stopped,
}

/// What is to be answered, continued or embedded.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompt {
    /// A text; an empty one is the token that begins a text.
    Text(String),
    /// The tokens of a text.
    Tokens(Vec<u32>),
    /// A conversation whose next turn is the model's.
    Chat(Vec<Message>),
    /// A prompt that [`Handle::encode`] has made tokens of.
    Encoded(Arc<Encoded>),
}

/// A prompt as tokens, with what is known of the answer by then.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    tokens: Vec<u32>,
    /// Tokens at the beginning that stay where others make room.
    keep: usize,
    dropped_messages: usize,
    parts: Parts,
    /// See [`GenerateOptions::shown`].
    shown: Vec<u32>,
    /// Whether the answer must call tools.
    demands: bool,
}

impl Encoded {
    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

type Configure = Box<dyn FnOnce(&mut GenerateOptions) + Send>;

/// A request for text.
pub struct Generate {
    prompt: Prompt,
    keep: Option<usize>,
    key: Option<u64>,
    user: u64,
    chat: ChatOptions,
    configure: Configure,
}

impl Generate {
    /// With the options that suit the backend. Unless [`Self::with`] says how many tokens at most, there may be as many as
    /// the context has room for.
    pub fn new(prompt: Prompt) -> Generate {
        Generate { prompt, keep: None, key: None, user: 0, chat: ChatOptions::default(), configure: Box::new(|_| ()) }
    }

    /// The same with other options, which are made on the engine's thread, after those of earlier calls. It has its own use
    /// for [`GenerateOptions::cancel`] and [`GenerateOptions::done`].
    #[must_use]
    pub fn with(mut self, configure: impl FnOnce(&mut GenerateOptions) + Send + 'static) -> Generate {
        let before = self.configure;
        self.configure = Box::new(|options| {
            before(options);
            configure(options);
        });
        self
    }

    /// The same for a conversation with tools, or with variables of its template. [`Told::Begun`] has what tells the parts
    /// of the answer apart.
    #[must_use]
    pub fn chatting(mut self, chat: ChatOptions) -> Generate {
        self.chat = chat;
        self
    }

    /// The same by a key of whoever asks: where answers are computed [elsewhere], who asks again with it gets the answer that
    /// was begun. An engine of its own answers anew.
    #[must_use]
    pub fn keyed(mut self, key: u64) -> Generate {
        self.key = Some(key);
        self
    }

    /// The same for one of several who ask: where answers are computed [elsewhere], they take turns, whatever number of
    /// requests each has. An engine of its own takes requests as they come.
    #[must_use]
    pub fn by(mut self, user: u64) -> Generate {
        self.user = user;
        self
    }

    /// The same with so many tokens at the beginning that stay where others make room, instead of those that hold for all
    /// turns of a conversation. Only for [`Overflow::Shift`].
    #[must_use]
    pub fn keeping(mut self, tokens: usize) -> Generate {
        self.keep = Some(tokens);
        self
    }
}

/// A request for embeddings.
#[derive(Debug, Clone, PartialEq)]
pub struct Embed {
    /// Of these texts.
    pub texts: Vec<Prompt>,
    /// Only so many numbers of each vector, for models that were trained for it.
    pub dimensions: Option<usize>,
    /// Brings vectors to length 1.
    pub normalize: bool,
}

/// Embeddings of texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// One of each text.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens of all texts.
    pub prompt_tokens: usize,
}

/// What does not change about a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// `general.name` of the file.
    pub name: Option<String>,
    /// The family.
    pub architecture: &'static str,
    /// Tokens that the context holds.
    pub n_ctx: usize,
    /// What the KV cache holds; none if that is the business of others.
    pub kv_cache: Option<KvCache>,
    /// How an embedding model makes one vector of a text; none for a language model.
    pub pooling: Option<Pooling>,
    /// See [`Engine::has_chat_template`].
    pub has_chat_template: bool,
    /// How long loading the weights took.
    ///
    /// *Units*: milliseconds.
    pub load_ms: f64,
}

impl Facts {
    /// Those of a file; `can_chat` says whether its template and its tokenizer can be used.
    fn of(metadata: &Metadata, recipe: &Recipe, can_chat: bool) -> Facts {
        Facts {
            name: metadata.get::<&str>("general.name").ok().flatten().map(Into::into),
            architecture: recipe.architecture(),
            n_ctx: recipe.sizes().n_ctx,
            kv_cache: Some(recipe.kv_cache()),
            pooling: recipe.pooling(),
            has_chat_template: can_chat && metadata.value("tokenizer.chat_template").is_some(),
            load_ms: 0.0,
        }
    }
}

/// What goes on, as of the last turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The backend that is in use.
    pub backend: &'static str,
    /// Device and driver as they name themselves.
    pub adapter: String,
    /// Texts that take turns.
    pub begun: usize,
    /// Requests that wait to begin.
    pub waiting: usize,
    /// What the device holds.
    ///
    /// *Units*: bytes.
    pub device_memory: u64,
}

/// What [`Handle::spawn`] loads: a model, and what loads it again if its device is lost.
pub struct Opened {
    /// The model.
    pub engine: Engine,
    /// Where it comes from.
    pub source: Box<dyn ByteSource>,
    /// How it was loaded.
    pub options: EngineOptions,
}

#[derive(Debug, Default)]
struct Shared {
    /// Requests that are there.
    requests: AtomicUsize,
    status: Mutex<Status>,
}

impl Shared {
    /// Nothing is done while it is locked that could leave it in parts.
    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a request among those that are there.
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

/// A model on a thread of its own. When all clones are gone the thread ends, once it has answered what was asked.
#[derive(Clone)]
pub struct Handle {
    jobs: Sender<Job>,
    shared: Arc<Shared>,
    facts: Arc<Facts>,
    texts: Arc<Texts>,
    limits: Limits,
}

/// What makes prompts of texts, and texts of tokens.
#[derive(Debug)]
pub(crate) struct Texts {
    pub tokenizer: Result<Arc<Tokenizer>, TokenizerError>,
    pub chat: Result<Arc<ChatTemplate>, ChatError>,
    /// See [`Tokenizer::most_bytes`].
    pub most_bytes: Option<usize>,
}

impl Texts {
    /// Those of a file.
    pub fn new(tokenizer: Result<Arc<Tokenizer>, TokenizerError>, chat: Result<ChatTemplate, ChatError>) -> Texts {
        let most_bytes = tokenizer.as_ref().ok().and_then(|tokenizer| tokenizer.most_bytes());
        Texts { tokenizer, chat: chat.map(Arc::new), most_bytes }
    }
}

impl Handle {
    /// Loads a model from disk, as [`Engine::open`] does, on a new thread. Options are made there, since they cannot be
    /// sent. Gives the thread, too, which ends after the last handle was dropped: a program waits for it before it ends, since a
    /// driver that is let go meanwhile may crash.
    ///
    /// *Errors*: as [`Engine::open`]; the system gives no thread.
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

    /// The same with a model that `open` loads on the new thread, and again if an embedding model's device is lost.
    ///
    /// *Errors*: those of `open`; the system gives no thread.
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
                // Nobody listens if loading was given up.
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

    /// What does not change about the model.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The tokenizer, if the file has one that can be used.
    pub fn tokenizer(&self) -> Option<&Arc<Tokenizer>> {
        self.texts.tokenizer.as_ref().ok()
    }

    /// The chat template, if the file has one that can be used.
    pub fn chat(&self) -> Option<&Arc<ChatTemplate>> {
        self.texts.chat.as_ref().ok()
    }

    /// What goes on.
    pub fn status(&self) -> Status {
        self.shared.status().clone()
    }

    /// Requests that are there: those that are being answered, and those that wait.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Makes tokens of a prompt on the calling thread, so that a long one does not keep the engine's thread from those that
    /// are answered. Of a conversation whose answer may take `room` tokens, the oldest turns are left out if `overflow` says so.
    /// The request's [`Generate::chatting`] is of no account then.
    ///
    /// *Errors*: the model has no tokenizer or template, or the template fails; the text is longer than any prompt that fits
    /// the context.
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

    /// Asks for text. The answer begins with [`Told::Begun`] as soon as the request was found sound; dropping it cancels.
    ///
    /// *Errors*: as many requests as may be are there; the thread has ended. What else is wrong is told by the answer.
    pub fn generate(&self, request: Generate) -> Result<Answer, HandleError> {
        let place = Place::take(&self.shared, self.limits.requests)?;
        let (told, answer) = answer::channel();
        self.jobs.send(Job::Generate { request, told, place }).map_err(|_| HandleError::Stopped)?;
        Ok(answer)
    }

    /// Asks for embeddings; dropping the future cancels.
    ///
    /// *Errors*: as many requests as may be are there; the thread has ended. What else is wrong is told by the future.
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
