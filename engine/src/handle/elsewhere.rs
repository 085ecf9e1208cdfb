//! Remote engines, such as a pool of machines: requests to a [`Handle`] are validated here, and tokens that another
//! machine computes become answers.

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use model::gguf::ByteSource;
use model::{ChatError, ChatTemplate, Finish, Footprint, GenerateOptions, Gguf, Model, ModelError, Overflow, Recipe};
use model::{Sampling, Stage, Tokenizer, TokenizerError, Words};
use reference_cpu::Cpu;

use super::actor::{Job, since};
use super::answer::Teller;
use super::prompter::{Prepared, Prompter};
use super::{Facts, Generate, Handle, HandleError, Limits, Outcome, Place, Shared, Status, Texts, Told};
use crate::error::EngineError;
use crate::native::seconds;

/// Header of a model's file whose weights are on other machines.
pub struct Elsewhere {
    facts: Facts,
    gguf: Gguf,
    n_vocab: usize,
    n_blocks: usize,
    width: usize,
    tokenizer: Result<Arc<Tokenizer>, TokenizerError>,
    chat: Result<ChatTemplate, ChatError>,
}

/// Queue of requests to answer. [`Iterator::next`] waits for a valid request and refuses invalid ones; it returns
/// nothing when all handles are dropped.
pub struct Requests {
    jobs: Receiver<Job>,
    elsewhere: Elsewhere,
    shared: Arc<Shared>,
}

/// A valid request for text. If it is dropped, the answer's stream ends without [`Told::Ended`].
pub struct Asked {
    /// See [`Generate::keyed`].
    pub key: Option<u64>,
    /// See [`Generate::by`].
    pub user: u64,
    /// The prompt's tokens.
    pub prompt: Vec<u32>,
    /// Most tokens of the answer.
    pub most: usize,
    /// Method of choosing tokens.
    pub sampling: Sampling,
    /// Tokens that end the answer.
    pub stop_tokens: Vec<u32>,
    told: Teller,
    words: Words,
    tokenizer: Option<Arc<Tokenizer>>,
    tokens: Vec<u32>,
    text: String,
    asked: Instant,
    first: Option<Instant>,
    _place: Place,
}

/// Instruction after a token was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// Continue: more tokens are wanted.
    On,
    /// Stop: a stop token or a stop string has come.
    Ended,
    /// Stop: nobody listens any more.
    Unheard,
}

impl Elsewhere {
    /// Reads a file's header.
    ///
    /// *Errors*: as [`Gguf::read`] and [`Recipe::new`]; a model for embeddings.
    pub async fn read(source: &dyn ByteSource, n_ctx: Option<usize>) -> Result<Elsewhere, EngineError> {
        let gguf = Gguf::read(source).await?;
        let recipe = Recipe::new(&gguf, n_ctx)?;
        recipe.makes_text()?;
        let tokenizer = Tokenizer::from_metadata(&gguf.metadata).map(Arc::new);
        let chat = ChatTemplate::from_metadata(&gguf.metadata);
        let facts = Facts::of(&gguf.metadata, &recipe, chat.is_ok() && tokenizer.is_ok());
        let facts = Facts { kv_cache: None, ..facts };
        let (n_vocab, n_blocks) = (recipe.sizes().n_vocab, recipe.sizes().n_blocks);
        let width = recipe.hidden();
        Ok(Elsewhere { facts, gguf, n_vocab, n_blocks, width, tokenizer, chat })
    }

    /// Returns the size of the context in tokens.
    pub fn n_ctx(&self) -> usize {
        self.facts.n_ctx
    }

    /// Returns the number of blocks (layers) of the model.
    pub fn blocks(&self) -> usize {
        self.n_blocks
    }

    /// Returns the width of the hidden state, in numbers per row, that stages pass on.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Estimates the memory of a stage: the memory that it takes on the CPU backend.
    ///
    /// *Errors*: the model does not have such a stage.
    pub fn footprint(&self, stage: Stage) -> Result<Footprint, EngineError> {
        let recipe = Recipe::new(&self.gguf, Some(self.facts.n_ctx))?.with_stage(stage)?;
        let cpu = Cpu::new(reference_cpu::Options::default());
        Ok(Model::footprint(&recipe, &cpu)?)
    }

    /// Makes a handle, and the queue of the requests that it receives.
    pub fn open(self, limits: Limits, status: Status) -> (Handle, Requests) {
        let (sender, jobs) = mpsc::channel();
        let shared = Arc::new(Shared { status: Mutex::new(status), ..Shared::default() });
        let texts = Arc::new(Texts::new(self.tokenizer.clone(), self.chat.clone()));
        let handle =
            Handle { jobs: sender, shared: shared.clone(), facts: Arc::new(self.facts.clone()), texts, limits };
        (handle, Requests { jobs, elsewhere: self, shared })
    }

    /// Validates a request and makes its prompt.
    ///
    /// *Errors*: see [`GenerateOptions::check`]; options that only a local engine supports.
    fn prepare(&mut self, request: Generate) -> Result<Prepared, EngineError> {
        self.chat.iter_mut().for_each(|chat| chat.set_now(seconds()));
        let prompter = Prompter {
            tokenizer: self.tokenizer.as_deref(),
            chat: self.chat.as_ref(),
            n_ctx: self.facts.n_ctx,
            most_bytes: None,
        };
        let prepared = prompter.prepare(request, GenerateOptions::default(), self.n_vocab)?;
        let Prepared { prompt, options, .. } = &prepared;
        options.check(prompt.len(), self.facts.n_ctx, self.n_vocab)?;
        let refused = |why: &str| Err(ModelError::Options(why.into()).into());
        if !options.adjust.is_neutral() || options.log_probs.is_some() || options.constraint.is_some() {
            return refused(
                "several machines answer, and they change no chances and tell none; leave out penalties, min_p, \
                 logit_bias, formats and logprobs",
            );
        }
        if matches!(options.overflow, Overflow::Shift { .. }) {
            return refused("several machines answer, and they make no room in a full context; choose error or stop");
        }
        if prompt.len() >= self.facts.n_ctx {
            return Err(ModelError::ContextFull { tokens: prompt.len(), used: 0, n_ctx: self.facts.n_ctx }.into());
        }
        Ok(prepared)
    }
}

impl Requests {
    /// Returns a function that updates [`Handle::status`]: the sequences that are begun and those that wait.
    pub fn status(&self) -> impl Fn(usize, usize) + Send + 'static {
        let shared = self.shared.clone();
        move |begun, waiting| {
            let mut status = shared.status();
            (status.begun, status.waiting) = (begun, waiting);
        }
    }

    fn admit(&mut self, request: Generate, mut told: Teller, place: Place) -> Option<Asked> {
        let (key, user) = (request.key, request.user);
        let Prepared { prompt, options, dropped_messages, parts } = match self.elsewhere.prepare(request) {
            Ok(prepared) => prepared,
            Err(error) => {
                told.tell(Err(error));
                return None;
            }
        };
        told.tell(Ok(Told::Begun { prompt_tokens: prompt.len(), dropped_messages, parts: Box::new(parts) }));
        let tokenizer = self.elsewhere.tokenizer.clone().ok();
        let eog = || tokenizer.as_deref().map_or(&[][..], Tokenizer::eog).to_vec();
        Some(Asked {
            key,
            user,
            most: options.most().min(self.elsewhere.facts.n_ctx - prompt.len()),
            sampling: options.sampling,
            stop_tokens: options.stop_tokens.clone().unwrap_or_else(eog),
            words: Words::new(&options.shown, &options.stop),
            prompt,
            told,
            tokenizer,
            tokens: Vec::new(),
            text: String::new(),
            asked: Instant::now(),
            first: None,
            _place: place,
        })
    }
}

impl Iterator for Requests {
    type Item = Asked;

    fn next(&mut self) -> Option<Asked> {
        loop {
            match self.jobs.recv().ok()? {
                Job::Generate { request, told, place } => {
                    if let Some(asked) = self.admit(request, told, place) {
                        return Some(asked);
                    }
                }
                Job::Embed { told, .. } => {
                    let error = ModelError::NoPooling { architecture: self.elsewhere.facts.architecture };
                    // The receiver may be gone.
                    let _ = told.send(Err(HandleError::from(EngineError::from(error))));
                }
            }
        }
    }
}

impl Asked {
    /// Returns whether anybody still listens.
    pub fn is_heard(&self) -> bool {
        self.told.is_heard()
    }

    /// Sends the next token; returns whether to continue.
    pub fn say(&mut self, token: u32) -> Go {
        if self.stop_tokens.contains(&token) {
            return Go::Ended;
        }
        self.first.get_or_insert_with(Instant::now);
        self.tokens.push(token);
        let (text, stopped) = match &self.tokenizer {
            Some(tokenizer) => self.words.push(tokenizer, token),
            None => ("", false),
        };
        self.text.push_str(text);
        let piece = Told::Piece { token: Some(token), text: text.into(), log_prob: None };
        match self.told.tell(Ok(piece)) {
            false => Go::Unheard,
            true if stopped => Go::Ended,
            true => Go::On,
        }
    }

    /// Ends the answer.
    pub fn end(mut self, finish: Finish) {
        let tail = self.words.finish();
        self.text.push_str(tail);
        if !tail.is_empty() {
            self.told.tell(Ok(Told::Piece { token: None, text: tail.into(), log_prob: None }));
        }
        let first = self.first.unwrap_or_else(Instant::now);
        let outcome = Outcome {
            prompt_tokens: self.prompt.len(),
            cached_tokens: 0,
            tokens: self.tokens,
            text: self.text,
            finish,
            waited_ms: 0.0,
            prefill_ms: (first - self.asked).as_secs_f64() * 1e3,
            decode_ms: since(first),
            drafted_tokens: 0,
            accepted_tokens: 0,
            overflow: None,
        };
        self.told.tell(Ok(Told::Ended(Box::new(outcome))));
    }

    /// Ends the answer with an error.
    pub fn fail(mut self, error: EngineError) {
        self.told.tell(Err(error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::Prompt;
    use crate::native::block_on;
    use model::BytesSource;

    const GAB: &[u8] = include_bytes!("../../../models/gab-q4_0.gguf");

    fn open() -> (Handle, Requests) {
        let elsewhere = block_on(Elsewhere::read(&BytesSource(GAB), Some(64))).unwrap();
        elsewhere.open(Limits::default(), Status::default())
    }

    #[test]
    fn tokens_of_elsewhere_become_an_answer() {
        let (handle, mut requests) = open();
        let request = Generate::new(Prompt::Text("Once upon a time".into())).with(|options| {
            options.max_tokens = Some(8);
            options.stop = vec![" the end".into()];
        });
        let answer = handle.generate(request).unwrap();
        let mut asked = requests.next().unwrap();
        let tokenizer = handle.tokenizer().unwrap().clone();
        assert_eq!(tokenizer.decode(&asked.prompt, false).trim(), "Once upon a time");
        assert_eq!((asked.most, asked.sampling), (8, Sampling::Greedy));
        let said = tokenizer.encode(" a cat sat", false, false);
        assert!(said.iter().all(|token| asked.say(*token) == Go::On));
        asked.end(Finish::Length);
        let outcome = block_on(answer.whole()).unwrap();
        assert_eq!((outcome.text.trim(), outcome.finish), ("a cat sat", Finish::Length));
        assert_eq!(outcome.tokens, said);
    }

    #[test]
    fn who_leaves_is_not_answered_and_what_only_an_engine_can_do_is_refused() {
        let (handle, mut requests) = open();
        let biased = Generate::new(Prompt::Text("Once".into())).with(|options| options.adjust.min_p = 0.5);
        let refused = handle.generate(biased).unwrap();
        let left = handle.generate(Generate::new(Prompt::Text("Once".into()))).unwrap();
        let mut asked = requests.next().unwrap();
        drop(left);
        assert_eq!(asked.say(5), Go::Unheard);
        let error = block_on(refused.whole()).unwrap_err().to_string();
        assert!(error.contains("leave out penalties"), "{error}");
        drop(handle);
        assert!(requests.next().is_none());
    }
}
