//! Texts that outgrow the context, as readers see them: characters, stop strings and conversations.

use std::rc::Rc;
use std::sync::Arc;

use anygpu::native::{NativeHost, block_on};
use anygpu::{
    BytesSource, Engine, EngineOptions, Finish, GenerateOptions, Message, Metadata, Overflow, Sampling, StreamDecoder,
    Tokenizer,
};
use model::gguf::Value;
use reference_cpu::Cpu;

use crate::GAB;

fn engine(n_ctx: usize) -> Engine {
    let (cpu, host) = (Box::new(Cpu::new(Default::default())), Rc::new(NativeHost::default()));
    let options = EngineOptions { n_ctx: Some(n_ctx), ..Default::default() };
    block_on(Engine::with_backend(cpu, &BytesSource(GAB), &options, host, &mut |_| {})).unwrap()
}

/// Returns the generation, the reported text, and the positions of shifts in the text in bytes.
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

/// Makes a tokenizer in which the first of each three tokens ends with half of a character, and the second begins
/// with the other half.
fn halves() -> Tokenizer {
    let letters = |id: u8| format!("{}{}", char::from(b'a' + id / 26), char::from(b'a' + id % 26));
    let token = |id: u8| match id % 3 {
        0 => letters(id) + "Ã",
        1 => "©".to_owned() + &letters(id),
        _ => letters(id),
    };
    let tokens: Vec<String> = (0..96).map(token).collect();
    let mut metadata = Metadata::default();
    metadata.insert("tokenizer.ggml.model", Value::String("gpt2".into()));
    metadata.insert("tokenizer.ggml.pre", Value::String("gpt-2".into()));
    metadata.insert("tokenizer.ggml.tokens", Value::Strings(Arc::new(tokens.iter().map(String::as_str).collect())));
    metadata.insert("tokenizer.ggml.merges", Value::Strings(Arc::new(["a b"].into_iter().collect())));
    Tokenizer::from_metadata(&metadata).unwrap()
}

#[test]
fn characters_across_the_place_where_room_was_made_are_whole() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/fixtures/llama-gqa-tied.gguf");
    let source = BytesSource(std::fs::read(path).unwrap());
    let (tokenizer, host) = (halves(), NativeHost::default());
    let load = |n_ctx: usize| {
        let (cpu, host) = (Box::new(Cpu::new(Default::default())), Rc::new(NativeHost::default()));
        let options = EngineOptions { n_ctx: Some(n_ctx), ..Default::default() };
        block_on(Engine::with_backend(cpu, &source, &options, host, &mut |_| {})).unwrap()
    };
    let (mut wholes, mut parts) = (0, 0);
    for n_ctx in 16..40 {
        let mut session = load(n_ctx).session().unwrap();
        let options = GenerateOptions {
            max_tokens: Some(60),
            overflow: Overflow::Shift { keep: 1 },
            sampling: Sampling::Random { temperature: 1.0, top_k: 0, top_p: 1.0, seed: 2 },
            stop_tokens: Some(Vec::new()),
            ..GenerateOptions::default()
        };
        let (mut told, mut ids, mut seams) = (String::new(), Vec::new(), Vec::new());
        let on_piece = &mut |piece: anygpu::Piece<'_>| {
            told += piece.text;
            ids.extend(piece.token);
            seams.extend(piece.overflow.map(|_| ids.len()));
        };
        let generation = block_on(session.generate(&[3, 1, 4, 1, 5], &options, Some(&tokenizer), &host, on_piece));
        assert_eq!(generation.unwrap().text, told);
        let (mut decoder, mut expected) = (StreamDecoder::default(), String::new());
        ids.iter().for_each(|id| decoder.push(&tokenizer, *id, &mut expected));
        decoder.finish(&mut expected);
        assert_eq!(told, expected, "{n_ctx}");
        assert!(!seams.is_empty());
        for seam in seams.into_iter().filter(|seam| ids[seam - 1] % 3 == 0) {
            *(if ids[seam] % 3 == 1 { &mut wholes } else { &mut parts }) += 1;
        }
    }
    assert!(wholes > 0 && parts > 0, "{wholes} and {parts} characters lay across");
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
