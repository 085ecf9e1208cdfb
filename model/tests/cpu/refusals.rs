//! Requests and files that are refused, with an error of one line that names cause and remedy.

use std::cell::Cell;
use std::rc::Rc;

use backend_api::run::NativeHost;

use crate::common::{self, block_on, load, models};
use anygpu_model::{
    BytesSource, Embedder, Finish, GenerateOptions, Gguf, Head, Model, ModelError, Overflow, Piece, Pooling, Recipe,
    Sampling, Session, Stage,
};
use reference_cpu::{Cpu, Options};

fn session(n_ctx: usize) -> Session {
    let backend = Rc::new(Cpu::new(Options { fast: true, ..Default::default() }));
    Session::new(load(models("fixtures/llama-q8_0.gguf"), Some(n_ctx), backend)).unwrap()
}

fn refused(error: ModelError, parts: &[&str]) {
    let message = error.to_string();
    assert!(!message.contains('\n') && message.len() < 300, "{message}");
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

/// Loads the fixture with every occurrence of one name replaced by another of the same length.
fn renamed(from: &str, to: &str) -> Result<Recipe, ModelError> {
    assert_eq!(from.len(), to.len());
    let mut bytes = models("fixtures/llama-q8_0.gguf");
    let places: Vec<usize> =
        (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from.as_bytes())).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| bytes[*at..at + to.len()].copy_from_slice(to.as_bytes()));
    Recipe::new(&Gguf::from_bytes(&bytes)?, None)
}

#[test]
fn files() {
    refused(renamed("general.architecture", "general.architectur_").unwrap_err(), &["general.architecture", "missing"]);
    refused(renamed("llama", "rwkv7").unwrap_err(), &["\"rwkv7\"", "gpt2, llama", "choose another"]);
    refused(renamed("llama", "camel").unwrap_err(), &["\"camel\"", "qwen2, qwen3, gemma2, gemma3"]);
    refused(renamed("llama.block_count", "llama.block_cound").unwrap_err(), &["llama.block_count", "missing"]);
    refused(
        renamed("blk.0.attn_norm", "blk.0.attn_nurm").unwrap_err(),
        &["blk.0.attn_norm.weight", "missing", "llama"],
    );
    refused(renamed("token_embd", "token_emdd").unwrap_err(), &["token_embd.weight", "missing"]);
    let gguf = Gguf::from_bytes(&models("fixtures/llama-q8_0.gguf")).unwrap();
    refused(Recipe::new(&gguf, Some(0)).unwrap_err(), &["context of 0"]);
    refused(Recipe::new(&gguf, Some(usize::MAX)).unwrap_err(), &["context of", "1 to 256"]);
}

#[test]
fn memory_that_does_not_suit_a_model() {
    let mut bytes = models("fixtures/llama-q8_0.gguf");
    let recipe = |bytes: &[u8], n_ctx| Recipe::new(&Gguf::from_bytes(bytes).unwrap(), n_ctx).unwrap();
    let usual = recipe(&bytes, None);
    assert_eq!(usual.check_memory(None), Ok(()));
    let cpu = Cpu::new(Options { fast: false, ..Default::default() });
    let planned = Model::footprint(&usual, &cpu).unwrap();
    let most = planned.weights + planned.states;
    assert_eq!(usual.check_memory(Some(most)), Ok(()));
    refused(
        usual.check_memory(Some(most / 2)).unwrap_err(),
        &["weights and states", "256 tokens", "allow more memory"],
    );
    // This small file claims a training context of millions of tokens.
    let key = b"llama.context_length";
    let at = (0..bytes.len()).find(|at| bytes[*at..].starts_with(key)).unwrap() + key.len() + 4;
    bytes[at..at + 4].copy_from_slice(&4_000_000u32.to_le_bytes());
    let long = recipe(&bytes, Some(3_000_000));
    refused(long.check_memory(None).unwrap_err(), &["states of this model take", "3000000 tokens", "smaller context"]);
    assert_eq!(long.check_memory(Some(u64::MAX)), Ok(()), "a caller may allow it");
    assert_eq!(recipe(&bytes, None).check_memory(None), Ok(()), "by default a context is not as long");
}

#[test]
fn texts_of_embedding_models_and_embeddings_of_others() {
    let recipe = |file: &str| Recipe::new(&Gguf::from_bytes(&models(&format!("fixtures/{file}.gguf"))).unwrap(), None);
    for (file, name) in [("bert-mean", "bert"), ("qwen3-embed-last", "qwen3")] {
        let encoder = recipe(file).unwrap();
        assert_eq!(encoder.head(), Head::EMBEDDING);
        for head in [Head::NONE, Head::GREEDY, Head::LOGITS] {
            refused(encoder.graph(1, head).unwrap_err(), &[name, "makes embeddings and no text"]);
        }
        let backend = Rc::new(Cpu::new(Options { fast: true, ..Default::default() }));
        let model = load(models(&format!("fixtures/{file}.gguf")), None, backend);
        refused(Session::new(model).err().unwrap(), &["makes embeddings and no text"]);
    }
    let text = recipe("llama-q8_0").unwrap();
    refused(text.graph(1, Head::EMBEDDING).unwrap_err(), &["llama", "no pooling", "mean, cls, last or none"]);
    let backend = Rc::new(Cpu::new(Options { fast: true, ..Default::default() }));
    refused(Embedder::new(load(models("fixtures/llama-q8_0.gguf"), None, backend)).err().unwrap(), &["no pooling"]);
}

#[test]
fn texts_of_models_whose_tokens_see_each_other() {
    let bytes = models("fixtures/families/dream-tied.gguf");
    let recipe = || Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), None).unwrap();
    let words = ["dream", "diffusion", "logits"];
    refused(recipe().makes_text().unwrap_err(), &words);
    refused(recipe().graph(1, Head::GREEDY).unwrap_err(), &words);
    refused(recipe().states_of_sequences(8, 2).unwrap_err(), &words);
    let stage = Stage { embed: true, blocks: 0..1, head: false };
    refused(recipe().with_stage(stage).unwrap_err(), &words);
    let backend = Rc::new(Cpu::new(Options { fast: true, ..Default::default() }));
    let (host, mut session) = (NativeHost::default(), Session::new(load(bytes.clone(), None, backend)).unwrap());
    let options = GenerateOptions::default();
    for prompt in [&[1, 2][..], &[1, 2, 3, 4, 5, 6]] {
        refused(block_on(session.generate(prompt, &options, None, &host, &mut |_| {})).unwrap_err(), &words);
    }
    session.rewind(0);
    let logits = block_on(session.logits(&[1, 2], true, &host)).unwrap();
    refused(block_on(session.logits(&[3], true, &host)).unwrap_err(), &["see each other", "rewind"]);
    // The beginning of a text is not kept, since it sees the rest.
    assert_eq!(session.resume(&[1, 2]), [1, 2]);
    assert_eq!(block_on(session.logits(&[1, 2], true, &host)).unwrap(), logits);
}

#[test]
fn poolings_that_files_name() {
    let with = |pooling: u32| {
        let mut bytes = models("fixtures/bert-mean.gguf");
        let key = b"bert.pooling_type";
        let at = (0..bytes.len()).find(|at| bytes[*at..].starts_with(key)).unwrap() + key.len() + 4;
        bytes[at..at + 4].copy_from_slice(&pooling.to_le_bytes());
        Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), None)
    };
    let vectors = [Pooling::None, Pooling::Mean, Pooling::Cls, Pooling::Last].map(Some);
    assert_eq!([0, 1, 2, 3].map(|number| with(number).unwrap().pooling()), vectors);
    refused(with(4).unwrap_err(), &["bert", "no classifier", "reranker"]);
    refused(with(77).unwrap_err(), &["bert.pooling_type", "77"]);
}

#[test]
fn requests() {
    let (host, mut session) = (NativeHost::default(), session(16));
    let mut generate = |prompt: &[u32], options: &GenerateOptions| {
        session.rewind(0);
        block_on(session.generate(prompt, options, None, &host, &mut |_| {}))
    };
    let plain = GenerateOptions::default();
    refused(generate(&[], &plain).unwrap_err(), &["no tokens"]);
    refused(generate(&[1; 17], &plain).unwrap_err(), &["17 tokens", "16", "shorten"]);
    refused(generate(&[1, 96], &plain).unwrap_err(), &["token 96", "96"]);
    let with = |sampling| GenerateOptions { sampling, ..GenerateOptions::default() };
    let random = |temperature, top_k, top_p| with(Sampling::Random { temperature, top_k, top_p, seed: 1 });
    refused(generate(&[1], &random(f32::NAN, 0, 1.0)).unwrap_err(), &["temperature"]);
    refused(generate(&[1], &random(-1.0, 0, 1.0)).unwrap_err(), &["temperature"]);
    refused(generate(&[1], &random(1.0, 65, 1.0)).unwrap_err(), &["top-k", "64"]);
    refused(generate(&[1], &random(1.0, 0, 0.0)).unwrap_err(), &["top-p"]);
    refused(
        generate(&[1], &GenerateOptions { fetch_interval: Some(0), ..plain.clone() }).unwrap_err(),
        &["fetch interval 0"],
    );
    for long in [
        GenerateOptions { stop: vec!["x".repeat(40_000)], ..plain.clone() },
        GenerateOptions { stop_tokens: Some(vec![1; 40_000]), ..plain.clone() },
    ] {
        let refused = generate(&[1], &long).unwrap_err().to_string();
        assert!(refused.contains("40000") && refused.len() < 300, "{refused}");
    }
    let stop = GenerateOptions { stop: vec!["x".into()], ..plain };
    refused(generate(&[1], &stop).unwrap_err(), &["stop strings", "tokenizer"]);
}

#[test]
fn texts_end_at_the_context_at_stop_tokens_and_when_cancelled() {
    let (host, mut session) = (NativeHost::default(), session(16));
    let mut generate = |prompt: &[u32], options: &GenerateOptions| {
        session.rewind(0);
        block_on(session.generate(prompt, options, None, &host, &mut |_| {})).unwrap()
    };
    let options = GenerateOptions { overflow: Overflow::Stop, max_tokens: Some(100), ..GenerateOptions::default() };
    let whole = generate(&[1, 2, 3], &options);
    assert_eq!((whole.tokens.len(), whole.finish), (13, Finish::Length));
    assert!(generate(&[1; 16], &options).tokens.is_empty());

    for fetch_interval in [None, Some(1), Some(3), Some(8), Some(64)] {
        for n in 0..14 {
            let options = GenerateOptions { max_tokens: Some(n), fetch_interval, ..options.clone() };
            assert_eq!(generate(&[1, 2, 3], &options).tokens, whole.tokens[..n.min(13)], "{n} by {fetch_interval:?}");
        }
        for stop in &whole.tokens {
            let options = GenerateOptions { stop_tokens: Some(vec![*stop]), fetch_interval, ..options.clone() };
            let first = whole.tokens.iter().position(|t| t == stop).unwrap();
            let stopped = generate(&[1, 2, 3], &options);
            assert_eq!((&stopped.tokens[..], stopped.finish), (&whole.tokens[..first], Finish::Stop));
        }
    }

    let cancel = Rc::new(Cell::new(true));
    let cancelled = generate(&[1, 2, 3], &GenerateOptions { cancel: Some(cancel), ..options });
    assert_eq!((cancelled.tokens.len(), cancelled.finish), (0, Finish::Cancelled));
}

#[test]
fn a_long_prompt_is_cancelled_between_its_steps() {
    for file in ["fixtures/llama-q8_0.gguf", "fixtures/falcon-h1-tiny.gguf"] {
        let backend = Rc::new(Cpu::new(Options { fast: true, ..Default::default() }));
        let (host, mut session) =
            (NativeHost::default(), Session::new(load(models(file), Some(256), backend)).unwrap());
        let prompt: Vec<u32> = (0..200).map(|at| 1 + at % 50).collect();
        let options = GenerateOptions { max_tokens: Some(8), ..GenerateOptions::default() };
        let whole = block_on(session.generate(&prompt, &options, None, &host, &mut |_| {})).unwrap();

        session.rewind(0);
        let cancel = Rc::new(Cell::new(false));
        let cancelling = GenerateOptions { cancel: Some(cancel.clone()), ..options.clone() };
        let mut pauses = 0;
        let mut on_piece = |piece: Piece<'_>| {
            pauses += usize::from(piece.is_pause());
            cancel.set(true);
        };
        let cancelled = block_on(session.generate(&prompt, &cancelling, None, &host, &mut on_piece)).unwrap();
        assert_eq!((cancelled.tokens.len(), cancelled.finish, pauses), (0, Finish::Cancelled, 1), "{file}");
        let computed = session.tokens().len();
        assert!((1..199).contains(&computed), "{file}: {computed}");

        // The text continues from there as if nothing had happened.
        let ended = block_on(session.generate_after(&prompt, &options, None, &host, &mut |_| {})).unwrap();
        assert_eq!((ended.tokens, ended.cached_tokens), (whole.tokens, computed), "{file}");
    }
}

#[test]
fn seeds_repeat_and_texts_resume() {
    let (host, mut session) = (NativeHost::default(), session(64));
    let mut generate = |seed, fetch_interval| {
        session.rewind(0);
        let sampling = Sampling::Random { temperature: 1.5, top_k: 0, top_p: 1.0, seed };
        let options = GenerateOptions { max_tokens: Some(20), sampling, fetch_interval, ..GenerateOptions::default() };
        block_on(session.generate(&[5, 6], &options, None, &host, &mut |_| {})).unwrap().tokens
    };
    let first = generate(1, Some(4));
    assert_eq!(first, generate(1, None));
    assert_ne!(first, generate(2, Some(4)));

    // States that a session computed before may be reused, and must give the results of a fresh start.
    let next: Vec<u32> = [&[5, 6][..], &first[..10], &[9, 8, 7]].concat();
    let rest = session.resume(&next);
    let kept = next.len() - rest.len();
    let resumed = block_on(session.logits(rest, false, &host)).unwrap();
    session.rewind(0);
    let fresh = block_on(session.logits(&next, false, &host)).unwrap();
    assert!(kept >= 2 && common::nmse(&resumed, &fresh) < 1e-9);
}

#[test]
fn sessions_of_stages() {
    let bytes = models("fixtures/llama-q8_0.gguf");
    let recipe = Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), None).unwrap();
    let recipe = recipe.with_stage(Stage { embed: true, blocks: 0..1, head: false }).unwrap();
    let backend = Rc::new(Cpu::new(Options::default()));
    let (source, host) = (BytesSource(bytes), NativeHost::default());
    let model = block_on(Model::load(&source, recipe, backend, &host, &mut |_, _| {})).unwrap();
    refused(Session::new(Rc::new(model)).err().unwrap(), &["stage", "whole model"]);
}
