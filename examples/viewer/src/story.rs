//! The story: an engine on the window's device, which runs for a moment in each frame.

use anygpu::native::open_files;
use anygpu::{
    Backend, ByteSource, BytesSource, Engine, EngineOptions, GenerateOptions, Host, LogProb, Piece, Sampling,
};
use anyhow::{Context as _, Result};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::Args;

/// The story model `gab` (Apache-2.0).
const GAB: &[u8] = include_bytes!("../../../models/gab-q4_0.gguf");
/// Number of likeliest tokens to show.
const CANDIDATES: usize = 6;
/// Longest wait of a frame for a token, so that the window stays responsive.
const PATIENCE: Duration = Duration::from_millis(15);

/// A candidate for the newest token.
pub struct Candidate {
    pub text: String,
    pub chance: f32,
    pub is_taken: bool,
}

/// Everything that the window shows of the story.
#[derive(Default)]
pub struct Told {
    /// Pieces of the text, one for each token.
    pub pieces: Vec<String>,
    /// Likeliest tokens at the position of the newest one.
    pub candidates: Vec<Candidate>,
    /// Tokens of the prompt, and those that were written.
    pub tokens: Vec<u32>,
    pub device: String,
}

/// Host without wake-ups: futures are polled again in the same frame or in the next one.
struct Frames(Instant);

impl Host for Frames {
    fn wake_later(&self, _: &Waker) {}

    fn now_ms(&self) -> f64 {
        self.0.elapsed().as_secs_f64() * 1e3
    }
}

/// A story that is being written.
pub struct Story {
    pub told: Rc<RefCell<Told>>,
    writing: Option<Pin<Box<dyn Future<Output = Result<Engine>>>>>,
    /// Engine of a finished story, whose textures or buffers are still drawn.
    engine: Option<Engine>,
    /// Time at which the next token is due.
    due: Instant,
    every: Duration,
}

impl Story {
    /// Begins a story on a backend.
    pub fn new(args: &Args, backend: Box<dyn Backend>) -> Story {
        let told = Rc::new(RefCell::new(Told::default()));
        let every = Duration::try_from_secs_f64(1.0 / args.speed.max(1e-3)).unwrap_or_default();
        let writing = Box::pin(write(args.clone(), backend, told.clone()));
        Story { writing: Some(writing), engine: None, told, due: Instant::now(), every }
    }

    /// Continues the story until a token comes or the frame must be drawn. Returns its result once, when it ends.
    pub fn advance(&mut self) -> Option<Result<()>> {
        let begun = Instant::now();
        let before = self.told.borrow().pieces.len();
        while begun >= self.due && begun.elapsed() < PATIENCE {
            let polled = self.writing.as_mut()?.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(ended) = polled {
                self.writing = None;
                return Some(ended.map(|engine| self.engine = Some(engine)));
            }
            if self.told.borrow().pieces.len() > before {
                self.due = begun + self.every;
            }
        }
        None
    }

    pub fn is_written(&self) -> bool {
        self.writing.is_none()
    }

    /// Drops the engine and everything that it has on the device.
    pub fn end(&mut self) {
        (self.writing, self.engine) = (None, None);
    }
}

async fn write(args: Args, backend: Box<dyn Backend>, told: Rc<RefCell<Told>>) -> Result<Engine> {
    let source: Box<dyn ByteSource> = match &args.model {
        Some(path) => Box::new(open_files(path).with_context(|| format!("cannot open the model {}", path.display()))?),
        None => Box::new(BytesSource(GAB)),
    };
    told.borrow_mut().device = backend.info().adapter.clone();
    let host: Rc<dyn Host> = Rc::new(Frames(Instant::now()));
    let (options, progress) = (EngineOptions::default(), &mut |_| {});
    let engine = Engine::with_backend(backend, &*source, &options, host, progress).await?;
    let prompt = engine.encode(&args.prompt)?;
    told.borrow_mut().tokens = prompt.clone();
    let random = |seed| Sampling::Random { temperature: 0.8, top_k: 40, top_p: 0.95, seed };
    let options = GenerateOptions {
        max_tokens: Some(args.tokens),
        log_probs: Some(CANDIDATES),
        sampling: args.seed.map_or(Sampling::Greedy, random),
        ..engine.generate_options()
    };
    let on_piece = &mut |piece: Piece<'_>| {
        if piece.is_pause() {
            return;
        }
        let told = &mut *told.borrow_mut();
        told.pieces.push(piece.text.into());
        told.tokens.extend(piece.token);
        if let Some(log_prob) = piece.log_prob {
            told.candidates = candidates(&engine, log_prob);
        }
    };
    engine.generate(&mut engine.session()?, &prompt, &options, on_piece).await?;
    Ok(engine)
}

fn candidates(engine: &Engine, log_prob: &LogProb) -> Vec<Candidate> {
    let entry = log_prob.entry(engine.tokenizer().ok());
    let rows = log_prob.top.iter().zip(entry.top_logprobs);
    rows.map(|((id, log), told)| Candidate { text: told.token, chance: log.exp(), is_taken: *id == log_prob.token })
        .collect()
}
