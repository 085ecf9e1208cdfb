//! Texts that outgrow the context, as their readers see them: characters, stop strings and conversations.

use std::rc::Rc;

use anygpu::native::{NativeHost, block_on};
use anygpu::{BytesSource, Engine, EngineOptions, Finish, GenerateOptions, Message, Overflow, Sampling, StreamDecoder};
use reference_cpu::Cpu;

const GAB: &[u8] = include_bytes!("../../models/gab-q4_0.gguf");

fn engine(n_ctx: usize) -> Engine {
    let (cpu, host) = (Box::new(Cpu::new(Default::default())), Rc::new(NativeHost::default()));
    let options = EngineOptions { n_ctx: Some(n_ctx), ..Default::default() };
    block_on(Engine::with_backend(cpu, &BytesSource(GAB), &options, host, &mut |_| {})).unwrap()
}

/// The text, the pieces in which it was told, and where room was made: bytes of the text told so far.
fn tell(engine: &Engine, prompt: &[u32], options: &GenerateOptions) -> (anygpu::Generation, String, Vec<usize>) {
    let (mut told, mut seams) = (String::new(), Vec::new());
    let mut session = engine.session().unwrap();
    let on_piece = &mut |piece: anygpu::Piece<'_>| {
        told += piece.text;
        if piece.overflow.is_some() {
            seams.push(told.len());
        }
    };
    let generation = block_on(engine.generate(&mut session, prompt, options, on_piece)).unwrap();
    assert_eq!(generation.text, told);
    (generation, told, seams)
}

fn shifting(engine: &Engine, prompt: &[u32], tokens: usize) -> GenerateOptions {
    GenerateOptions {
        max_tokens: Some(tokens),
        overflow: Overflow::Shift { keep: engine.kept(prompt) },
        stop_tokens: Some(Vec::new()),
        ..engine.generate_options()
    }
}

#[test]
fn a_stop_string_across_the_place_where_room_was_made_ends_the_text() {
    let engine = engine(32);
    let prompt = engine.encode("Once upon a time").unwrap();
    let options = shifting(&engine, &prompt, 80);
    let (_, told, seams) = tell(&engine, &prompt, &options);
    assert!(seams.len() >= 3 && told.is_ascii(), "{told}");
    for seam in seams {
        let stop = &told[seam - 4..seam + 4];
        let (ended, shown, _) = tell(&engine, &prompt, &GenerateOptions { stop: vec![stop.into()], ..options.clone() });
        assert_eq!((ended.finish, shown.as_str()), (Finish::Stop, &told[..told.find(stop).unwrap()]));
    }
}

/// Candidates of a hot model are often parts of characters.
#[test]
fn a_character_across_the_place_where_room_was_made_is_whole() {
    let long = engine(256);
    let prompt = long.encode("Once").unwrap();
    let sampling = Sampling::Random { temperature: 100.0, top_k: 0, top_p: 1.0, seed: 1 };
    let hot = |engine: &Engine, tokens| GenerateOptions { sampling, ..shifting(engine, &prompt, tokens) };
    let (undisturbed, ..) = tell(&long, &prompt, &hot(&long, 200));
    let tokenizer = long.tokenizer().unwrap();
    // A token after which a character is not whole, as far as it is told.
    let bytes = |id: &u32| tokenizer.decode(&[*id], false);
    let part = undisturbed.tokens.iter().skip(20).position(|id| bytes(id).ends_with(char::REPLACEMENT_CHARACTER));
    let n_ctx = prompt.len() + part.expect("part of a character") + 21;
    let short = engine(n_ctx);
    let (generation, told, seams) = tell(&short, &prompt, &hot(&short, n_ctx));
    assert!(!seams.is_empty());
    let (mut decoder, mut expected) = (StreamDecoder::default(), String::new());
    generation.tokens.iter().for_each(|id| decoder.push(tokenizer, *id, &mut expected));
    let before = expected.len();
    decoder.finish(&mut expected);
    assert!(before > 0 && told == expected);
    // It is the text before the place that was in the middle of a character.
    let mut first = StreamDecoder::default();
    let mut text = String::new();
    generation.tokens[..n_ctx - prompt.len()].iter().for_each(|id| first.push(tokenizer, *id, &mut text));
    assert_eq!(text.len(), seams[0]);
    first.finish(&mut text);
    assert!(text.len() > seams[0], "the character was not whole");
}

#[test]
fn a_conversation_goes_on_for_any_number_of_turns() {
    let engine = engine(160);
    let mut session = engine.session().unwrap();
    let mut messages = vec![Message::new("system", "You tell stories.")];
    let mut dropped = 0;
    for turn in 0..8 {
        messages.push(Message::new("user", format!("What did dragon number {turn} do?")));
        let mut options = shifting(&engine, &[], 16);
        let prompt = engine.chat_prompt(&messages, &options).unwrap();
        options.overflow = Overflow::Shift { keep: prompt.keep };
        options.sampling = Sampling::Random { temperature: 0.8, top_k: 40, top_p: 0.95, seed: turn };
        let text = engine.tokenizer().unwrap().decode(&prompt.tokens, false);
        assert!(text.contains("You tell stories.") && text.contains(&format!("number {turn}")), "{text}");
        assert!(prompt.dropped_messages >= dropped);
        dropped = prompt.dropped_messages;
        let answer = block_on(engine.generate(&mut session, &prompt.tokens, &options, &mut |_| {})).unwrap();
        assert_eq!((answer.tokens.len(), answer.overflow), (16, None), "there was room for the answer");
        messages.push(Message::new("assistant", answer.text));
    }
    assert!(dropped >= 4 && dropped % 2 == 0, "{dropped} messages were left out");
}
