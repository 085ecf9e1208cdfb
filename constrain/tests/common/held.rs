//! Generator of answers from random tokens that a grammar allows, and a check whether a grammar allows an answer.

use std::collections::HashMap;
use std::sync::OnceLock;

use anygpu_constrain::{Format, FormatError, Grammar, Vocabulary};
use model::{BytesSource, Gguf, ModelError, Tokenizer};
use serde_json::Value;

use crate::common::Random;
use crate::now::now;

/// Returns the built-in model's tokenizer and vocabulary.
pub fn gab() -> &'static (Tokenizer, Vocabulary) {
    static GAB: OnceLock<(Tokenizer, Vocabulary)> = OnceLock::new();
    GAB.get_or_init(|| {
        let source = BytesSource(include_bytes!("../../../models/gab-q4_0.gguf"));
        let gguf = now(Gguf::read(&source)).unwrap();
        let tokenizer = Tokenizer::from_metadata(&gguf.metadata).unwrap();
        let vocabulary = Vocabulary::new(&tokenizer).unwrap();
        (tokenizer, vocabulary)
    })
}

/// Returns the bytes of each token: of 256 single-byte tokens, or of the built-in model's.
pub fn words(bytes: bool) -> Vec<Vec<u8>> {
    if bytes {
        return (0..=255).map(|byte| vec![byte]).collect();
    }
    let tokenizer = &gab().0;
    (0..tokenizer.vocab_len() as u32).map(|id| tokenizer.word(id)).collect()
}

pub fn grammar(schema: &Value) -> Result<Grammar, FormatError> {
    gab().1.grammar(&Format::Schema(schema.clone()))
}

/// Returns whether a bit is set.
fn is_set(mask: &[u32], id: usize) -> bool {
    mask[id / 32] >> (id % 32) & 1 == 1
}

/// Generates random tokens that a grammar allows. Returns whether the grammar ended the text.
pub fn tokens(
    grammar: &Grammar,
    count: usize,
    random: &mut Random,
    most: usize,
) -> Result<(Vec<u32>, bool), ModelError> {
    let constraint = grammar.constraint();
    let (mut tokens, mut mask) = (Vec::new(), vec![0; count.div_ceil(32)]);
    while tokens.len() < most {
        mask.fill(0);
        let may_end = now(constraint.allow(&tokens, &mut mask))?;
        let allowed: Vec<u32> = (0..count).filter(|id| is_set(&mask, *id)).map(|id| id as u32).collect();
        if allowed.is_empty() || may_end && random.below(4) == 0 {
            assert!(may_end, "nothing can follow {tokens:?}");
            return Ok((tokens, true));
        }
        tokens.push(allowed[random.below(allowed.len())]);
    }
    Ok((tokens, false))
}

/// Generates a text of random tokens of the built-in model. Returns whether the grammar ended it.
pub fn text(grammar: &Grammar, random: &mut Random, most: usize) -> Result<(String, bool), ModelError> {
    let tokenizer = &gab().0;
    let (tokens, ended) = tokens(grammar, tokenizer.vocab_len(), random, most)?;
    Ok((tokenizer.decode(&tokens, false), ended))
}

/// Returns a text as single-byte tokens.
pub fn bytes(text: &str) -> Vec<u32> {
    static SINGLE: OnceLock<HashMap<u8, u32>> = OnceLock::new();
    let single = SINGLE.get_or_init(|| {
        let words = words(false).into_iter().zip(0..);
        words.filter_map(|(word, id)| (word.len() == 1).then(|| (word[0], id))).collect()
    });
    text.bytes().map(|byte| single[&byte]).collect()
}

/// Returns whether a grammar allows an answer as a complete one.
pub fn allows(grammar: &Grammar, answer: &str) -> bool {
    let mut mask = vec![0; gab().0.vocab_len().div_ceil(32)];
    now(grammar.constraint().allow(&bytes(answer), &mut mask)).is_ok_and(|may_end| may_end)
}
