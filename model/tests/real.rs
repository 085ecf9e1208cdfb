//! Tests of tokenizers and chat templates of real models against llama.cpp's results.

use std::fs;
use std::path::Path;

use anygpu_model::chat::{ChatTemplate, Message};
use anygpu_model::gguf::Gguf;
use anygpu_model::tokenizer::Tokenizer;
use serde::de::DeserializeOwned;

/// Reads the header of a cached model.
fn header(file: &str) -> Gguf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/cache").join(file);
    match fs::read(&path) {
        Ok(bytes) => Gguf::from_bytes(&bytes).unwrap(),
        Err(e) => panic!("models/cache/{file}: {e}; fetch it with `cargo xtask models`"),
    }
}

/// Reads a file of reference results.
fn answers<T: DeserializeOwned>(file: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

const SMOLLM2: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
const GEMMA3: &str = "gemma-3-270m-q4_k_m.gguf";

#[derive(serde::Deserialize)]
struct Cases {
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    text: String,
    special: bool,
    ids_with_bos_rule: Vec<u32>,
    ids: Vec<u32>,
}

fn tokens_equal(file: &str, tokens: &str, eog: &[u32]) {
    let tokenizer = Tokenizer::from_metadata(&header(file).metadata).unwrap();
    assert_eq!(tokenizer.eog(), eog);
    let Cases { cases } = answers(tokens);
    assert!(cases.len() > 50);
    for case in cases {
        assert_eq!(tokenizer.encode(&case.text, true, case.special), case.ids_with_bos_rule, "{:?}", case.text);
        assert_eq!(tokenizer.encode(&case.text, false, case.special), case.ids, "{:?}", case.text);
        assert_eq!(tokenizer.decode(&case.ids, true), case.text);
    }
}

fn prompts_equal(file: &str, reference: &str) {
    let tokenizer = Tokenizer::from_metadata(&header(file).metadata).unwrap();
    let reference: serde_json::Value = answers(reference);
    let cases = reference["cases"].as_object().unwrap();
    assert_eq!(cases.len(), 3);
    for (name, case) in cases {
        let ids: Vec<u32> = serde_json::from_value(case["prompt_ids"].clone()).unwrap();
        assert_eq!(tokenizer.encode(case["prompt"].as_str().unwrap(), true, true), ids, "{name}");
    }
}

#[test]
fn smollm2_tokens() {
    tokens_equal(SMOLLM2, "smollm2_tokenizer.json", &[0, 2, 4]);
}

#[test]
fn smollm2_prompts() {
    prompts_equal(SMOLLM2, "smollm2_f32.json");
}

#[test]
fn smollm2_chat() {
    let gguf = header(SMOLLM2);
    let tokenizer = Tokenizer::from_metadata(&gguf.metadata).unwrap();
    let reference: serde_json::Value = answers("smollm2_f32.json");
    let case = &reference["cases"]["sky_chat"];
    let chat = ChatTemplate::from_metadata(&gguf.metadata).unwrap();
    let messages = [Message::new("user", "Why is the sky blue?")];
    assert_eq!(chat.render(&messages, true).unwrap(), case["prompt"].as_str().unwrap());
    let ids: Vec<u32> = serde_json::from_value(case["prompt_ids"].clone()).unwrap();
    assert_eq!(chat.encode(&tokenizer, &messages, true).unwrap(), ids);
}

#[test]
fn gemma3_tokens() {
    // Token 212, `</s>`, is not among them: in this file it is an ordinary token.
    tokens_equal(GEMMA3, "gemma3_tokenizer.json", &[1, 106]);
}

/// Tests a base model, whose file does not have a template.
#[test]
fn gemma3_prompts() {
    prompts_equal(GEMMA3, "gemma3_f32.json");
}
