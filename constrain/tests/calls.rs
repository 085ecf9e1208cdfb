//! Calls of random tokens, of those that the form of a family allows.

mod common;
#[path = "common/demand.rs"]
mod demand;
#[path = "common/now.rs"]
mod now;

use std::sync::Arc;

use anygpu_constrain::{Format, FormatError, Vocabulary};
use common::Random;
use demand::{Demand, TEMPLATES};
use model::gguf::{StringArray, Value};
use model::{CallForm, Metadata, Tokenizer};
use now::now;
use serde_json::json;

const MARKS: [&str; 8] =
    ["<think>", "</think>", "[THINK]", "[/THINK]", "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]"];

/// A tokenizer with a token for each byte, in which marks are tokens of their own, or are written letter by letter.
fn tokenizer(marks: bool) -> Tokenizer {
    let mut tokens: Vec<(String, u64)> = vec![("<unk>".into(), 2), ("<s>".into(), 3), ("</s>".into(), 3)];
    tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 6)));
    tokens.push(("\u{2581}".into(), 1));
    tokens.extend(MARKS.iter().filter(|_| marks).map(|mark| ((*mark).to_owned(), 3)));
    let mut metadata = Metadata::default();
    metadata.insert("tokenizer.ggml.model", Value::String("llama".into()));
    let texts: StringArray = tokens.iter().map(|(text, _)| text.as_str()).collect();
    metadata.insert("tokenizer.ggml.tokens", Value::Strings(Arc::new(texts)));
    metadata.insert("tokenizer.ggml.scores", Value::Floats(vec![0.0; tokens.len()]));
    metadata.insert("tokenizer.ggml.token_type", Value::Uints(tokens.iter().map(|(_, kind)| *kind).collect()));
    metadata.insert("tokenizer.ggml.add_space_prefix", Value::Bool(false));
    Tokenizer::from_metadata(&metadata).unwrap()
}

/// What follows a text, of random tokens.
fn text(tokenizer: &Tokenizer, form: CallForm, begin: &str, random: &mut Random) -> String {
    let grammar = Vocabulary::new(tokenizer).unwrap().grammar(&Format::Calls(Box::new(form))).unwrap();
    let constraint = grammar.constraint();
    let (mut tokens, mut mask) = (tokenizer.encode(begin, false, true), vec![0; tokenizer.vocab_len().div_ceil(32)]);
    while tokens.len() < 3000 {
        mask.fill(0);
        let may_end = now(constraint.allow(&tokens, &mut mask)).unwrap();
        let is_set = |id: &u32| mask[*id as usize / 32] >> (id % 32) & 1 == 1;
        let allowed: Vec<u32> = (0..tokenizer.vocab_len() as u32).filter(is_set).collect();
        if allowed.is_empty() || may_end && random.below(3) == 0 {
            assert!(may_end, "nothing can follow {:?}", tokenizer.decode(&tokens, true));
            break;
        }
        tokens.push(allowed[random.below(allowed.len())]);
    }
    tokenizer.decode(&tokens, true)
}

#[test]
fn random_calls_are_what_families_read() {
    for (at, template) in TEMPLATES.iter().enumerate() {
        for seed in 0..12 {
            let mut random = Random::new(seed + 100 * at as u64);
            let demand = Demand::new(template, &mut random);
            let form = demand.form();
            // A text of random bytes would not come to the end of its thoughts.
            let begin = match &form.thoughts {
                Some((begin, end)) if seed % 2 == 0 => format!("{begin}\na < b / c <thin[\n{end}\n\n"),
                _ if form.thoughts.is_some() => form.call.0.clone(),
                _ => String::new(),
            };
            let thought = if begin.contains("a < b") { "a < b / c <thin[" } else { "" };
            let text = text(&tokenizer(seed % 4 < 2), form, &begin, &mut random);
            assert_eq!(demand.read(&text), (None, thought.to_owned()), "{seed}: {text}");
        }
    }
}

#[test]
fn thoughts_that_the_prompt_begins_end_before_calls() {
    let demand = Demand::new(TEMPLATES[0], &mut Random::new(2));
    let form = CallForm { thinking: true, ..demand.form() };
    for marks in [true, false] {
        let text = text(&tokenizer(marks), form.clone(), "hm</think>\n\n", &mut Random::new(3));
        assert_eq!(demand.read(&format!("<think>{text}")), (None, "hm".into()), "{text}");
    }
}

#[test]
fn arguments_that_calls_cannot_be_held_to_are_refused_by_name() {
    let demand = Demand::new(TEMPLATES[0], &mut Random::new(1));
    let mut form = demand.form();
    form.functions[0].1 = json!({ "type": "object", "not": {} });
    let refused = Vocabulary::new(&tokenizer(true)).unwrap().grammar(&Format::Calls(Box::new(form))).unwrap_err();
    assert!(matches!(&refused, FormatError::Keyword { keyword, .. } if keyword == "not"), "{refused}");
}
