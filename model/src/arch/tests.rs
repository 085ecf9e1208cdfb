//! Tests of a model with recurrent states, whose text is extended and rewound.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use backend_api::op::{Norm, RopeTable, ShortConv};
use backend_api::run::NativeHost;
use backend_api::{DType, Update, compare};
use reference_cpu::{Cpu, Options};

use super::keys::Keys;
use super::recorder::Recorder;
use super::weights::Tensors;
use super::{Architecture, Contents, Recipe, Sizes, Stage};
use crate::arch::identity::Identifier;
use crate::arch::kv_cache::KvCache;
use crate::error::ModelError;
use crate::gguf::{BytesSource, Gguf};
use crate::runtime::Model;
use crate::runtime::Session;
use crate::{GenerateOptions, Piece};

const TAPS: usize = 4;
const TEXT: [u32; 14] = [5, 6, 90, 3, 41, 7, 7, 12, 30, 8, 77, 2, 19, 64];

/// Model with nothing but convolutions, on the weights of another model's file. The taps are sines and cosines.
#[derive(Debug)]
struct Convolutions {
    sizes: Sizes,
    norm: Norm,
}

impl Architecture for Convolutions {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let n_embd = self.sizes.n_embd;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, _, x| {
            let taps = Contents::Rope(RopeTable::plain(TAPS, 100.0), None);
            let kernel = m.weight(m.scoped("conv"), &[n_embd, TAPS], DType::F32, taps)?;
            let tail = m.state(m.scoped("tail"), &[TAPS - 1, n_embd], DType::F32, Update::Replace)?;
            let normed = m.norm("attn_norm", self.norm, x)?;
            let y: [_; 2] = m.ops(ShortConv, &[tail, normed, kernel])?;
            m.add(y[0], x)
        })?;
        m.output(x, |m, x| {
            let x = m.norm("output_norm", self.norm, x)?;
            m.logits(x)
        })
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return result;
        }
    }
}

struct Text {
    session: Session,
    host: NativeHost,
}

impl Text {
    fn new() -> Text {
        let bytes = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../models/fixtures/llama-q8_0.gguf")).unwrap();
        let gguf = Gguf::from_bytes(&bytes).unwrap();
        let tensors = Tensors::new(&gguf, "llama");
        let keys = Keys { metadata: &gguf.metadata, tensors: &tensors, n_ctx: Some(64) };
        let architecture = Convolutions { sizes: keys.sizes().unwrap(), norm: keys.rms_norm().unwrap() };
        let stage = Stage::whole(&architecture.sizes);
        let (architecture, kv_cache) = (Box::new(architecture), KvCache::default());
        let recipe = Recipe {
            architecture,
            tensors,
            stage,
            kv_cache,
            causal: true,
            pooling: None,
            classifier: None,
            weights: Vec::new(),
            identifier: Identifier::new("llama", &gguf.metadata),
        };
        let recipe = recipe.with_listed_weights().unwrap();
        let (host, cpu) = (NativeHost::default(), Rc::new(Cpu::new(Options { fast: false, ..Default::default() })));
        let model = block_on(Model::load(&BytesSource(bytes), recipe, cpu, &host, &mut |_, _| {})).unwrap();
        Text { session: Session::new(Rc::new(model)).unwrap(), host }
    }

    /// Adds tokens, and returns the logits of all.
    fn add(&mut self, tokens: &[u32]) -> Vec<f32> {
        block_on(self.session.logits(tokens, true, &self.host)).unwrap()
    }

    /// Generates `n` tokens, with several surplus steps submitted.
    fn generate(&mut self, prompt: &[u32], n: usize) -> Vec<u32> {
        let (made, cancel) = (Cell::new(0), Rc::new(Cell::new(false)));
        let options = GenerateOptions {
            fetch_interval: Some(4),
            stop_tokens: Some(Vec::new()),
            cancel: Some(cancel.clone()),
            ..GenerateOptions::default()
        };
        let on_piece = &mut |_: Piece<'_>| {
            made.set(made.get() + 1);
            cancel.set(made.get() >= n);
        };
        block_on(self.session.generate(prompt, &options, None, &self.host, on_piece)).unwrap().tokens
    }
}

fn agree(found: &[f32], expected: &[f32]) {
    let error = compare::nmse(&found.into(), &expected.into()).unwrap();
    assert!(error <= 1e-12, "NMSE {error:.1e}");
}

/// Returns the logits of [`TEXT`], computed one token at a time.
fn one_by_one() -> (Vec<f32>, usize) {
    let mut text = Text::new();
    let logits: Vec<f32> = TEXT.iter().flat_map(|token| text.add(&[*token])).collect();
    let n_vocab = logits.len() / TEXT.len();
    (logits, n_vocab)
}

#[test]
fn steps_of_any_rows_leave_the_same_states() {
    let (expected, _) = one_by_one();
    // Steps of 7 tokens have an unused row.
    for parts in [&[14][..], &[7, 7], &[3, 1, 10], &[1, 7, 3, 3]] {
        let (mut text, mut at, mut logits) = (Text::new(), 0, Vec::new());
        for part in parts {
            logits.extend(text.add(&TEXT[at..at + part]));
            at += part;
        }
        agree(&logits, &expected);
    }
}

#[test]
fn a_text_goes_back() {
    let (expected, n_vocab) = one_by_one();
    let mut text = Text::new();
    text.add(&TEXT);
    for position in [5, 0, 13, 14] {
        text.session.rewind(position);
        assert_eq!(text.session.tokens(), &TEXT[..position]);
        if position < TEXT.len() {
            agree(&text.add(&TEXT[position..]), &expected[position * n_vocab..]);
        }
        assert_eq!(text.session.tokens(), &TEXT);
    }
    // A prompt continues from the position of the states, and starts anew from any other.
    assert_eq!(text.session.resume(&[&TEXT[..], &[1, 2]].concat()), [1, 2]);
    let other = [&TEXT[..9], &[1, 2]].concat();
    assert_eq!(text.session.resume(&other), other);
    assert!(text.session.tokens().is_empty());
}

#[test]
fn steps_under_way_are_undone() {
    let (mut text, mut fresh) = (Text::new(), Text::new());
    let made = text.generate(&TEXT[..5], 6);
    let known = [&TEXT[..5], &made[..made.len() - 1]].concat();
    assert_eq!(text.session.tokens(), known);
    let went_on = text.add(&TEXT[5..]);
    fresh.add(&known);
    agree(&went_on, &fresh.add(&TEXT[5..]));
    assert_eq!(text.session.tokens(), fresh.session.tokens());
}
