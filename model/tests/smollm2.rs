//! SmolLM2's tokenizer and chat template against llama.cpp's answers.

use std::fs;
use std::path::Path;

use anygpu_model::chat::{ChatTemplate, Message};
use anygpu_model::gguf::Gguf;
use anygpu_model::tokenizer::Tokenizer;

fn model_file() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/cache/SmolLM2-135M-Instruct.Q4_1.gguf");
    match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) => panic!("models/cache/SmolLM2-135M-Instruct.Q4_1.gguf: {e}; fetch it with `cargo xtask models`"),
    }
}

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

#[test]
fn tokens_equal_the_reference() {
    let gguf = Gguf::from_bytes(&model_file()).unwrap();
    let tokenizer = Tokenizer::from_metadata(&gguf.metadata).unwrap();
    assert_eq!(tokenizer.eog(), [0, 2, 4]);
    let cases: Cases = serde_json::from_str(include_str!("data/smollm2_tokenizer.json")).unwrap();
    assert!(cases.cases.len() > 50);
    for case in cases.cases {
        assert_eq!(tokenizer.encode(&case.text, true, case.special), case.ids_with_bos_rule, "{:?}", case.text);
        assert_eq!(tokenizer.encode(&case.text, false, case.special), case.ids, "{:?}", case.text);
        assert_eq!(tokenizer.decode(&case.ids, true), case.text);
    }
}

#[test]
fn prompts_and_chat_equal_the_reference() {
    let gguf = Gguf::from_bytes(&model_file()).unwrap();
    let tokenizer = Tokenizer::from_metadata(&gguf.metadata).unwrap();
    let reference: serde_json::Value = serde_json::from_str(include_str!("data/smollm2_f32.json")).unwrap();
    let cases = reference["cases"].as_object().unwrap();
    assert_eq!(cases.len(), 3);
    let prompt_ids = |name: &str| -> Vec<u32> { serde_json::from_value(cases[name]["prompt_ids"].clone()).unwrap() };
    for (name, case) in cases {
        let prompt = case["prompt"].as_str().unwrap();
        assert_eq!(tokenizer.encode(prompt, true, true), prompt_ids(name), "{name}");
    }

    let chat = ChatTemplate::from_metadata(&gguf.metadata).unwrap();
    let messages = [Message::new("user", "Why is the sky blue?")];
    assert_eq!(chat.render(&messages, true).unwrap(), cases["sky_chat"]["prompt"].as_str().unwrap());
    assert_eq!(chat.encode(&tokenizer, &messages, true).unwrap(), prompt_ids("sky_chat"));
}
