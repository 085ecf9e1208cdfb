//! Tests of patterns of strings and keys.

use crate::common::Random;
use crate::held::{allows, gab, grammar, text};
use serde_json::{Value, json};

/// A pattern, texts that match it, and texts that do not.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const CASES: &[Case] = &[
    ("^[^\"]*$", &["", "a", "\\", "ä\t\n"], &["\"", "a\"b", "\\\""]),
    ("^[^\\\\]*$", &["\"", "/"], &["\\", "a\\b", "\\\\"]),
    ("^[^\"a]$", &["b", "\\", "€", "🐟"], &["\"", "a", ""]),
    ("^[^\\n]$", &["\t", "\"", "\\", "\r"], &["\n"]),
    ("^[\\s\\S]$", &["\n", "\"", "\\", "x"], &["", "xx"]),
    ("^.$", &["\"", "\\", "\t", "🐟"], &["\n", "\r", "\u{2028}", "ab"]),
    ("\"", &["\"", "a\"b"], &["", "a", "\\"]),
    ("^\"\\\\\\/\\t$", &["\"\\/\t"], &["\"", "\"\\/"]),
    ("^\\d+$", &["0", "42"], &["", "٣", "4a"]),
    ("^\\D$", &["a", "\"", "\\", "ä"], &["0", "٣"]),
    ("^\\w$", &["_", "Z"], &["ä", "-", "\""]),
    ("^\\W$", &["-", "\"", "\\", "€"], &["_", "a", "ä", "٣"]),
    ("^[^\\w\"]$", &["-", "\\"], &["ä", "\"", "a"]),
    ("^\\s$", &[" ", "\t", "\u{a0}"], &["\u{85}", "\u{feff}", "a"]),
    ("^\\S$", &["a", "\"", "\\"], &[" ", "\u{85}", "\u{feff}"]),
    ("^\\p{Lu}\\P{Lu}$", &["Äa", "A\"", "A\\"], &["aA", "ÄÖ"]),
    ("^(?i)ja$", &["ja", "JA"], &["nein"]),
    ("b", &["b", "abc", "\"b\\"], &["", "a"]),
    ("^b", &["b", "bc"], &["ab"]),
    ("b$", &["b", "ab"], &["ba"]),
    ("^a|b$", &["a\"", "\"b", "ab", "b"], &["ba", "c"]),
    ("^(?:a|b\"){2,3}$", &["aa", "b\"a", "ab\"a"], &["a", "aaaa", "bb"]),
    ("^(?<stop>a)b$", &["ab"], &["a", "b"]),
    ("^[ -~]+$", &[" ~\"\\"], &["ä", "\t"]),
    ("^[\\x00-\\x1f]$", &["\n", "\t"], &["a", ""]),
    ("^\\u00e4\\xe4$", &["ää"], &["ä"]),
    ("^[\\]\\[\\-a]+$", &["[]-a"], &["b"]),
];

/// Returns a text as a JSON string in the form of answers.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[test]
fn patterns_are_held_to_quotes_backslashes_and_all() {
    for (pattern, sound, wrong) in CASES {
        let held = grammar(&json!({ "type": "string", "pattern": pattern }));
        let held = held.unwrap_or_else(|error| panic!("{pattern}: {error}"));
        for text in *sound {
            assert!(allows(&held, &quoted(text)), "{pattern} does not allow {text:?}");
        }
        for text in *wrong {
            assert!(!allows(&held, &quoted(text)), "{pattern} allows {text:?}");
        }
        // A text can be written in one way only, which is valid JSON.
        for raw in ["\"\\u0061\"", "\"\\/\"", "\"\n\"", "\"\\ud83d\\udc1f\"", "\"\"\"", "\"\\\""] {
            assert!(!allows(&held, raw), "{pattern} allows {raw:?}");
        }
        for seed in 0..4 {
            let (text, ended) = text(&held, &mut Random::new(seed), 200).unwrap();
            assert!(!ended || serde_json::from_str::<String>(&text).is_ok(), "{pattern}: {text}");
        }
    }
}

#[test]
fn lengths_count_characters_and_go_with_patterns() {
    let lengths = grammar(&json!({ "type": "string", "minLength": 2, "maxLength": 3 })).unwrap();
    for (text, sound) in [("\"\\", true), ("🐟\n\t", true), ("🐟", false), ("ääää", false), ("\"\"\"\"", false)]
    {
        assert_eq!(allows(&lengths, &quoted(text)), sound, "{text}");
    }
    let both = grammar(&json!({ "type": "string", "pattern": "^[^\"]*🐟", "minLength": 2, "maxLength": 2 })).unwrap();
    for (text, sound) in [("\\🐟", true), ("🐟\"", true), ("\"🐟", false), ("🐟", false), ("🐟🐟", true)] {
        assert_eq!(allows(&both, &quoted(text)), sound, "{text}");
    }
}

#[test]
fn keys_are_told_apart_by_patterns() {
    let schema = json!({ "type": "object", "patternProperties": { "^[^\"]*$": { "type": "null" } },
                         "additionalProperties": { "type": "boolean" } });
    let held = grammar(&schema).unwrap();
    for (answer, sound) in
        [("{\"a\\\\\":null}", true), ("{\"a\\\"\":true}", true), ("{\"a\\\"\":null}", false), ("{\"a\":true}", false)]
    {
        assert_eq!(allows(&held, answer), sound, "{answer}");
    }
}

#[test]
fn patterns_that_cannot_be_held_to_are_refused_by_name() {
    for (pattern, why) in [
        ("(?=a)b", "look"),
        ("(?<!a)b", "look"),
        ("(a)\\1", "backreferences"),
        ("\\bword\\b", "anchor other than ^ and $"),
        ("^\\Aa", "anchor other than ^ and $"),
        ("[a&&b]", "&&"),
        ("[a[b]]", "write it \\["),
        ("[[:alpha:]]", "write it \\["),
        ("(?m)^a$", "flag other than i"),
        ("(?s:.)", "flag other than i"),
        ("^\\x01$", "control character"),
        ("(", "unclosed"),
        ("a{2,1}", "repetition"),
    ] {
        let refused = grammar(&json!({ "properties": { "k": { "type": "string", "pattern": pattern } } })).unwrap_err();
        let refused = refused.to_string();
        let is_named = refused.contains("#/properties/k/pattern") && refused.contains(why);
        assert!(is_named && !refused.contains('\n'), "{pattern}: {refused}");
    }
    assert!(gab().1.grammar(&anygpu_constrain::Format::Regex("(?=a)".into())).is_err());
}
