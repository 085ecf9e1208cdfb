//! Answers of random tokens, of those that a format allows: without a model, so that many are made in a moment.

mod common;
#[path = "common/now.rs"]
mod now;

use std::sync::OnceLock;

use anygpu_constrain::{Format, FormatError, Grammar, Vocabulary};
use common::{Random, fault, schema};
use model::{BytesSource, Gguf, ModelError, Tokenizer};
use now::now;
use serde_json::{Value, json};

/// The tokenizer of the built-in model, and its tokens.
fn gab() -> &'static (Tokenizer, Vocabulary) {
    static GAB: OnceLock<(Tokenizer, Vocabulary)> = OnceLock::new();
    GAB.get_or_init(|| {
        let source = BytesSource(include_bytes!("../../models/gab-q4_0.gguf"));
        let gguf = now(Gguf::read(&source)).unwrap();
        let tokenizer = Tokenizer::from_metadata(&gguf.metadata).unwrap();
        let vocabulary = Vocabulary::new(&tokenizer).unwrap();
        (tokenizer, vocabulary)
    })
}

fn grammar(schema: &Value) -> Result<Grammar, FormatError> {
    gab().1.grammar(&Format::Schema(schema.clone()))
}

/// Whether a bit is set.
fn is_set(mask: &[u32], id: usize) -> bool {
    mask[id / 32] >> (id % 32) & 1 == 1
}

/// A text of random tokens, and whether it ended by itself.
fn text(grammar: &Grammar, random: &mut Random, most: usize) -> Result<(String, bool), ModelError> {
    let (tokenizer, constraint) = (&gab().0, grammar.constraint());
    let (mut tokens, mut mask) = (Vec::new(), vec![0; tokenizer.vocab_len().div_ceil(32)]);
    while tokens.len() < most {
        mask.fill(0);
        let may_end = now(constraint.allow(&tokens, &mut mask))?;
        let allowed: Vec<u32> =
            (0..tokenizer.vocab_len()).filter(|id| is_set(&mask, *id)).map(|id| id as u32).collect();
        if allowed.is_empty() || may_end && random.below(4) == 0 {
            assert!(may_end, "nothing can follow {:?}", tokenizer.decode(&tokens, false));
            return Ok((tokenizer.decode(&tokens, false), true));
        }
        tokens.push(allowed[random.below(allowed.len())]);
    }
    Ok((tokenizer.decode(&tokens, false), false))
}

#[test]
fn random_texts_follow_random_schemas() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let schema = schema(&mut random);
        let grammar = grammar(&schema).unwrap_or_else(|error| panic!("{seed}: {error}: {schema}"));
        for _ in 0..3 {
            let (text, ended) = text(&grammar, &mut random, 1000).unwrap();
            assert!(ended, "{seed}: {schema}: {text}");
            let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{seed}: {e}: {text}"));
            assert_eq!(fault(&schema, &schema, &value), None, "{seed}: {text}");
        }
    }
}

#[test]
fn answers_end_where_the_format_does_and_whole_answers_decide() {
    let (tokenizer, vocabulary) = gab();
    let constraint = grammar(&json!({ "type": "object" })).unwrap().constraint();
    let mut mask = vec![0; tokenizer.vocab_len().div_ceil(32)];
    let tokens = |text: &str| text.bytes().map(single).collect::<Vec<_>>();
    let mut ends = |text: &str| {
        mask.fill(0);
        let may_end = now(constraint.allow(&tokens(text), &mut mask)).unwrap();
        (may_end, mask.iter().all(|word| *word == 0))
    };
    assert_eq!(ends(""), (false, false));
    assert_eq!(ends("{\"a\": [1"), (false, false));
    assert_eq!(ends("{\"a\": [1]}"), (true, true));
    // Back, and elsewhere.
    assert_eq!(ends("{"), (false, false));
    assert_eq!(ends("{\"b\":{}}"), (true, true));
    for wrong in ["x", " {", "[", "{}}", "{a", "{\"a\":01"] {
        mask.fill(0);
        let refused = now(constraint.allow(&tokens(wrong), &mut mask)).unwrap_err().to_string();
        assert!(refused.contains("cannot go on in the format") && !refused.contains('\n'), "{wrong}: {refused}");
    }
    // No more than that goes between words.
    for (text, sound) in [("{ ", true), ("{  ", false), ("{\n \t", true), ("{\n\n", false), ("{\t", false)] {
        mask.fill(0);
        assert_eq!(now(constraint.allow(&tokens(text), &mut mask)).is_ok(), sound, "{text:?}");
    }
    let regex = vocabulary.grammar(&Format::Regex("a/(b|c)+\"?".into())).unwrap();
    let mut random = Random::new(3);
    for _ in 0..20 {
        let (text, ended) = text(&regex, &mut random, 400).unwrap();
        let rest = text.strip_prefix("a/").unwrap();
        assert!(ended && !rest.is_empty() && rest.trim_end_matches('"').chars().all(|c| "bc".contains(c)), "{text}");
    }
}

/// The token of one byte.
fn single(byte: u8) -> u32 {
    let mut piece = Vec::new();
    let is = |id: &u32| {
        piece.clear();
        gab().0.write_piece(*id, false, &mut piece);
        piece == [byte]
    };
    (0..gab().0.vocab_len() as u32).rfind(is).unwrap()
}

#[test]
fn what_cannot_be_held_to_is_refused_by_name() {
    let refused = [
        (json!({ "not": {} }), "\"not\" at #"),
        (json!({ "properties": { "a": { "uniqueItems": true } } }), "\"uniqueItems\" at #/properties/a"),
        (json!({ "type": "object", "requierd": ["a"] }), "\"requierd\""),
        (json!({ "x-guidance": { "lenient": true } }), "\"x-guidance\""),
        (json!({ "if": {}, "then": false }), "\"if\""),
        (json!({ "type": "strnig" }), "#/type must be one of null"),
        (json!({ "type": [] }), "#/type must be"),
        (json!({ "enum": [] }), "#/enum must be"),
        (json!({ "enum": [9007199254740993u64] }), "between -2^53"),
        (json!({ "$ref": "https://example.org/schema" }), "nothing is fetched"),
        (json!({ "$ref": "#/$defs/none" }), "not found"),
        (json!({ "minProperties": 2 }), "name them in required"),
        (json!({ "prefixItems": [true], "additionalItems": false }), "older draft"),
        (json!({ "oneOf": [{ "minLength": 1 }, { "type": "string" }] }), "use anyOf"),
        (json!({ "type": "string", "pattern": "(?=a)b" }), "look"),
        (json!({ "type": "string", "format": "no-such" }), "no-such"),
        (json!({ "type": "integer", "minimum": 3, "maximum": 2 }), "nsatisfiable"),
        (json!({ "multipleOf": 0 }), "above 0"),
        (json!({ "multipleOf": 12.34 }), "digits"),
        (json!(false), "allows nothing"),
        (json!([1]), "must be an object"),
        (json!({ "items": 3 }), "#/items must be a schema"),
        // More than a hundred bytes of characters that take two.
        (json!({ "type": "array", "minItems": "ä".repeat(99) }), "#/minItems must be an integer"),
    ];
    for (schema, why) in refused {
        let error = grammar(&schema).unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains('\n') && error.len() < 400, "{schema}: {error}");
    }
    assert!(matches!(Format::schema("{"), Err(FormatError::NotJson(_))));
    assert!(gab().1.grammar(&Format::Regex("(".into())).is_err());
    assert!(gab().1.grammar(&Format::Regex("a".repeat(5000))).is_err());
    for sound in
        [json!(true), json!({ "$schema": "http://json-schema.org/draft-07/schema#", "title": "x", "type": "null" })]
    {
        grammar(&sound).unwrap();
    }
}

/// Within the limits of size, on the stack of a thread.
#[test]
fn hostile_schemas_end_in_time_and_memory() {
    let chain = |links: usize| {
        let part = |at: usize| {
            (format!("d{at}"), json!({ "allOf": [{ "anyOf": [{ "$ref": format!("#/$defs/d{}", at + 1) }] }] }))
        };
        let mut parts: serde_json::Map<_, _> = (0..links).map(part).collect();
        parts.insert(format!("d{links}"), json!({ "type": "null" }));
        json!({ "$ref": "#/$defs/d0", "$defs": parts })
    };
    let nested = |levels: usize, key: &str| {
        (0..levels).fold(json!({ "type": "null" }), |inner, _| match key {
            "items" => json!({ "items": inner }),
            key => json!({ key: [inner] }),
        })
    };
    let many = |count: usize, one: &dyn Fn(usize) -> Value| (0..count).map(one).collect::<Vec<_>>();
    let named: serde_json::Map<_, _> = (0..1500).map(|at| (format!("p{at}"), json!({}))).collect();
    let schemas = [
        chain(254),
        chain(1000),
        nested(31, "allOf"),
        nested(500, "anyOf"),
        nested(62, "items"),
        json!({ "allOf": [{ "anyOf": many(200, &|at| json!({ "minLength": at })) }, { "anyOf": many(200, &|at| json!({ "maxLength": at })) }] }),
        json!({ "allOf": many(500, &|_| json!({ "type": ["object", "string", "array"], "minItems": 1 })) }),
        json!({ "allOf": [{ "properties": named }, { "anyOf": many(1000, &|at| json!({ "type": "object", "maxProperties": at })) }] }),
        json!({ "type": "array", "items": { "type": "array", "maxItems": 4_000_000_000u32 }, "minItems": 1_000_000_000 }),
        json!({ "type": "string", "minLength": 4_000_000_000u32 }),
        json!({ "type": "string", "maxLength": 1_000_000 }),
        json!({ "type": "string", "pattern": "(a?){1000}(b?){1000}(a|b|c){999}" }),
        json!({ "type": "string", "pattern": "((((a{9}){9}){9}){9}){9}" }),
        json!({ "type": "string", "pattern": "^(.*a){20}$", "format": "email", "maxLength": 300 }),
        json!({ "patternProperties": { "^(a|b)*c{40}": {}, "(.*x){12}": {} } }),
        json!({ "type": "integer", "multipleOf": 997, "minimum": -9007199254740991i64, "maximum": 9007199254740991i64 }),
        json!({ "type": "number", "multipleOf": 1e-300 }),
        json!({ "enum": many(4000, &|at| json!(format!("{at:x}{}", at * 7919))) }),
        json!({ "$ref": "#" }),
        json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }], "maxLength": 3 }),
        json!({ "items": { "$ref": "#" }, "maxItems": 2 }),
        json!({ "oneOf": many(300, &|at| json!({ "properties": { "k": { "const": at.to_string() } }, "required": ["k"] })) }),
    ];
    gab();
    for (at, schema) in schemas.into_iter().enumerate() {
        let begun = std::time::Instant::now();
        let work = move || {
            let text = |grammar: Grammar| text(&grammar, &mut Random::new(7), 60).map_err(|error| error.to_string());
            let said = grammar(&schema).map_err(|error| error.to_string()).and_then(text);
            let is_line = |error: &String| !error.contains('\n') && error.len() < 400;
            assert!(said.as_ref().err().is_none_or(is_line), "{said:?}");
            said.map_or_else(|error| error, |(text, ended)| format!("{} bytes, {ended}", text.len()))
        };
        let said = std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
        println!("{at}: {} ms: {said}", begun.elapsed().as_millis());
    }
}
