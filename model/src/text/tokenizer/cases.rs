//! Tokens and pieces that llama.cpp makes of texts (`models/fixtures/tokenizers`).

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::pre::{Pre, Splitter};
use super::*;
use crate::gguf::{Gguf, Value};

/// Reads the metadata of a vocabulary.
fn metadata(name: &str) -> Metadata {
    let path = format!("{}/../models/fixtures/tokenizers/{name}.gguf", env!("CARGO_MANIFEST_DIR"));
    Gguf::from_bytes(&std::fs::read(path).unwrap()).unwrap().metadata
}

/// Encodes bytes that do not have special tokens and need not be text.
fn encode_bytes(t: &Tokenizer, bytes: &[u8], add_special: bool) -> Vec<u32> {
    let mut out = Vec::from_iter(t.bos.filter(|_| add_special && t.add_bos));
    match &t.model {
        Model::Unigram(unigram) => unigram.encode(bytes, &mut out),
        Model::Rwkv(rwkv) => rwkv.encode(bytes, &mut out),
        model => panic!("{model:?} needs text"),
    }
    out.extend(t.eos.filter(|_| add_special && t.add_eos));
    out
}

#[test]
fn texts_have_the_tokens_and_pieces_of_llama_cpp() {
    let (mut tokenizers, mut splitters) = (BTreeMap::new(), BTreeMap::new());
    let (mut wrong, mut count) = (Vec::new(), 0);
    for line in include_str!("../../../../models/fixtures/tokenizers/cases.jsonl").lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let text = |key: &str| case[key].as_str();
        let pre = text("pre");
        let same = match text("model") {
            None => {
                let splitter = splitters
                    .entry(pre.map(str::to_owned))
                    .or_insert_with(|| Splitter::new(Pre::find(pre.unwrap()).unwrap()).unwrap());
                let found = splitter.split(text("text").unwrap());
                found.iter().map(|piece| String::from_utf8_lossy(piece)).eq(case["pieces"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|piece| piece.as_str().unwrap()))
            }
            Some(name) => {
                let t = tokenizers.entry([Some(name), pre].map(|name| name.map(str::to_owned))).or_insert_with(|| {
                    let mut metadata = metadata(name);
                    if let Some(pre) = pre {
                        metadata.insert("tokenizer.ggml.pre", Value::String(pre.into()));
                    }
                    Tokenizer::from_metadata(&metadata).unwrap()
                });
                let flag = |key: &str| case[key].as_bool().unwrap_or(true);
                let found = match (text("text"), text("query")) {
                    (Some(text), _) => t.encode(text, flag("add_special"), flag("parse_special")),
                    (_, Some(query)) => t.encode_pair(query, text("document").unwrap()),
                    _ => {
                        let bytes = case["bytes"].as_array().unwrap().iter().map(|byte| byte.as_u64().unwrap() as u8);
                        encode_bytes(t, &bytes.collect::<Vec<_>>(), flag("add_special"))
                    }
                };
                let same = case["tokens"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|id| id.as_u64().unwrap() as u32)
                    .eq(found.iter().copied());
                if !same {
                    wrong.push(format!("found {found:?}"));
                }
                same
            }
        };
        count += 1;
        if !same {
            wrong.push(line.to_owned());
        }
    }
    assert_eq!((count, tokenizers.len(), splitters.len()), (925, 11, 9));
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}
