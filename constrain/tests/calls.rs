//! Tests of tool calls from random tokens, among those that the form of a model's family allows.

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
use model::{CallForm, ChatOptions, ChatTemplate, Message, Metadata, Part, Preface, Tokenizer};
use now::now;
use serde_json::json;

const MARKS: [&str; 16] = [
    "<|channel>",
    "<channel|>",
    "<|channel|>",
    "<|message|>",
    "<|start|>",
    "<|end|>",
    // If the vocabulary has these tokens, `<|end|>` ends messages only.
    "<|return|>",
    "<|call|>",
    "<think>",
    "</think>",
    "[THINK]",
    "[/THINK]",
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "[ARGS]",
];

/// Returns a tokenizer with a token for each byte. Marks are single tokens if `marks` is set, or else written byte by
/// byte.
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

/// Continues a text with random tokens that the format allows.
fn text(tokenizer: &Tokenizer, format: &Format, begin: &str, random: &mut Random) -> String {
    let grammar = Vocabulary::new(tokenizer).unwrap().grammar(format).unwrap();
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
            // Random bytes would not reach the end of the reasoning.
            let begin = match &form.thoughts {
                Some((begin, end)) if seed % 2 == 0 => format!("{begin}\na < b / c <thin[\n{end}\n\n"),
                _ if form.thoughts.is_some() => form.call.0.clone(),
                _ => String::new(),
            };
            let thought = if begin.contains("a < b") { "a < b / c <thin[" } else { "" };
            let text = text(&tokenizer(seed % 4 < 2), &Format::Calls(Box::new(form)), &begin, &mut random);
            assert_eq!(demand.read(&text), (None, thought.to_owned()), "{seed}: {text}");
        }
    }
}

#[test]
fn thoughts_that_the_prompt_begins_end_before_calls() {
    let demand = Demand::new(TEMPLATES[0], &mut Random::new(2));
    let form = CallForm { thinking: true, ..demand.form() };
    for marks in [true, false] {
        let text =
            text(&tokenizer(marks), &Format::Calls(Box::new(form.clone())), "hm</think>\n\n", &mut Random::new(3));
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

/// Templates of families that write reasoning in different ways, and the text that may precede an answer, with and
/// without reasoning.
const THINKERS: [(&str, &str, &str); 4] = [
    ("{{ messages }}<think></think>", "<think>\na < b / c <thin[\n</think>\n\n", ""),
    ("{{ messages }}[THINK][/THINK]", "[THINK]a < b / c <thin[[/THINK]", ""),
    ("{{ messages }}<|channel>thought<channel|>", "<|channel>thought\na < b / c <thin[\n<channel|>", ""),
    (
        "{{ messages }}<|channel|><|message|>",
        "<|channel|>analysis<|message|>a < b / c <thin[<|end|><|start|>assistant<|channel|>final<|message|>",
        "<|channel|>final<|message|>",
    ),
];

#[test]
fn formats_hold_behind_thoughts() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"], "additionalProperties": false });
    let formats = [Format::Schema(schema), Format::Regex("[a-c/]{2,9}".into())];
    for (template, thoughts, header) in THINKERS {
        let mut metadata = Metadata::default();
        metadata.insert("tokenizer.chat_template", Value::String(template.into()));
        let chat = ChatTemplate::from_metadata(&metadata).unwrap();
        let preface = chat.preface(&[Message::new("user", "?")], &ChatOptions::default()).unwrap();
        for (seed, format) in (0..4).flat_map(|seed| formats.iter().map(move |format| (seed, format))) {
            let after = format.clone().after(preface.clone());
            assert_eq!(Format::from_source(&serde_json::to_string(&after).unwrap()).unwrap(), after);
            // Random bytes would hardly reach the end of the reasoning.
            let first = if matches!(format, Format::Regex(_)) { "ab" } else { "{" };
            let begin = if seed % 2 == 0 { thoughts.to_owned() } else { format!("{header}{first}") };
            if seed >= 2 && !header.is_empty() {
                // Reasoning could contain such a channel's header, so nothing after it would be constrained.
                let refused = Vocabulary::new(&tokenizer(false)).unwrap().grammar(&after);
                assert!(matches!(refused, Err(FormatError::Grammar(why)) if why.contains("no tokens for the marks")));
                continue;
            }
            let text = text(&tokenizer(seed < 2), &after, &begin, &mut Random::new(seed));
            let mut parts = chat.parts("");
            let (mut thought, mut said) = (String::new(), String::new());
            for part in parts.push(&text).into_iter().chain(parts.finish()) {
                match part {
                    Part::Thought(text) => thought += &text,
                    Part::Said(text) => said += &text,
                    Part::Call(_) | Part::Arguments(_) => panic!("{text}"),
                }
            }
            assert_eq!(thought, if seed % 2 == 0 { "a < b / c <thin[" } else { "" }, "{text}");
            match format {
                Format::Regex(_) => {
                    assert!((2..10).contains(&said.len()) && said.chars().all(|c| "abc/".contains(c)), "{text}");
                }
                _ => {
                    let value: Option<serde_json::Value> = serde_json::from_str(&said).ok();
                    assert!(
                        value.is_some_and(|value| value["n"].is_number()),
                        "{template:?} {seed} {said:?} of {text:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_answer_in_a_format_does_not_end_before_it() {
    let vocabulary = Vocabulary::new(&tokenizer(true)).unwrap();
    let thinking = |thinking| Preface {
        thoughts: Some(("<think>".into(), "</think>".into())),
        thinking,
        header: String::new(),
        marks: Vec::new(),
    };
    let tokenizer = tokenizer(true);
    let may_end = |format: &Format, answer: &str| {
        let constraint = vocabulary.grammar(format).unwrap().constraint();
        let (tokens, mut mask) = (tokenizer.encode(answer, false, true), vec![0; tokenizer.vocab_len().div_ceil(32)]);
        now(constraint.allow(&tokens, &mut mask)).ok()
    };
    let begun = Format::Object.after(Some(thinking(true)));
    for (answer, expected) in [("", false), ("hm", false), ("</think>", false), ("hm</think>{}", true), ("{}", false)] {
        assert_eq!(may_end(&begun, answer), Some(expected), "{answer}");
    }
    let free = Format::Object.after(Some(thinking(false)));
    for (answer, expected) in [
        ("", Some(false)),
        ("<think>", Some(false)),
        ("<think></think>\n\n{}", Some(true)),
        ("{}", Some(true)),
        ("hm", None),
    ] {
        assert_eq!(may_end(&free, answer), expected, "{answer}");
    }
    let twice = free.after(Some(thinking(false)));
    assert!(matches!(vocabulary.grammar(&twice), Err(FormatError::Grammar(_))));
}
