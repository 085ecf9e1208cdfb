//! Tests of schemas with random tokens that a format allows. They need no model, so many answers are made in a moment.

mod common;
#[path = "common/held.rs"]
mod held;
#[path = "common/now.rs"]
mod now;
#[path = "schemas/patterns.rs"]
mod patterns;
#[path = "schemas/reports.rs"]
mod reports;

use anygpu_constrain::{Format, FormatError, Grammar};
use common::{Random, fault, schema};
use held::{allows, bytes, gab, grammar, text};
use now::now;
use serde_json::{Value, json};

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
    let mut ends = |text: &str| {
        mask.fill(0);
        let may_end = now(constraint.allow(&bytes(text), &mut mask)).unwrap();
        (may_end, mask.iter().all(|word| *word == 0))
    };
    assert_eq!(ends(""), (false, false));
    assert_eq!(ends("{\"a\": [1"), (false, false));
    assert_eq!(ends("{\"a\": [1]}"), (true, true));
    // An earlier position, and another answer.
    assert_eq!(ends("{"), (false, false));
    assert_eq!(ends("{\"b\":{}}"), (true, true));
    for wrong in ["x", " {", "[", "{}}", "{a", "{\"a\":01"] {
        mask.fill(0);
        let refused = now(constraint.allow(&bytes(wrong), &mut mask)).unwrap_err().to_string();
        assert!(refused.contains("cannot go on in the format") && !refused.contains('\n'), "{wrong}: {refused}");
    }
    // Only this whitespace is allowed between tokens.
    for (text, sound) in [("{ ", true), ("{  ", false), ("{\n \t", true), ("{\n\n", false), ("{\t", false)] {
        mask.fill(0);
        assert_eq!(now(constraint.allow(&bytes(text), &mut mask)).is_ok(), sound, "{text:?}");
    }
    let regex = vocabulary.grammar(&Format::Regex("a/(b|c)+\"?".into())).unwrap();
    let mut random = Random::new(3);
    for _ in 0..20 {
        let (text, ended) = text(&regex, &mut random, 400).unwrap();
        let rest = text.strip_prefix("a/").unwrap();
        assert!(ended && !rest.is_empty() && rest.trim_end_matches('"').chars().all(|c| "bc".contains(c)), "{text}");
    }
}

#[test]
fn what_cannot_be_held_to_is_refused_by_name() {
    let refused = [
        (json!({ "not": {} }), "\"not\" at #"),
        (json!({ "properties": { "a": { "uniqueItems": true } } }), "\"uniqueItems\" at #/properties/a"),
        (json!({ "type": "object", "requierd": ["a"] }), "\"requierd\""),
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
        (json!({ "type": "integer", "minimum": 3, "maximum": 2 }), "nsatisfiable"),
        (json!({ "multipleOf": 0 }), "above 0"),
        (json!({ "multipleOf": 12.34 }), "digits"),
        (json!(false), "allows nothing"),
        (json!([1]), "must be an object"),
        (json!({ "items": 3 }), "#/items must be a schema"),
        (json!({ "$ref": "#/$defs/none/x" }), "#/$ref refers to"),
        (json!({ "$ref": "#name" }), "nothing is fetched"),
        (json!({ "enum": ["a\u{1}b"] }), "#/enum has the control character"),
        (json!({ "const": { "k": "\u{7f}" } }), "#/const/k has the control character"),
        (json!({ "properties": { "a\u{0}": {} } }), "control character"),
        (json!({ "type": "string", "pattern": "a\\u0001" }), "control character"),
        // More than a hundred bytes, of characters with two bytes.
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

/// Schemas are refused if an answer could begin and never finish.
#[test]
fn dead_ends_are_refused_with_their_place() {
    let no_range = json!({ "type": "integer", "minimum": 3, "maximum": 4, "multipleOf": 5 });
    let schemas = [
        (
            json!({ "properties": { "aa": {}, "ab": {} }, "patternProperties": { "^a[ab]$": {} }, "additionalProperties": false, "type": "object" }),
            "#",
        ),
        (
            json!({ "properties": { "a": true }, "required": ["b"], "type": "object", "additionalProperties": false }),
            "#",
        ),
        (json!({ "type": "object", "properties": { "a": no_range }, "required": ["a"] }), "#/properties/a"),
        (json!({ "type": "array", "items": no_range, "minItems": 1 }), "#/items"),
        (json!({ "type": "array", "prefixItems": [true], "items": false, "minItems": 2 }), "#"),
        (json!({ "type": "array", "minItems": 3, "maxItems": 2 }), "#"),
        (json!({ "properties": { "a": { "$ref": "#" } }, "required": ["a"], "type": "object" }), "#/properties/a"),
        (json!({ "$ref": "#" }), "#"),
        (json!({ "type": "string", "pattern": "^a", "maxLength": 0 }), "#"),
        (json!({ "type": "string", "pattern": "^[\\x00-\\x07]$" }), "#"),
        (json!({ "type": "string", "enum": [1, 2] }), "#"),
        (json!({ "anyOf": [{ "$ref": "#/$defs/a" }], "$defs": { "a": { "type": "null", "const": 1 } } }), "#/anyOf/0"),
        (json!({ "type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 1 }), "#"),
        (json!({ "allOf": [{ "type": "string" }, { "type": "null" }] }), "#"),
        (json!({ "type": "object", "required": ["a", "b"], "maxProperties": 1 }), "#"),
    ];
    for (schema, place) in schemas {
        let refused = grammar(&schema).unwrap_err();
        let is_there = matches!(&refused, FormatError::Schema { place: found, .. } if found == place);
        assert!(is_there, "{schema}: {refused}");
    }
    // Optional properties without a valid value are left out.
    let optional =
        grammar(&json!({ "properties": { "a": { "enum": [1], "type": "null" } }, "type": "object" })).unwrap();
    assert!(allows(&optional, "{}") && !allows(&optional, "{\"a\":1}"));
}

#[test]
fn keywords_that_ask_nothing_are_read_over() {
    let schema = json!({
        "$id": "x", "$anchor": "a", "type": "object", "x-guidance": { "lenient": true }, "x-order": 1, "example": {},
        "properties": {
            "a": { "type": "string", "format": "color", "nullable": true, "deprecated": true, "contentEncoding": "base64" },
            "n": { "type": "array", "items": { "$ref": "#/$defs/a~1b%3C%7E0" }, "uniqueItems": false, "maxItems": 2.0 },
        },
        "required": ["a", "n"], "unevaluatedProperties": false,
        "$defs": { "a/b<~": { "type": "integer", "minimum": 5.0, "maximum": 5.0 }, "unused": { "not": {} } },
    });
    let held = grammar(&schema).unwrap();
    assert!(allows(&held, "{\"a\":\"\",\"n\":[5,5]}"));
    for wrong in [
        "{\"a\":null,\"n\":[]}",
        "{\"a\":\"\",\"n\":[5,5,5]}",
        "{\"a\":\"\",\"n\":[5.0]}",
        "{\"a\":\"\",\"n\":[],\"z\":1}",
    ] {
        assert!(!allows(&held, wrong), "{wrong}");
    }
    assert_eq!(Format::schema("\u{feff}{}").unwrap(), Format::Schema(json!({})));
}

#[test]
fn objects_with_properties_have_no_others_unless_something_allows_them() {
    let a = json!({ "type": "object", "properties": { "a": { "type": "null" } } });
    let with = |key: &str, value: Value| {
        let mut schema = a.clone();
        schema[key] = value;
        schema
    };
    let b = json!({ "type": "object", "properties": { "b": { "type": "null" } }, "required": ["b"] });
    let both = "{\"a\":null,\"b\":null}";
    for (schema, is_open) in [
        (a.clone(), false),
        (with("required", json!(["b"])), true),
        (with("additionalProperties", json!(true)), true),
        (with("additionalProperties", json!(false)), false),
        (with("patternProperties", json!({ "^b": {} })), true),
        (json!({ "anyOf": [a, { "type": "null" }] }), false),
        (json!({ "allOf": [a] }), false),
        (json!({ "allOf": [a, b] }), true),
        (json!({ "$ref": "#/$defs/a", "$defs": { "a": a } }), false),
        (json!({ "$ref": "#/$defs/a", "properties": { "b": {} }, "$defs": { "a": a } }), true),
        (with("anyOf", json!([b, { "required": ["a"] }])), true),
        (json!({ "type": "object" }), true),
    ] {
        assert_eq!(allows(&grammar(&schema).unwrap(), both), is_open, "{schema}");
    }
}

#[test]
fn alternatives_that_exclude_each_other_are_a_one_of() {
    let kind = |name: &str, key: &str| {
        json!({ "type": "object", "required": ["kind"],
                "properties": { "kind": { "const": name }, key: { "type": "null" } } })
    };
    let schema = json!({
        "oneOf": [{ "$ref": "#/$defs/cat" }, { "$ref": "#/$defs/dog" }], "discriminator": { "propertyName": "kind" },
        "$defs": { "cat": kind("cat", "meow"), "dog": kind("dog", "bark") },
    });
    let held = grammar(&schema).unwrap();
    assert!(allows(&held, "{\"kind\":\"cat\",\"meow\":null}") && allows(&held, "{\"kind\":\"dog\"}"));
    assert!(!allows(&held, "{\"kind\":\"cat\",\"bark\":null}"));
    let key = |name: &str, required: bool| {
        let required = if required { json!([name]) } else { json!([]) };
        json!({ "type": "object", "properties": { name: {} }, "required": required })
    };
    let held = grammar(&json!({ "oneOf": [key("a", true), key("b", true)] })).unwrap();
    assert!(allows(&held, "{\"a\":1}") && !allows(&held, "{\"a\":1,\"b\":1}"));
    // An object with the first key is valid by both alternatives.
    assert!(grammar(&json!({ "oneOf": [key("a", true), key("b", false)] })).is_err());
    assert!(grammar(&json!({ "oneOf": [{ "enum": [1, 2] }, { "const": 2.0 }] })).is_err());
}

/// Hostile schemas stay within the limits of time and memory, on the stack of a thread.
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
