//! Prints random answers to schemas, for `tests/oracle.py`. Each line of the standard input has a schema, and texts
//! that may be answers to it. The line that is printed for it has the error, or else answers and which of the texts are
//! answers.

#[expect(dead_code, reason = "the oracle makes the schemas")]
#[path = "../tests/common/mod.rs"]
mod common;
#[expect(dead_code, reason = "answers have the tokens of two vocabularies")]
#[path = "../tests/common/held.rs"]
mod held;
#[path = "../tests/common/now.rs"]
mod now;

use std::io::{BufRead, Result, Write, stdin, stdout};

use anygpu_constrain::{Format, Vocabulary};
use common::Random;
use held::{allows, grammar, tokens, words};
use serde_json::{Value, json};

/// Most tokens of an answer.
const MOST: usize = 600;
/// Number of answers with each vocabulary.
const ANSWERS: u64 = 4;

fn main() -> Result<()> {
    let vocabularies = [true, false].map(|bytes| {
        let words = words(bytes);
        (Vocabulary::of_words(words.clone()).expect("a small vocabulary"), words)
    });
    for line in stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?)?;
        let told = answers(&vocabularies, &asked).unwrap_or_else(|refused| json!({ "refused": refused }));
        writeln!(stdout(), "{told}")?;
    }
    Ok(())
}

fn answers(vocabularies: &[(Vocabulary, Vec<Vec<u8>>)], asked: &Value) -> std::result::Result<Value, String> {
    let schema = &asked["schema"];
    let mut answers = Vec::new();
    for (vocabulary, words) in vocabularies {
        let held = vocabulary.grammar(&Format::Schema(schema.clone())).map_err(|error| error.to_string())?;
        for seed in 0..ANSWERS {
            answers.push(match tokens(&held, words.len(), &mut Random::new(seed), MOST) {
                Ok((tokens, ended)) => {
                    let bytes: Vec<u8> = tokens.iter().flat_map(|id| words[*id as usize].clone()).collect();
                    json!({ "text": String::from_utf8_lossy(&bytes), "ended": ended })
                }
                Err(error) => json!({ "failed": error.to_string() }),
            });
        }
    }
    let held = grammar(schema).map_err(|error| error.to_string())?;
    let texts = asked["texts"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let allowed: Vec<bool> = texts.map(|text| allows(&held, text)).collect();
    Ok(json!({ "answers": answers, "allowed": allowed }))
}
