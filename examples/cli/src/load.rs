//! From the command line to a model on a device.

use crate::args::{DeviceArgs, LoadArgs, ModelArgs};
use crate::embedded;
use crate::file::FileSource;
use crate::host::{Native, block_on};
use anyhow::{Context, Result};
use backend_api::{BackendInfo, KernelInfo};
use indicatif::{ProgressBar, ProgressStyle};
use model::{
    ByteSource, BytesSource, ChatTemplate, GenerateOptions, Generation, Gguf, Message, Model, Piece, Recipe, Session,
    Tokenizer,
};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

/// A model file whose header was read.
pub struct Opened {
    /// Its name in reports.
    pub name: String,
    /// Its bytes.
    pub source: Box<dyn ByteSource>,
    /// Its header.
    pub gguf: Gguf,
}

impl Opened {
    /// Opens the file, or the built-in model.
    ///
    /// *Errors*: the file cannot be read, or is no usable GGUF file.
    pub fn new(args: &ModelArgs) -> Result<Opened> {
        let path = &args.model;
        let source: Box<dyn ByteSource> = if path == Path::new(embedded::NAME) {
            Box::new(BytesSource(embedded::GAB))
        } else {
            Box::new(FileSource::open(path)?)
        };
        let gguf = block_on(Gguf::read(&*source)).with_context(|| path.display().to_string())?;
        let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        Ok(Opened { name, source, gguf })
    }
}

/// The tokenizer of a file.
///
/// *Errors*: it has none, or one that this build lacks.
pub fn tokenizer(gguf: &Gguf) -> Result<Tokenizer> {
    Ok(Tokenizer::from_metadata(&gguf.metadata)?)
}

/// A model on a device.
pub struct Loaded {
    /// Its name in reports.
    pub name: String,
    gguf: Gguf,
    /// Without one, prompts can still be given as tokens.
    tokenizer: Option<Tokenizer>,
    model: Rc<Model>,
    session: RefCell<Session>,
    report: String,
    host: Native,
}

impl Loaded {
    /// Chooses a backend and loads the model, with a progress bar.
    ///
    /// *Errors*: the file is unusable, or no backend that was asked for can run it.
    pub fn new(args: &LoadArgs, device: &DeviceArgs) -> Result<Loaded> {
        let Opened { name, source, gguf } = Opened::new(&args.model)?;
        let recipe = Recipe::new(&gguf, args.n_ctx).with_context(|| name.clone())?;
        let host = Native::new();
        let (backend, report) = crate::device::select(device, Some(&recipe), &host)?;
        let bar = ProgressBar::new(0).with_message(format!("loading {name}"));
        bar.set_style(ProgressStyle::with_template("{msg} {bar:40} {bytes}/{total_bytes}")?);
        let mut progress = |done: u64, total: u64| {
            bar.set_length(total);
            bar.set_position(done);
        };
        let model = block_on(Model::load(&*source, recipe, backend, &host, &mut progress));
        bar.finish_and_clear();
        let model = Rc::new(model.with_context(|| name.clone())?);
        let session = RefCell::new(Session::new(model.clone())?);
        let tokenizer = tokenizer(&gguf).ok();
        Ok(Loaded { name, gguf, tokenizer, model, session, report, host })
    }

    /// The backend that was chosen.
    pub fn info(&self) -> &BackendInfo {
        self.model.backend().info()
    }

    /// How the backend was chosen.
    pub fn report(&self) -> &str {
        &self.report
    }

    /// How long loading took, in milliseconds.
    pub fn load_ms(&self) -> f64 {
        self.model.load_ms()
    }

    /// Size of the vocabulary.
    pub fn n_vocab(&self) -> usize {
        self.model.recipe().sizes().n_vocab
    }

    /// The text of one token.
    pub fn piece(&self, id: u32) -> String {
        self.tokenizer.as_ref().map_or_else(String::new, |t| format!("{:?}", t.decode(&[id], true)))
    }

    /// The tokens of a prompt; those of an empty one are the token that begins a text.
    ///
    /// *Errors*: the file has no tokenizer.
    pub fn prompt(&self, text: &str) -> Result<Vec<u32>> {
        let Some(tokenizer) = &self.tokenizer else { return tokenizer(&self.gguf).map(|_| Vec::new()) };
        let mut tokens = tokenizer.encode(text, true, true);
        if tokens.is_empty() {
            tokens.extend(tokenizer.bos().or(tokenizer.eos()));
        }
        Ok(tokens)
    }

    /// The tokens of a conversation whose next turn is the model's.
    ///
    /// *Errors*: the file has no tokenizer, or its template refuses.
    pub fn chat(&self, messages: &[Message]) -> Result<Vec<u32>> {
        let Some(tokenizer) = &self.tokenizer else { return tokenizer(&self.gguf).map(|_| Vec::new()) };
        Ok(ChatTemplate::from_metadata(&self.gguf.metadata)?.encode(tokenizer, messages, true)?)
    }

    /// Generates from an empty context.
    ///
    /// *Errors*: as [`Session::generate`].
    pub fn generate(
        &self,
        prompt: &[u32],
        options: &GenerateOptions,
        on_piece: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Generation> {
        let mut session = self.session.borrow_mut();
        session.rewind(0);
        Ok(block_on(session.generate(prompt, options, self.tokenizer.as_ref(), &self.host, on_piece))?)
    }

    /// The logits of all positions, or of the last one, from an empty context.
    ///
    /// *Errors*: as [`Session::logits`].
    pub fn logits(&self, prompt: &[u32], all: bool) -> Result<Vec<f32>> {
        let mut session = self.session.borrow_mut();
        session.rewind(0);
        Ok(block_on(session.logits(prompt, all, &self.host))?)
    }

    /// The kernels of a decode step.
    ///
    /// *Errors*: as [`Session::decode_kernels`].
    pub fn decode_kernels(&self) -> Result<Vec<KernelInfo>> {
        Ok(self.session.borrow_mut().decode_kernels()?)
    }
}
