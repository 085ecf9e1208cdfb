//! `response_format`, and other fields that constrain an answer to a format.

use crate::error::Refusal;
use crate::fields::Kind::{Boolean, Object, OneOf, Such, Text};
use crate::fields::Rule::{Ignored, Only, Use};
use crate::fields::{Notes, Table, check, refused};
use serde_json::{Map, Value};

const FIELD: &str = "response_format";

/// Most texts of a choice, such as `guided_choice`.
const MOST_CHOICES: usize = 1024;

const FORMAT: Table = &[
    ("type", Use(OneOf(&["text", "json_object", "json_schema"]))),
    (
        "json_schema",
        Use(Object(&[
            ("name", Use(Such("1 to 64 letters, digits, underscores and dashes", is_name))),
            ("description", Use(Text)),
            ("schema", Use(Such("an object", Value::is_object))),
            // Ignored, because answers always follow the schema. In LM Studio's examples it is a string.
            ("strict", Ignored),
        ])),
    ),
];

fn is_name(value: &Value) -> bool {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    value.as_str().is_some_and(|text| (1..=64).contains(&text.len()) && text.bytes().all(of_name))
}

/// Returns whether a value is a schema: an object or its text.
pub fn is_schema(value: &Value) -> bool {
    value.is_object() || value.as_str().is_some_and(|text| parsed(text).is_some())
}

/// Returns whether a value is a list of texts of which the answer may be one.
pub fn are_choices(value: &Value) -> bool {
    let sound = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    value.as_array().is_some_and(|texts| (1..=MOST_CHOICES).contains(&texts.len()) && texts.iter().all(sound))
}

/// Fields of vLLM's `structured_outputs`.
pub const STRUCTURED: Table = &[
    ("json", Use(Such("a schema as an object, or as its text", is_schema))),
    ("regex", Use(Text)),
    ("choice", Use(Such("1 to 1024 strings that are not empty", are_choices))),
    ("json_object", Use(Boolean)),
    ("grammar", Only(&["\"\""], "grammars are not read; use json, regex or choice")),
    ("structural_tag", Only(&["\"\""], "tags are not read; use json, regex or choice")),
    ("disable_fallback", Ignored),
];

/// Checks `response_format`.
pub fn check_format(name: &str, value: &Value, notes: &Notes) -> Result<(), Refusal> {
    let fields = check(name, value, &[FORMAT], notes)?;
    let missing = |part: &str, what| Err(refused(&format!("{name}.{part}"), what, &Value::Null));
    let schema = fields.get("json_schema").filter(|schema| !schema.is_null());
    match (fields.get("type").and_then(Value::as_str), schema) {
        (None, _) => missing("type", "one of text, json_object, json_schema"),
        (Some("json_schema"), None) => missing("json_schema", "an object with a name and a schema"),
        (Some("json_schema"), Some(schema)) if schema["name"].is_null() => missing("json_schema.name", "a string"),
        (Some("json_schema"), Some(schema)) if schema["schema"].is_null() => missing("json_schema.schema", "an object"),
        _ => Ok(()),
    }
}

/// The format of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Format {
    /// Any JSON object.
    Object,
    /// JSON that follows a schema.
    Schema(Value),
    /// Text that a regular expression matches from end to end.
    Regex(String),
}

/// The format that a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The format.
    pub format: Format,
    /// The field that asks for it.
    pub field: &'static str,
    /// Its name in error messages.
    pub name: String,
}

/// Parses the text of a schema, which may begin with a byte order mark.
fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text)).ok()
}

/// Returns the schema of a valid field.
fn schema(value: &Value) -> Option<Format> {
    value.as_str().map_or_else(|| Some(value.clone()), parsed).map(Format::Schema)
}

fn regex(value: &Value) -> Option<Format> {
    Some(Format::Regex(value.as_str().filter(|text| !text.is_empty())?.to_owned()))
}

/// Returns a regular expression that matches each of some texts.
fn one_of(value: &Value) -> Option<Format> {
    let escaped = |text: &str| -> String {
        let of = |c: char| r"\.+*?()|[]{}^$#&-~".contains(c).then_some('\\').into_iter().chain([c]);
        text.chars().flat_map(of).collect()
    };
    let texts: Vec<String> = value.as_array()?.iter().filter_map(Value::as_str).map(escaped).collect();
    Some(Format::Regex(texts.join("|")))
}

/// A field that constrains answers: its path, and the function that reads its format.
type Source = (&'static str, fn(&Value) -> Option<Format>);

const SOURCES: [Source; 9] = [
    ("guided_json", schema),
    ("guided_regex", regex),
    ("guided_choice", one_of),
    ("json_schema", schema),
    ("regex", regex),
    ("structured_outputs.json", schema),
    ("structured_outputs.regex", regex),
    ("structured_outputs.choice", one_of),
    ("structured_outputs.json_object", |value| (*value == true).then_some(Format::Object)),
];

impl Asked {
    /// Reads the format from the fields of a valid request.
    ///
    /// *Errors*: more than one format.
    pub fn read(fields: &Map<String, Value>) -> Result<Option<Asked>, Refusal> {
        let of_field = |(path, format): &Source| {
            let (field, part) = path.split_once('.').unwrap_or((*path, ""));
            let value = fields.get(field).map(|value| if part.is_empty() { value } else { &value[part] });
            let format = value.filter(|value| !value.is_null()).and_then(format)?;
            Some(Asked { format, field: path, name: (*path).into() })
        };
        let standard = fields.get(FIELD).and_then(Asked::response_format);
        let mut asked = standard.into_iter().chain(SOURCES.iter().filter_map(of_field));
        match (asked.next(), asked.next()) {
            (Some(one), Some(other)) => {
                let message =
                    format!("an answer cannot be held to {} and to {} at once; leave one out", one.field, other.field);
                Err(Refusal::new(message).about(other.field))
            }
            (one, _) => Ok(one),
        }
    }

    fn response_format(value: &Value) -> Option<Asked> {
        let schema = &value["json_schema"];
        let format = match value["type"].as_str()? {
            "json_object" => Format::Object,
            "json_schema" => Format::Schema(schema["schema"].clone()),
            _ => return None,
        };
        let name = format!("schema for {FIELD} '{}'", schema["name"].as_str().unwrap_or("json_object"));
        Some(Asked { format, field: FIELD, name })
    }
}
