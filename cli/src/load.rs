//! Loading of the model that the command line names, on the device that it chooses.

use crate::args::{ContextArgs, DeviceArgs, DraftArgs, Layout, LoadArgs, ModelArgs, SessionArgs};
use crate::models::{self, Reference};
use crate::{embedded, output, proven, saved, tune};
use anygpu::bench::{self, Buffers};
use anygpu::handle::Opened;
use anygpu::native::{NativeHost, block_on, open_files};
use anygpu::{
    BackendInfo, ByteSource, BytesSource, CallForm, ChatOptions, ChatPrompt, ChatTemplate, Constraint, DEFAULT_N_CTX,
    DraftModel, Engine, EngineError, EngineOptions, Event, Footprint, GenerateOptions, Generation, Gguf, KvCache,
    Message, Parts, Piece, Pooling, Progress, Recipe, Report, Sampling, SavedRequest, SelectOptions, Session, Snapshot,
    Tokenizer, TracedKernel,
};
use anygpu_constrain::{Format, Vocabulary};
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

impl DeviceArgs {
    /// Converts the arguments to the engine's options.
    pub fn options(&self) -> SelectOptions {
        SelectOptions {
            backend: self.backend,
            webgpu_max_binding: self.max_binding,
            webgpu_products: self.products,
            webgl_layout: self.webgl_layout.map(|layout| match layout {
                Layout::Packed => anygpu::Layout::Packed,
                Layout::R32f => anygpu::Layout::R32f,
                Layout::Bits => anygpu::Layout::Bits,
            }),
            webgl_max_texture_size: self.max_texture_size,
            cpu_threads: self.threads,
            candidates: Vec::new(),
            without: Vec::new(),
            tuned: Rc::new(tune::winners(self)),
            proven: Rc::new(proven::read(self)),
        }
    }
}

impl ModelArgs {
    /// Returns the model's name in reports.
    pub fn name(&self) -> String {
        match &self.model {
            Reference::File(path) => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            other => other.to_string(),
        }
    }

    /// Opens the file, all files of a split model, or the built-in model. A remote file is downloaded first.
    ///
    /// *Errors*: a file cannot be downloaded or opened.
    pub fn open(&self) -> Result<Box<dyn ByteSource>> {
        let Some(path) = models::file(&self.model)? else { return Ok(Box::new(BytesSource(embedded::GAB))) };
        let source = open_files(&path).with_context(|| {
            let shown = path.display();
            format!("cannot open the model {shown:?}; give the path of a GGUF file, or gab for the built-in model")
        })?;
        Ok(Box::new(source))
    }
}

impl LoadArgs {
    /// Returns these arguments with a context of at least so many tokens, unless they name its size.
    pub fn with_room(&self, tokens: usize) -> LoadArgs {
        let mut load = self.clone();
        if tokens > DEFAULT_N_CTX {
            load.context.n_ctx.get_or_insert(tokens);
        }
        load
    }

    /// Converts the arguments to the engine's options.
    pub fn options(&self, device: &DeviceArgs) -> EngineOptions {
        self.context.options(device)
    }
}

impl ContextArgs {
    /// Converts the arguments to the engine's options.
    pub fn options(&self, device: &DeviceArgs) -> EngineOptions {
        let (n_ctx, kv_cache, max_memory) = (self.n_ctx, self.kv_cache.unwrap_or_default(), self.max_memory);
        let (select, capacity) = (device.options(), self.capacity);
        EngineOptions { select, n_ctx, capacity, kv_cache, max_memory, ..EngineOptions::default() }
    }
}

impl DraftArgs {
    /// Opens the draft model, if there is one.
    ///
    /// *Errors*: those of [`ModelArgs::open`].
    fn open(&self) -> Result<Option<DraftModel>> {
        let model = self.draft.clone().map(|model| ModelArgs { model });
        Ok(model.map(|model| model.open()).transpose()?.map(|source| DraftModel(Rc::from(source))))
    }
}

/// Progress bar on the standard error.
pub struct Bar {
    bar: ProgressBar,
    name: String,
    trying: ProgressStyle,
    loading: ProgressStyle,
}

impl Bar {
    /// Creates a progress bar for the model `name`.
    ///
    /// *Errors*: none, because the templates are valid.
    pub fn new(name: &str) -> Result<Bar> {
        let trying = ProgressStyle::with_template("{spinner} {msg}")?;
        let loading = ProgressStyle::with_template("{msg} {bar:40} {bytes}/{total_bytes}")?;
        Ok(Bar { bar: ProgressBar::new(0).with_message("trying backends"), name: name.into(), trying, loading })
    }

    /// Shows the progress of loading.
    pub fn loading(&self, progress: Progress) {
        let bar = &self.bar;
        match progress {
            Progress::Header | Progress::Selecting | Progress::Rung(_) | Progress::Compiling => {
                bar.set_style(self.trying.clone());
                bar.tick();
            }
            Progress::Weights { done, total } => {
                if bar.length() != Some(total) {
                    bar.set_style(self.loading.clone());
                    bar.set_message(format!("loading {}", self.name));
                    bar.set_length(total);
                }
                bar.set_position(done);
            }
        }
    }

    /// Shows the current activity.
    pub fn doing(&self, what: &str) {
        self.bar.set_style(self.trying.clone());
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }

    /// Removes the progress bar from the screen.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Chooses a backend and loads a model, with a progress bar. Returns the model's name in reports, and the engine.
///
/// *Errors*: the file is unusable, or no requested backend can run it.
pub fn engine(model: &ModelArgs, options: &EngineOptions) -> Result<(String, Engine)> {
    let source = model.open()?;
    load(model.name(), &*source, options)
}

/// Loads a model for a server, on the calling thread, with what is needed to load it again. By default a language model
/// gets the longest context that fits in memory, and an f16 KV cache if its rows allow that.
///
/// *Errors*: those of [`engine`].
pub fn opened(args: &LoadArgs, draft: &DraftArgs, device: &DeviceArgs, pooling: Option<Pooling>) -> Result<Opened> {
    let (source, draft) = (args.model.open()?, draft.open()?);
    let mut options = EngineOptions { pooling, draft, ..args.options(device) };
    let gguf = block_on(Gguf::read(&*source)).with_context(|| args.model.name())?;
    let context = &args.context;
    if pooling.is_none()
        && let Ok(recipe) = Recipe::new(&gguf, context.n_ctx)
        && recipe.pooling().is_none()
    {
        // Rows that cannot be cut into blocks are kept in f32.
        let usual = if recipe.with_kv_cache(KvCache::F16).states().is_ok() { KvCache::F16 } else { KvCache::default() };
        options.kv_cache = context.kv_cache.unwrap_or(usual);
        let longest = || Recipe::longest_context(&gguf, options.kv_cache, context.max_memory);
        options.n_ctx = Some(context.n_ctx.map_or_else(longest, Ok).with_context(|| args.model.name())?);
    }
    let (_, engine) = load(args.model.name(), &*source, &options)?;
    Ok(Opened { engine, source, options })
}

fn load(name: String, source: &dyn ByteSource, options: &EngineOptions) -> Result<(String, Engine)> {
    let bar = Bar::new(&name)?;
    let host = Rc::new(NativeHost::default());
    let engine = block_on(Engine::load(source, options, host, &mut |at| bar.loading(at)));
    bar.clear();
    let engine = engine.with_context(|| name.clone())?;
    proven::keep(engine.report());
    if options.draft.is_some() && engine.draft().is_none() {
        let info = engine.backend().info();
        output::note(&format!("note: {} verifies no drafts, so the model that was to draft is not loaded", info.name));
    }
    Ok((name, engine))
}

/// A model on a device, with one session. The session starts anew for each call unless it was loaded from a file.
pub struct Loaded {
    /// The model's name in reports.
    pub name: String,
    engine: Engine,
    session: RefCell<Session>,
    source: Box<dyn ByteSource>,
    options: EngineOptions,
    /// The tokens, the sampling and the saved request of the loaded session.
    before: Vec<u32>,
    sampling: Option<Sampling>,
    request: Option<SavedRequest>,
}

impl Loaded {
    /// Chooses a backend and loads the model, with a progress bar.
    ///
    /// *Errors*: the file is unusable, or no requested backend can run it.
    pub fn new(args: &LoadArgs, device: &DeviceArgs) -> Result<Loaded> {
        Loaded::going_on(args, &DraftArgs::default(), device, &SessionArgs::default())
    }

    /// Like [`Self::new`], with a draft model and a saved session if these are given.
    ///
    /// *Errors*: those of [`Self::new`]; a draft model that does not fit; a session of another model.
    pub fn going_on(args: &LoadArgs, draft: &DraftArgs, device: &DeviceArgs, files: &SessionArgs) -> Result<Loaded> {
        let snapshot = files.load_session.as_deref().map(saved::read).transpose()?;
        let mut options = EngineOptions { draft: draft.open()?, ..args.options(device) };
        if let Some(snapshot) = &snapshot
            && args.context.kv_cache.is_none()
            && let Ok(kv_cache) = snapshot.header().kv_cache.parse()
        {
            options.kv_cache = kv_cache;
        }
        let source = args.model.open()?;
        let (name, engine) = load(args.model.name(), &*source, &options)?;
        let mut session = engine.session().with_context(|| name.clone())?;
        let (mut before, mut sampling, mut request) = (Vec::new(), None, None);
        if let Some(snapshot) = snapshot {
            block_on(session.import(&snapshot, engine.host())).with_context(|| name.clone())?;
            before = snapshot.tokens().to_vec();
            (sampling, request) = (snapshot.header().sampling, snapshot.header().request.clone());
        }
        let session = RefCell::new(session);
        Ok(Loaded { name, engine, session, source, options, before, sampling, request })
    }

    /// Checks that the model continues texts.
    ///
    /// *Errors*: a model that only fills in masked tokens.
    pub fn makes_text(&self) -> Result<()> {
        let checked = self.engine.model().recipe().makes_text().map_err(EngineError::from);
        checked.with_context(|| self.name.clone())
    }

    /// Returns how the loaded session chose its next token, if it says so.
    pub fn sampling(&self) -> Option<Sampling> {
        self.sampling
    }

    /// Returns the text of the loaded session and its options, if the session was saved in the middle of a generation.
    ///
    /// *Errors*: a saved request that this version does not know.
    pub fn broken_off(&self) -> Result<Option<(Vec<u32>, GenerateOptions)>> {
        let Some(request) = self.request.as_ref().filter(|request| request.finish.is_none()) else { return Ok(None) };
        let format = request.constraint.as_deref().map(Format::from_source).transpose()?;
        let constraint = self.held(format.as_ref())?;
        let options = request.options(&self.before, self.sampling.unwrap_or(Sampling::Greedy), constraint)?;
        Ok(Some((self.before.clone(), options)))
    }

    /// Returns the constraint of a format, if there is one.
    ///
    /// *Errors*: the file does not have a tokenizer; a format that cannot be enforced.
    pub fn held(&self, format: Option<&Format>) -> Result<Option<Rc<dyn Constraint>>> {
        let Some(format) = format else { return Ok(None) };
        let vocabulary = Vocabulary::new(self.engine.tokenizer()?)?;
        Ok(Some(vocabulary.grammar(format)?.constraint()))
    }

    /// Returns the format for the answer to a conversation, which reasoning may precede.
    ///
    /// *Errors*: those of [`ChatTemplate::preface`].
    pub fn answering(&self, format: Format, messages: &[Message], options: &ChatOptions) -> Result<Format> {
        Ok(format.after(self.engine.chat()?.preface(messages, options)?))
    }

    /// Saves the session, whose text is `tokens`.
    ///
    /// *Errors*: the device was lost, the file cannot be written.
    pub fn save(&self, path: &Path, tokens: &[u32], sampling: Option<Sampling>) -> Result<()> {
        let mut session = self.session.borrow_mut();
        let mut snapshot: Snapshot = block_on(session.export(tokens, 0, self.engine.host()))?;
        sampling.into_iter().for_each(|sampling| snapshot.set_sampling(sampling));
        saved::write(path, &snapshot)
    }

    /// Returns the tokenizer, if the file has one.
    pub fn tokenizer(&self) -> Option<&Tokenizer> {
        self.engine.tokenizer().ok()
    }

    /// Returns the backend that was chosen.
    pub fn info(&self) -> &BackendInfo {
        self.engine.backend().info()
    }

    /// Returns the report of how the backend was chosen.
    pub fn report(&self) -> &Report {
        self.engine.report()
    }

    /// Returns the time that loading the weights took.
    ///
    /// *Units*: milliseconds.
    pub fn load_ms(&self) -> f64 {
        self.engine.model().load_ms()
    }

    /// Returns the size of the vocabulary.
    pub fn n_vocab(&self) -> usize {
        self.engine.model().recipe().sizes().n_vocab
    }

    /// Returns the text of one token, if the file has a tokenizer.
    pub fn piece(&self, id: u32) -> Option<String> {
        self.engine.tokenizer().ok().map(|tokenizer| tokenizer.decode(&[id], true))
    }

    /// Returns the tokens of a prompt, after those of the loaded session if there is one. Without a session, an empty
    /// prompt becomes the token that begins a text (BOS).
    ///
    /// *Errors*: the file does not have a tokenizer.
    pub fn prompt(&self, text: &str) -> Result<Vec<u32>> {
        if self.before.is_empty() {
            return Ok(self.engine.encode(text)?);
        }
        let more = if text.is_empty() { Vec::new() } else { self.engine.tokenizer()?.encode(text, false, true) };
        Ok([&self.before[..], &more].concat())
    }

    /// Returns the tokens of the loaded session, followed by these.
    pub fn after(&self, tokens: Vec<u32>) -> Vec<u32> {
        [&self.before[..], &tokens].concat()
    }

    /// Returns the number of tokens at the beginning of a text that are kept when the context overflows.
    pub fn kept(&self, tokens: &[u32]) -> usize {
        self.engine.kept(tokens)
    }

    /// Returns whether the file has a chat template of its own.
    pub fn has_chat_template(&self) -> bool {
        self.engine.has_chat_template()
    }

    /// Returns the prompt of a conversation in which the model is next.
    ///
    /// *Errors*: those of [`Engine::chat_prompt`].
    pub fn chat(&self, chat: &ChatTemplate, messages: &[Message], options: &GenerateOptions) -> Result<ChatPrompt> {
        Ok(self.engine.chat_prompt_with(chat, messages, options)?)
    }

    /// Returns the chat template with these options.
    ///
    /// *Errors*: those of [`ChatTemplate::with`].
    pub fn template(&self, options: &ChatOptions) -> Result<ChatTemplate> {
        Ok(self.engine.chat()?.with(options)?)
    }

    /// Returns the form that an answer must have, if tool calls are required.
    ///
    /// *Errors*: those of [`ChatTemplate::call_form`].
    pub fn call_form(&self, messages: &[Message], options: &ChatOptions) -> Result<Option<CallForm>> {
        Ok(self.engine.chat()?.call_form(messages, options)?)
    }

    /// Returns the parser for the parts of an answer to a prompt, and the control tokens that the parser needs to see.
    ///
    /// *Errors*: the file does not have a tokenizer.
    pub fn parts(&self, chat: &ChatTemplate, prompt: &[u32]) -> Result<(Parts, Vec<u32>)> {
        Ok((self.engine.answer_parts(chat, prompt)?, chat.marks(self.engine.tokenizer()?)))
    }

    /// Returns the size of the context in tokens.
    pub fn n_ctx(&self) -> usize {
        self.engine.model().recipe().sizes().n_ctx
    }

    /// Describes the size of the context, and how to enlarge it if the model allows that.
    pub fn context(&self) -> String {
        let sizes = self.engine.model().recipe().sizes();
        let (n_ctx, trained) = (sizes.n_ctx, sizes.n_ctx_train);
        if n_ctx < trained {
            format!(
                "the context holds {n_ctx} tokens; --n-ctx N allows more, up to the {trained} that it was trained for"
            )
        } else {
            format!("the context holds {n_ctx} tokens, as many as the model was trained for")
        }
    }

    /// Returns options that suit the backend. `fetch_interval` replaces the backend's own if it is given.
    pub fn generate_options(&self, fetch_interval: Option<usize>) -> GenerateOptions {
        let options = self.engine.generate_options();
        GenerateOptions { fetch_interval: fetch_interval.or(options.fetch_interval), ..options }
    }

    /// Continues a text. If the device is lost, it continues on another one.
    ///
    /// *Errors*: those of [`Engine::generate_surviving`].
    pub fn generate(
        &mut self,
        prompt: &[u32],
        options: &GenerateOptions,
        on_piece: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Generation> {
        let Loaded { engine, session, source, options: loaded, .. } = self;
        let mut on_event = |event: Event<'_>| match event {
            Event::Piece(piece) => on_piece(piece),
            Event::Recovered(to) => {
                let lost = format!("{} was lost ({})", to.from, to.reason);
                output::note(&format!("\n{lost}; {} went on after {:.0} ms", to.to, to.ms));
            }
        };
        let session = session.get_mut();
        let ended = engine.generate_surviving(&**source, loaded, session, prompt, options, &mut on_event);
        Ok(block_on(ended)?)
    }

    /// Returns the logits of all positions that the session has not computed yet, or only those of the last position.
    ///
    /// *Errors*: those of [`Session::logits`].
    pub fn logits(&self, text: &[u32], all: bool) -> Result<Vec<f32>> {
        let mut session = self.session.borrow_mut();
        let rest = session.resume(text);
        Ok(block_on(session.logits(rest, all, self.engine.host()))?)
    }

    /// Returns the device memory in use, and how much of it weights and states take.
    ///
    /// *Errors*: those of [`Session::footprint`].
    pub fn memory(&self) -> Result<(u64, Footprint)> {
        Ok((self.engine.backend().stats().memory, self.session.borrow().footprint()?))
    }

    /// Returns the buffers of the model, of the text and of its programs by class.
    ///
    /// *Errors*: those of [`Buffers::of`].
    pub fn buffers(&self) -> Result<Vec<Buffers>> {
        Ok(Buffers::of(&self.session.borrow())?)
    }

    /// Drops all tokens of the text from a position on.
    pub fn rewind(&mut self, position: usize) {
        self.session.get_mut().rewind(position);
    }

    /// Returns the kernels that would compute a prompt at the end of the text, or those of a decode step if the prompt is
    /// empty, with the median of the device's times if it has a clock for them.
    ///
    /// *Errors*: those of [`Session::trace`].
    pub fn trace(&self, prompt: &[u32]) -> Result<Vec<TracedKernel>> {
        let (mut session, host) = (self.session.borrow_mut(), self.engine.host());
        Ok(block_on(bench::profile(host, async || session.trace(prompt, host).await))?)
    }
}
