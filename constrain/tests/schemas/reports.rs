//! Tests of schemas that users of similar engines reported, with valid and invalid answers.

use crate::common::Random;
use crate::held::{allows, grammar, text};
use serde_json::{Value, json};

/// Returns the source of each report, the schema, valid answers, and invalid ones.
fn reports() -> Vec<(&'static str, Value, Vec<String>, Vec<String>)> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let spaces = format!("\"\\n{}\"", " ".repeat(31));
    let value = json!({ "type": "object", "properties": { "n": { "type": "number" } }, "required": ["n"] });
    vec![
        (
            "an exclusive bound of negative numbers",
            json!({ "type": "number", "minimum": -3.5, "exclusiveMaximum": -3.0 }),
            texts(&["-3.5", "-3.25", "-3.0001"]),
            texts(&["-3", "-3.0", "-2.9", "3.2"]),
        ),
        (
            "an exclusive bound beside another one",
            json!({ "type": "number", "minimum": -1, "exclusiveMinimum": 0, "maximum": 2.5 }),
            texts(&["0.5", "2.5", "1"]),
            texts(&["0", "-0.5", "2.6"]),
        ),
        (
            "llguidance 265: a comma after which no key can come",
            json!({ "type": "object", "properties": { "score": { "type": "integer", "multipleOf": 5 } }, "required": ["score"],
                    "additionalProperties": false, "patternProperties": { "^score$": { "type": "integer" } } }),
            texts(&["{\"score\":10}"]),
            texts(&["{\"score\":1}", "{\"score\":5,", "{}"]),
        ),
        (
            "llguidance 218: a constant with an escape and many spaces",
            json!({ "const": format!("\n{}", " ".repeat(31)) }),
            vec![spaces],
            texts(&["\"\\n\"", "\"\\n                  \""]),
        ),
        (
            "llguidance 266: a key that ends with another quote",
            json!({ "type": "object", "required": ["t"], "additionalProperties": true,
                    "properties": { "forecast": { "type": "array" }, "t": { "type": "number" } } }),
            texts(&["{\"t\":68.5,\"forecast'\":[]}", "{\"forecast\":[],\"t\":1}"]),
            texts(&["{\"t\":68.5,\"forecast':[]}"]),
        ),
        (
            "vllm 45592: a pattern beside a length",
            json!({ "type": "array", "minItems": 2, "maxItems": 2,
                    "items": { "type": "string", "pattern": "^[A-Za-z ]+$", "minLength": 1, "maxLength": 8 } }),
            texts(&["[\"a\",\"eight ch\"]"]),
            texts(&["[\"a\",\"nine char\"]", "[\"a\",\"\"]", "[\"a\"]"]),
        ),
        (
            "llama.cpp 26930: a pattern without anchors",
            json!({ "type": "object", "properties": { "key": { "type": "string", "pattern": "\\S" } } }),
            texts(&["{\"key\":\" a \"}", "{}"]),
            texts(&["{\"key\":\" \"}", "{\"key\":\"\"}"]),
        ),
        (
            "llama.cpp 25746: lengths of thousands",
            json!({ "type": "object", "properties": { "o": { "properties": { "s": { "type": "string", "maxLength": 5000 } } } } }),
            vec![format!("{{\"o\":{{\"s\":\"{}\"}}}}", "x".repeat(5000))],
            vec![format!("{{\"o\":{{\"s\":\"{}\"}}}}", "x".repeat(5001))],
        ),
        (
            "llama.cpp 7789: keys that are not named",
            json!({ "type": "object", "additionalProperties": true, "properties": { "number": { "type": "number" } } }),
            texts(&["{\"number\":1600,\"direction\":\"NW\"}", "{\"direction\":\"NW\"}", "{}"]),
            texts(&["{\"number\":\"NW\"}", "{\"number\":1,\"number\":\"NW\"}"]),
        ),
        (
            "llama.cpp 8073: an enum behind a reference",
            json!({ "type": "object", "properties": { "f": { "$ref": "#/$defs/F" } }, "required": ["f"],
                    "$defs": { "F": { "title": "F", "enum": ["a", "b"], "type": "string" } } }),
            texts(&["{\"f\":\"a\"}"]),
            texts(&["{\"f\":{}}", "{\"f\":\"c\"}"]),
        ),
        (
            "llama.cpp 16790: a reference to a place in an array",
            json!({ "properties": { "tree": { "type": "object", "properties": { "left": { "anyOf": [
                { "type": "string" }, { "$ref": "#/properties/tree" }] } } } }, "type": "object" }),
            texts(&["{\"tree\":{\"left\":{\"left\":\"x\"}}}"]),
            texts(&["{\"tree\":{\"left\":{\"left\":1}}}"]),
        ),
        (
            "outlines-core 100: an object in an enum",
            json!({ "enum": [{ "properties": { "a": { "title": "A", "type": "number" } } }] }),
            texts(&["{\"properties\":{\"a\":{\"title\":\"A\",\"type\":\"number\"}}}"]),
            texts(&["{\"properties\":{\"a\":{\"title\":\"A\"}}}"]),
        ),
        (
            "outlines-core 149: patterns of keys alone",
            json!({ "type": "object", "patternProperties": { "^(yes|no)$": { "type": "string" } }, "additionalProperties": false }),
            texts(&["{\"yes\":\"\",\"no\":\"\"}", "{}"]),
            texts(&["{\"maybe\":\"\"}", "{\"yes\":1}"]),
        ),
        (
            "xgrammar 826: alternatives with anchors, and the schema of other keys",
            json!({ "type": "object", "properties": { "k": { "type": "string", "pattern": "^a$|^b$" } },
                    "additionalProperties": value }),
            texts(&["{\"k\":\"a\"}", "{\"k\":\"b\",\"x\":{\"n\":1}}"]),
            texts(&["{\"k\":\"ab\"}", "{\"x\":\"plain\"}", "{\"x\":{}}"]),
        ),
    ]
}

#[test]
fn what_people_reported_of_engines_is_right() {
    for (report, schema, sound, wrong) in reports() {
        let held = grammar(&schema).unwrap_or_else(|error| panic!("{report}: {error}"));
        for answer in &sound {
            assert!(allows(&held, answer), "{report}: {answer} is not allowed");
        }
        for answer in &wrong {
            assert!(!allows(&held, answer), "{report}: {answer} is allowed");
        }
        for seed in 0..4 {
            let (text, ended) = text(&held, &mut Random::new(seed), 400).unwrap();
            assert!(!ended || serde_json::from_str::<Value>(&text).is_ok(), "{report}: {text}");
        }
    }
}

/// Unsupported keywords are refused and never ignored.
#[test]
fn keywords_that_engines_drop_are_refused() {
    for keyword in
        ["propertyNames", "contains", "dependentRequired", "if", "not", "unevaluatedItems", "dependentSchemas"]
    {
        let refused = grammar(&json!({ "type": "object", keyword: {} })).unwrap_err().to_string();
        assert!(refused.contains(keyword), "{refused}");
    }
}
