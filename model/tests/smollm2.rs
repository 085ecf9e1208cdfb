//! SmolLM2's tokenizer and chat template against llama.cpp's answers.

use std::fs;
use std::path::Path;

use model::gguf::Gguf;
use model::tokenizer::Tokenizer;

/// The header of the model: much more than its 1.8 MB, much less than the file.
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
