//! Test of WordPiece against reference tokens.

use std::path::Path;

use anygpu_model::{Gguf, Tokenizer};

#[derive(serde::Deserialize)]
struct Fixture {
    #[serde(default)]
    text_cases: Vec<Case>,
    model: String,
}

#[derive(serde::Deserialize)]
struct Case {
    text: String,
    tokens: Vec<u32>,
}

#[test]
fn a_tiny_vocabulary() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/fixtures");
    let manifest = std::fs::read(folder.join("embeddings.json")).unwrap();
    let fixtures: Vec<Fixture> = serde_json::from_slice(&manifest).unwrap();
    let mut cases = 0;
    for Fixture { model, text_cases } in fixtures.into_iter().filter(|fixture| !fixture.text_cases.is_empty()) {
        let gguf = Gguf::from_bytes(&std::fs::read(folder.join(model)).unwrap()).unwrap();
        let tokenizer = Tokenizer::from_metadata(&gguf.metadata).unwrap();
        for Case { text, tokens } in text_cases {
            assert_eq!(tokenizer.encode(&text, true, true), tokens, "{text:?}");
            cases += 1;
        }
    }
    assert_eq!(cases, 8);
}
