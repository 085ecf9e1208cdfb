//! Tests of texts as streams.

use anygpu::native::block_on;
use anygpu::{Choice, Engine, GenerateOptions, Generated, Message, Overflow, TextStream};
use futures_util::StreamExt;

/// A transformer, and models with recurrent states.
const FILES: [&str; 3] =
    ["../models/gab-q4_0.gguf", "../models/fixtures/mamba-tiny.gguf", "../models/fixtures/qwen3next-tiny.gguf"];

fn engine(file: &str) -> Engine {
    block_on(Engine::builder().backend(Choice::Cpu).n_ctx(64).open(file)).unwrap()
}

/// Tokens that each of the models has.
const PROMPT: [u32; 5] = [5, 9, 3, 17, 4];

#[test]
fn a_stream_tells_what_a_callback_is_told() {
    for file in FILES {
        let engine = engine(file);
        let options = GenerateOptions {
            max_tokens: Some(70),
            log_probs: Some(1),
            overflow: Overflow::Shift { keep: 1 },
            stop_tokens: Some(Vec::new()),
            ..engine.generate_options()
        };
        let mut session = engine.session().unwrap();
        let mut told = Vec::new();
        let on_piece = &mut |piece: anygpu::Piece<'_>| {
            if !piece.is_pause() {
                told.push(format!("{:?}", Generated::from(piece)));
            }
        };
        let whole = block_on(engine.generate(&mut session, &PROMPT, &options, on_piece)).unwrap();
        let mut session = engine.session().unwrap();
        let mut events: Vec<Generated> =
            block_on(engine.stream(&mut session, &PROMPT, &options).map(Result::unwrap).collect());
        let Some(Generated::Ended(end)) = events.pop() else { panic!("{file}: no end") };
        assert_eq!((&end.text, &end.tokens), (&whole.text, &whole.tokens), "{file}");
        let shifts = events.iter().filter(|event| matches!(event, Generated::Overflowed(_))).count();
        assert!(shifts > 0 && events.len() == told.len(), "{file}: {shifts}");
        // Reports of shifts differ in the time they took.
        let pieces = events.iter().zip(&told).filter(|(event, _)| matches!(event, Generated::Piece { .. }));
        for (event, told) in pieces {
            assert_eq!(&format!("{event:?}"), told, "{file}");
        }
    }
}

#[test]
fn a_text_comes_while_it_is_generated_and_may_be_left() {
    for file in FILES {
        let engine = engine(file);
        let options = GenerateOptions {
            max_tokens: Some(20),
            stop_tokens: Some(Vec::new()),
            fetch_interval: Some(1),
            ..engine.generate_options()
        };
        let mut session = engine.session().unwrap();
        let text = |session: &mut anygpu::Session| {
            block_on(engine.generate(session, &PROMPT, &options, &mut |_| {})).unwrap().tokens
        };
        let whole = text(&mut session);
        for taken in [0, 1, 7] {
            let stream = engine.stream(&mut session, &PROMPT, &options);
            let some: Vec<_> = block_on(stream.take(taken).collect());
            assert!(
                some.iter().all(|told| matches!(told, Ok(Generated::Piece { .. }))) && some.len() == taken,
                "{file}"
            );
            if taken > 0 {
                assert!(session.tokens().is_empty(), "{file}: what was computed is forgotten");
            }
            assert_eq!(text(&mut session), whole, "{file} after {taken}");
        }
    }
}

/// Returns the whole text of a stream, and how many tokens of its prompt were reused.
fn whole(stream: TextStream<'_>) -> (String, usize) {
    let (mut all, mut cached) = (String::new(), None);
    for told in block_on(stream.collect::<Vec<_>>()) {
        match told.unwrap() {
            Generated::Piece { text, .. } => all.push_str(&text),
            Generated::Overflowed(overflow) => panic!("{overflow:?}"),
            Generated::Ended(generation) => cached = Some(generation.cached_tokens),
        }
    }
    (all, cached.unwrap())
}

#[test]
fn a_conversation_streams_and_goes_on_with_what_was_computed() {
    let open = |file: &str| block_on(Engine::builder().backend(Choice::Cpu).open(file)).unwrap();
    let engine = open("../models/fixtures/by-heart.gguf");
    let options = GenerateOptions { max_tokens: Some(60), ..engine.generate_options() };
    let mut messages = vec![Message::new("user", "Is it warm?")];
    let mut session = engine.session().unwrap();
    let (text, cached) = whole(engine.chat_stream(&mut session, &messages, &options));
    assert_eq!((text.as_str(), cached), ("It is warm.", 0));
    let prompt = |messages: &[Message]| engine.chat_prompt(messages, &options).unwrap().tokens;
    let first = prompt(&messages);
    messages.extend([Message::new("assistant", text), Message::new("user", "Still?")]);
    // The template writes earlier answers differently.
    let shared = first.iter().zip(prompt(&messages)).take_while(|(a, b)| *a == b).count();
    assert!(shared > 1);
    assert_eq!(whole(engine.chat_stream(&mut session, &messages, &options)).1, shared);
    // A model without a template cannot answer, and the session keeps its tokens.
    let has = session.tokens().len();
    let mute = open(FILES[1]);
    let told: Vec<_> = block_on(mute.chat_stream(&mut session, &messages, &options).collect());
    assert!(told.len() == 1 && told[0].is_err() && session.tokens().len() == has, "{told:?}");
}

#[test]
fn an_error_ends_a_stream() {
    let engine = engine(FILES[0]);
    let options = GenerateOptions { max_tokens: Some(4), ..engine.generate_options() };
    let mut session = engine.session().unwrap();
    let told: Vec<_> = block_on(engine.stream(&mut session, &[], &options).collect());
    assert!(told.len() == 1 && told[0].is_err(), "{told:?}");
}
