//! A model with its tokenizer, on the backend that was chosen for it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use backend_api::{Backend, Pace};
use model::{
    Batch, ByteSource, ChatError, ChatTemplate, Embedder, Embedding, GenerateOptions, Generation, Gguf, Host, KvCache,
    Message, Metadata, Model, Parts, Piece, Pooling, Recipe, Run, Seam, Sequence, Session, Sessions, Stage,
    StageSession, Tokenizer, TokenizerError,
};

use crate::chat::{self, ChatPrompt};
use crate::draft::{DraftModel, Drafting, attach};
use crate::error::EngineError;
use crate::ladder::SelectOptions;
#[cfg(not(target_arch = "wasm32"))]
use crate::native::seconds;
use crate::prepare::{Prepared, new_session};
use crate::report::Report;
use crate::rung::Rung;
use crate::select::select_telling;
use crate::selftest::rate_of;
#[cfg(target_arch = "wasm32")]
use crate::web::seconds;

/// Options of loading a model.
#[derive(Debug, Clone, Default)]
pub struct EngineOptions {
    /// Backends that may be chosen, and how they are opened.
    pub select: SelectOptions,
    /// Size of the context in tokens; by default that of training, but at most 2048.
    pub n_ctx: Option<usize>,
    /// Tokens that the KV cache of a session has room for from the beginning; at most the whole context. By default it is
    /// small at first and grows with the text, so that a long text may run out of memory late.
    pub capacity: Option<usize>,
    /// Dtype of the KV cache.
    pub kv_cache: KvCache,
    /// Most memory for weights and states. By default only states are limited: to 512 MiB or four times the weights,
    /// whichever is larger.
    ///
    /// *Units*: bytes.
    pub max_memory: Option<u64>,
    /// Loads it as an embedding model with this pooling, whatever the file says.
    pub pooling: Option<Pooling>,
    /// Loads a single stage of the model. After the header, only the stage's weights are read from the file.
    pub stage: Option<Stage>,
    /// A small model with the same vocabulary for speculative decoding: it drafts tokens that the model verifies in one
    /// step. The text does not change, to the last bit. The draft model is loaded beside the model. It is unused where
    /// drafts do not pay off, on backends that cannot verify them, and for stages.
    pub draft: Option<DraftModel>,
    /// Assumes that the device has this rate, whatever it really is: for tests of how an application behaves on slow
    /// devices.
    ///
    /// *Units*: multiply-adds a millisecond, as a [`Cost`](backend_api::Cost) counts them.
    pub rate: Option<f64>,
    /// Compiles the programs of short prompts while the weights are read, for the first session or embedder. Has no
    /// effect for a stage.
    pub prepare: bool,
}

/// Progress of loading.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The file's header is being read.
    Header,
    /// Candidate backends are being tried.
    Selecting,
    /// A candidate is being tried, or has an outcome. A candidate may be reported several times; the last report
    /// counts.
    Rung(Box<Rung>),
    /// Programs are being compiled, if [`EngineOptions::prepare`] is set.
    Compiling,
    /// Weights are being uploaded to the device.
    ///
    /// *Units*: bytes of the file.
    Weights {
        /// Bytes that are uploaded.
        done: u64,
        /// Bytes in total.
        total: u64,
    },
}

/// Returns the fetch interval that suits a backend: 1 if it is synchronous, otherwise the default.
pub(crate) fn fetch_interval(backend: &dyn Backend) -> Option<usize> {
    backend.info().synchronous.then_some(1)
}

/// Assumed rate of a device that was not timed: a phone's.
///
/// *Units*: multiply-adds a millisecond.
const UNKNOWN_RATE: f64 = 1e7;

/// A model, ready to run.
pub struct Engine {
    pub(crate) model: Rc<Model>,
    metadata: Metadata,
    pub(crate) tokenizer: Result<Arc<Tokenizer>, TokenizerError>,
    pub(crate) chat: Result<ChatTemplate, ChatError>,
    report: Report,
    host: Rc<dyn Host>,
    /// Rate of the device, as far as it is known, or the one that [`EngineOptions::rate`] gives.
    pace: Pace,
    /// See [`EngineOptions::capacity`].
    capacity: Option<usize>,
    /// See [`EngineOptions::draft`].
    draft: Option<Rc<Model>>,
    prepared: RefCell<Option<Prepared>>,
}

impl Engine {
    /// Reads a file's header, chooses a backend, and uploads the weights.
    ///
    /// *Errors*: a malformed or unsupported file, no backend that works, limits or memory of the device. If only the
    /// tokenizer or the chat template is unusable, the model is loaded all the same and can be run on token ids.
    pub async fn load(
        source: &dyn ByteSource,
        options: &EngineOptions,
        host: Rc<dyn Host>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Engine, EngineError> {
        let choose = async |recipe: &Recipe, without: &[&'static str], on_rung: &mut dyn FnMut(&Rung)| {
            let select_options = SelectOptions { without: without.to_vec(), ..options.select.clone() };
            select_telling(Some(recipe), &select_options, &*host, on_rung).await
        };
        Engine::load_on(source, options, host.clone(), progress, choose).await
    }

    /// Like `load`, but `choose` supplies the backend. It must not return an excluded candidate, and may report
    /// progress.
    pub(crate) async fn load_on(
        source: &dyn ByteSource,
        options: &EngineOptions,
        host: Rc<dyn Host>,
        progress: &mut dyn FnMut(Progress),
        mut choose: impl AsyncFnMut(
            &Recipe,
            &[&'static str],
            &mut dyn FnMut(&Rung),
        ) -> Result<(Rc<dyn Backend>, Report), EngineError>,
    ) -> Result<Engine, EngineError> {
        let mut without = options.select.without.clone();
        let mut exhausted = None;
        loop {
            let header = read(source, options, progress).await?;
            progress(Progress::Selecting);
            let mut on_rung = |rung: &Rung| progress(Progress::Rung(Box::new(rung.clone())));
            let (backend, report) = match (choose(&header.1, &without, &mut on_rung).await, exhausted) {
                (Err(EngineError::NoBackend(_)), Some(error)) => return Err(error),
                (chosen, _) => chosen?,
            };
            let chosen = report.chosen;
            let loaded = Engine::on((backend, report), source, options, header, host.clone(), progress).await;
            match loaded {
                // The device has too little memory; another candidate may have more.
                Err(error) if error.is_out_of_memory() && chosen.is_some() => {
                    without.extend(chosen);
                    exhausted = Some(error);
                }
                loaded => return loaded,
            }
        }
    }

    /// Reads a file's header and uploads the weights to a backend that the caller has opened: a custom one, or one on a
    /// device that the application shares. No selection and no self-tests are run, and [`EngineOptions::select`] is
    /// ignored.
    ///
    /// *Errors*: as [`Self::load`]; operators of the model that the backend cannot run.
    pub async fn with_backend(
        backend: Box<dyn Backend>,
        source: &dyn ByteSource,
        options: &EngineOptions,
        host: Rc<dyn Host>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Engine, EngineError> {
        let header = read(source, options, progress).await?;
        let report = Report::given(backend.info());
        Engine::on((Rc::from(backend), report), source, options, header, host, progress).await
    }

    async fn on(
        (backend, report): (Rc<dyn Backend>, Report),
        source: &dyn ByteSource,
        options: &EngineOptions,
        (gguf, recipe): (Gguf, Recipe),
        host: Rc<dyn Host>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Engine, EngineError> {
        let mut chat = ChatTemplate::from_metadata(&gguf.metadata);
        if let Ok(chat) = &mut chat {
            chat.set_now(seconds());
        }
        let tokenizer = Tokenizer::from_metadata(&gguf.metadata).map(Arc::new);
        let drafting = Drafting::read(options, &recipe, tokenizer.as_deref().ok(), &*backend).await?;
        let model = Rc::new(Model::create(recipe, backend)?);
        let prepared = match options.stage {
            None if options.prepare => {
                progress(Progress::Compiling);
                let prepared = Prepared::new(&model, options.capacity)?;
                // The first call starts the compilation, which goes on while weights are read.
                let _ = model.backend().ready()?;
                Some(prepared)
            }
            // If there is too little memory, another candidate may have more.
            None if model.recipe().pooling().is_none() => options
                .capacity
                .map(|_| new_session(&model, options.capacity))
                .transpose()?
                .map(Box::new)
                .map(Prepared::Text),
            _ => None,
        };
        model.fill(source, &*host, &mut |done, total| progress(Progress::Weights { done, total })).await?;
        let draft = match drafting {
            Some(drafting) => Some(drafting.load(model.backend(), &*host, progress).await?),
            None => None,
        };
        Ok(Engine {
            pace: pace(options.rate, &report, &**model.backend()),
            model,
            tokenizer,
            chat,
            metadata: gguf.metadata,
            report,
            host,
            capacity: options.capacity,
            draft,
            prepared: RefCell::new(prepared),
        })
    }

    /// Loads the model again on another backend, which replaces the current one.
    ///
    /// *Errors*: as [`Self::with_backend`]; the model then stays where it was.
    pub(crate) async fn move_to(
        &mut self,
        backend: Rc<dyn Backend>,
        report: Report,
        source: &dyn ByteSource,
        options: &EngineOptions,
    ) -> Result<(), EngineError> {
        let (_, recipe) = read(source, options, &mut |_| {}).await?;
        let tokenizer = self.tokenizer.as_deref().ok();
        let drafting = Drafting::read(options, &recipe, tokenizer, &*backend).await?;
        let model = Model::load(source, recipe, backend.clone(), &*self.host, &mut |_, _| {}).await?;
        self.draft = match drafting {
            Some(drafting) => Some(drafting.load(&backend, &*self.host, &mut |_| {}).await?),
            None => None,
        };
        self.model = Rc::new(model);
        self.prepared.take();
        self.pace = pace(options.rate, &report, &**self.model.backend());
        self.report = report;
        Ok(())
    }

    pub(crate) fn shared_host(&self) -> Rc<dyn Host> {
        self.host.clone()
    }

    /// Returns the model.
    pub fn model(&self) -> &Rc<Model> {
        &self.model
    }

    /// Returns the draft model, if there is one and the backend verifies drafts.
    pub fn draft(&self) -> Option<&Rc<Model>> {
        self.draft.as_ref()
    }

    /// Returns the metadata of the file.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the backend that the model runs on.
    pub fn backend(&self) -> &dyn Backend {
        &**self.model.backend()
    }

    /// Returns the report of the selection: the chosen backend, and the reasons against the others.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Returns the host that was given to [`Self::load`].
    pub fn host(&self) -> &dyn Host {
        &*self.host
    }

    /// Returns the tokenizer.
    ///
    /// *Errors*: the file does not have a usable one.
    pub fn tokenizer(&self) -> Result<&Tokenizer, EngineError> {
        self.tokenizer.as_deref().map_err(|e| e.clone().into())
    }

    /// Returns the tokenizer for other threads, if the file has a usable one.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn shared_tokenizer(&self) -> Option<Arc<Tokenizer>> {
        self.tokenizer.as_ref().ok().cloned()
    }

    /// Returns the chat template.
    ///
    /// *Errors*: the file's template cannot be used.
    pub fn chat(&self) -> Result<&ChatTemplate, EngineError> {
        self.chat.as_ref().map_err(|e| e.clone().into())
    }

    /// Sets the chat template's time to now, for engines that live for days.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn tell_time(&mut self) {
        self.chat.iter_mut().for_each(|chat| chat.set_now(seconds()));
    }

    /// Returns whether the file has a usable chat template and tokenizer. A model without a template is hardly a chat
    /// model.
    pub fn has_chat_template(&self) -> bool {
        self.metadata.value("tokenizer.chat_template").is_some() && self.chat.is_ok() && self.tokenizer.is_ok()
    }

    /// Makes a session with an empty context.
    ///
    /// *Errors*: memory for the KV cache, or the device was lost; an embedding model.
    pub fn session(&self) -> Result<Session, EngineError> {
        let prepared = self.prepared.borrow_mut().take_if(|prepared| matches!(prepared, Prepared::Text(_)));
        let mut session = match prepared {
            Some(Prepared::Text(session)) => *session,
            _ => new_session(&self.model, self.capacity)?,
        };
        self.shape(&mut session);
        self.have_drafted(&mut session)?;
        Ok(session)
    }

    /// Attaches the draft model, if there is one, to a session.
    fn have_drafted(&self, session: &mut Session) -> Result<(), EngineError> {
        let Some(draft) = &self.draft else { return Ok(()) };
        let mut small = Session::new(draft.clone())?;
        self.shape(&mut small);
        attach(session, draft, small)
    }

    /// Sets a session's step sizes to those that suit the device.
    fn shape(&self, session: &mut Session) {
        let info = self.backend().info();
        session.set_short_prompt(info.short_prompt);
        session.set_prompt_rows(info.prompt_rows);
        session.set_pace(self.pace.another());
    }

    /// Makes an empty set of sequences that take turns on the device; see [`Sessions::new`] for the budget.
    ///
    /// *Errors*: as [`Self::session`].
    pub fn sessions(&self, budget: usize) -> Result<Sessions, EngineError> {
        Ok(Sessions::new(self.session()?, budget))
    }

    /// Makes sessions for `texts` sequences that are on the device together and advance as a batch. Each one has room
    /// for at least so many tokens, or for the whole context.
    ///
    /// *Errors*: as [`Batch::with_room`].
    pub fn batch(&self, texts: usize, tokens: usize) -> Result<Batch, EngineError> {
        let mut batch = Batch::with_room(self.model.clone(), texts, tokens)?;
        for session in batch.sessions_mut() {
            self.shape(session);
            self.have_drafted(session)?;
        }
        Ok(batch)
    }

    /// Makes an empty session of the stage that was loaded. Any number of sessions can take steps in turn.
    ///
    /// *Errors*: memory for the stage's states, or the device was lost; an embedding model.
    pub fn stage_session(&self, seam: Seam) -> Result<StageSession, EngineError> {
        let mut session = StageSession::new(self.model.clone(), seam)?;
        self.shape(session.session_mut());
        Ok(session)
    }

    /// Makes an embedder of texts.
    ///
    /// *Errors*: memory, or the device was lost; not an embedding model.
    pub fn embedder(&self) -> Result<Embedder, EngineError> {
        let prepared = self.prepared.borrow_mut().take_if(|prepared| matches!(prepared, Prepared::Embeddings(_)));
        let mut embedder = match prepared {
            Some(Prepared::Embeddings(embedder)) => *embedder,
            _ => Embedder::new(self.model.clone())?,
        };
        embedder.set_pace(self.pace.another());
        Ok(embedder)
    }

    /// Embeds a text that was tokenized by [`Self::encode`]. The vector is not normalized.
    ///
    /// *Errors*: as [`Embedder::embed`].
    pub async fn embed(&self, embedder: &mut Embedder, tokens: &[u32]) -> Result<Embedding, EngineError> {
        Ok(embedder.embed(tokens, &*self.host).await?)
    }

    /// Tokenizes a query and a document for a reranker. [`Self::embed`] gives their scores.
    ///
    /// *Errors*: the model does not have a tokenizer.
    pub fn encode_pair(&self, query: &str, document: &str) -> Result<Vec<u32>, EngineError> {
        Ok(self.tokenizer()?.encode_pair(query, document))
    }

    /// Tokenizes a prompt. An empty prompt becomes the token that begins a text (BOS), if the model has one.
    ///
    /// *Errors*: the file has no tokenizer.
    pub fn encode(&self, prompt: &str) -> Result<Vec<u32>, EngineError> {
        Ok(chat::encode(self.tokenizer()?, prompt))
    }

    /// Tokenizes a conversation, up to where the assistant's answer begins.
    ///
    /// *Errors*: the file does not have a tokenizer or a usable template, or the template refuses the conversation.
    pub fn encode_chat(&self, messages: &[Message]) -> Result<Vec<u32>, EngineError> {
        Ok(self.chat()?.encode(self.tokenizer()?, messages, true)?)
    }

    /// Returns the default options, with the fetch interval that suits the backend.
    pub fn generate_options(&self) -> GenerateOptions {
        GenerateOptions { fetch_interval: fetch_interval(self.backend()), ..GenerateOptions::default() }
    }

    /// Returns the number of first tokens that stay by default when older tokens are dropped: 1 if the text begins with
    /// the token that begins a text (BOS), otherwise 0.
    pub fn kept(&self, tokens: &[u32]) -> usize {
        self.tokenizer.as_ref().map_or(0, |tokenizer| chat::kept(tokenizer, tokens))
    }

    /// Generates the continuation of a text. Reuses the common beginning that the session has already computed.
    ///
    /// *Errors*: as [`Session::generate`].
    pub async fn generate(
        &self,
        session: &mut Session,
        tokens: &[u32],
        options: &GenerateOptions,
        on_piece: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Generation, EngineError> {
        let mut sequence = self.sequence(tokens, options)?;
        self.run(session, &mut sequence, on_piece).await?;
        Ok(sequence.into_generation(on_piece))
    }

    /// Makes the sequence that continues a text, to be run by [`Self::run`].
    ///
    /// *Errors*: options out of range; a text that does not fit the context.
    pub fn sequence(&self, tokens: &[u32], options: &GenerateOptions) -> Result<Sequence, EngineError> {
        let sizes = self.model.recipe().sizes();
        Ok(Sequence::new(tokens, options, self.tokenizer.as_deref().ok(), sizes)?)
    }

    /// Runs a sequence in a session until it ends.
    ///
    /// *Errors*: as [`Session::generate`].
    pub async fn run(
        &self,
        session: &mut Session,
        sequence: &mut Sequence,
        on_piece: &mut dyn FnMut(Piece<'_>),
    ) -> Result<(), EngineError> {
        Ok(session.run(sequence, self.tokenizer.as_deref().ok(), &*self.host, on_piece).await?)
    }

    /// Begins to run a sequence in a session. The caller [advances](Run::advance) it, and may leave it at any time.
    ///
    /// *Errors*: as [`Session::generate`].
    pub async fn begin<'r>(
        &'r self,
        session: &'r mut Session,
        sequence: &'r mut Sequence,
        on_piece: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Run<'r>, EngineError> {
        let tokenizer = self.tokenizer.as_deref().ok();
        Ok(Run::begin(session, sequence, tokenizer, &*self.host, on_piece).await?)
    }

    /// Generates the continuation of the text called `name`. Reuses the longest common beginning that any of the
    /// sessions has already computed.
    ///
    /// *Errors*: as [`Self::generate`] and [`Sessions::turn_to`].
    pub async fn generate_in(
        &self,
        sessions: &mut Sessions,
        name: &str,
        tokens: &[u32],
        options: &GenerateOptions,
        on_piece: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Generation, EngineError> {
        sessions.turn_to(name, tokens, &*self.host).await?;
        let mut sequence = self.sequence(tokens, options)?;
        self.run(sessions.session_mut(), &mut sequence, on_piece).await?;
        sessions.note(&sequence);
        Ok(sequence.into_generation(on_piece))
    }
}

/// Prompts of conversations, and what their answers are made of.
impl Engine {
    /// Makes the prompt of a conversation.
    ///
    /// With [`Overflow::Shift`](model::Overflow::Shift), the fewest oldest turns are left out so that the rest and the answer fit the context.
    /// A turn is a message of the user with all messages up to the next one of the user. System messages at the
    /// beginning and the last turn always stay. An answer counts as at most half of the context.
    ///
    /// *Errors*: as [`Self::encode_chat`]; the last turn alone does not fit.
    pub fn chat_prompt(&self, messages: &[Message], options: &GenerateOptions) -> Result<ChatPrompt, EngineError> {
        self.chat_prompt_with(self.chat()?, messages, options)
    }

    /// Makes the prompt with a template that has the options of the conversation ([`ChatTemplate::with`]); otherwise as
    /// [`Self::chat_prompt`].
    ///
    /// *Errors*: as [`Self::chat_prompt`].
    pub fn chat_prompt_with(
        &self,
        chat: &ChatTemplate,
        messages: &[Message],
        options: &GenerateOptions,
    ) -> Result<ChatPrompt, EngineError> {
        chat::prompt(chat, self.tokenizer()?, self.model().recipe().sizes().n_ctx, messages, options)
    }

    /// Makes the parser that splits an answer into thoughts, content and calls, for a prompt that `chat` made.
    ///
    /// *Errors*: the file has no tokenizer.
    pub fn answer_parts(&self, chat: &ChatTemplate, prompt: &[u32]) -> Result<Parts, EngineError> {
        Ok(chat::answer_parts(chat, self.tokenizer()?, prompt))
    }
}

pub(crate) async fn read(
    source: &dyn ByteSource,
    options: &EngineOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Gguf, Recipe), EngineError> {
    progress(Progress::Header);
    let gguf = Gguf::read(source).await?;
    let recipe = Recipe::new(&gguf, options.n_ctx)?.with_kv_cache(options.kv_cache);
    let recipe = match options.pooling {
        Some(pooling) => recipe.with_pooling(pooling)?,
        None => recipe,
    };
    let recipe = match &options.stage {
        Some(stage) => recipe.with_stage(stage.clone())?,
        None => recipe,
    };
    recipe.check_memory(options.max_memory)?;
    Ok((gguf, recipe))
}

/// Returns the step-time budget of a device, starting at the rate that selection measured. Later steps correct it.
fn pace(rate: Option<f64>, report: &Report, backend: &dyn Backend) -> Pace {
    let synchronous = backend.info().synchronous;
    match (rate, report.chosen().and_then(|rung| rung.matvec_ms)) {
        (Some(rate), _) => Pace::fixed(rate, synchronous),
        (None, Some(ms)) => Pace::new(rate_of(ms), synchronous),
        (None, None) => Pace::new(UNKNOWN_RATE, synchronous),
    }
}
