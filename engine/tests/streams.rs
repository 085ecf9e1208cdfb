//! Texts as streams.

use anygpu::native::block_on;
use anygpu::{Choice, Engine, GenerateOptions, Generated, Overflow};
use futures_util::StreamExt;

/// A transformer, and models with states that steps rewrite.
const FILES: [&str; 3] =
    ["../models/gab-q4_0.gguf", "../models/fixtures/mamba-tiny.gguf", "../models/fixtures/qwen3next-tiny.gguf"];

fn engine(file: &str) -> Engine {
    block_on(Engine::builder().backend(Choice::Cpu).n_ctx(64).open(file)).unwrap()
}

/// Some tokens that each of the models has.
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
        let on_piece = &mut |piece: anygpu::Piece<'_>| told.push(format!("{:?}", Generated::from(piece)));
        let whole = block_on(engine.generate(&mut session, &PROMPT, &options, on_piece)).unwrap();
        let mut session = engine.session().unwrap();
        let mut events: Vec<Generated> =
            block_on(engine.stream(&mut session, &PROMPT, &options).map(Result::unwrap).collect());
        let Some(Generated::Ended(end)) = events.pop() else { panic!("{file}: no end") };
        assert_eq!((&end.text, &end.tokens), (&whole.text, &whole.tokens), "{file}");
        let shifts = events.iter().filter(|event| matches!(event, Generated::Overflowed(_))).count();
        assert!(shifts > 0 && events.len() == told.len(), "{file}: {shifts}");
        // Of what made room the time differs.
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

#[test]
fn an_error_ends_a_stream() {
    let engine = engine(FILES[0]);
    let options = GenerateOptions { max_tokens: Some(4), ..engine.generate_options() };
    let mut session = engine.session().unwrap();
    let told: Vec<_> = block_on(engine.stream(&mut session, &[], &options).collect());
    assert!(told.len() == 1 && told[0].is_err(), "{told:?}");
}
