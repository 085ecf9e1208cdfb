//! `response_format`, and other fields that constrain an answer to a format.

use super::error::ApiError;
use super::fields::Kind::{Boolean, Checked, Object, OneOf, Text};
use super::fields::Rule::{Ignored, Only, Use};
use super::fields::{Notes, Table, check, refused};
use anygpu::handle::{Generate, Handle};
use anygpu::{CallForm, Preface};
use anygpu_constrain::{Format, FormatError, Vocabulary};
use axum::http::StatusCode;
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

const FIELD: &str = "response_format";

/// Most texts of a choice, such as `guided_choice`.
const MOST_CHOICES: usize = 1024;

const FORMAT: Table = &[
    ("type", Use(OneOf(&["text", "json_object", "json_schema"]))),
    (
        "json_schema",
        Use(Object(&[
            ("name", Use(Checked(check_name))),
            ("description", Use(Text)),
            ("schema", Use(Checked(check_schema))),
            // Ignored, because answers always follow the schema. In LM Studio's examples it is a string.
            ("strict", Ignored),
        ])),
    ),
];

fn check_name(name: &str, value: &Value, _: &Notes) -> Result<(), ApiError> {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let sound = value.as_str().is_some_and(|text| (1..=64).contains(&text.len()) && text.bytes().all(of_name));
    if sound { Ok(()) } else { Err(refused(name, "1 to 64 letters, digits, underscores and dashes", value)) }
}

pub fn check_schema(name: &str, value: &Value, _: &Notes) -> Result<(), ApiError> {
    if value.is_object() { Ok(()) } else { Err(refused(name, "an object", value)) }
}

/// Checks a schema, which may be an object or its text.
pub fn check_schema_or_text(name: &str, value: &Value, _: &Notes) -> Result<(), ApiError> {
    let sound = value.is_object() || value.as_str().is_some_and(|text| Format::schema(text).is_ok());
    if sound { Ok(()) } else { Err(refused(name, "a schema as an object, or as its text", value)) }
}

/// Checks the list of texts of which the answer must be one.
pub fn check_choices(name: &str, value: &Value, _: &Notes) -> Result<(), ApiError> {
    let sound = |texts: &Vec<Value>| {
        (1..=MOST_CHOICES).contains(&texts.len())
            && texts.iter().all(|text| text.as_str().is_some_and(|text| !text.is_empty()))
    };
    let expected = format!("1 to {MOST_CHOICES} strings that are not empty");
    if value.as_array().is_some_and(sound) { Ok(()) } else { Err(refused(name, &expected, value)) }
}

/// Fields of vLLM's `structured_outputs`.
pub const STRUCTURED: Table = &[
    ("json", Use(Checked(check_schema_or_text))),
    ("regex", Use(Text)),
    ("choice", Use(Checked(check_choices))),
    ("json_object", Use(Boolean)),
    ("grammar", Only(&["\"\""], "grammars are not read; use json, regex or choice")),
    ("structural_tag", Only(&["\"\""], "tags are not read; use json, regex or choice")),
    ("disable_fallback", Ignored),
];

/// Checks `response_format`.
pub fn check_format(name: &str, value: &Value, notes: &Notes) -> Result<(), ApiError> {
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

/// The format that a request asks for.
pub struct Asked {
    format: Format,
    /// The field that asks for the format, and the format's name in error messages.
    pub field: &'static str,
    name: String,
}

/// Returns the schema of a valid field.
fn schema(value: &Value) -> Option<Format> {
    value.as_str().map_or_else(|| Some(Format::Schema(value.clone())), |text| Format::schema(text).ok())
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
    pub fn read(fields: &Map<String, Value>) -> Result<Option<Asked>, ApiError> {
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
                Err(ApiError::request(message).about(other.field))
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

    /// Returns the format for the answer to a conversation, which a preface such as reasoning may precede.
    pub fn after(self, preface: Option<Preface>) -> Asked {
        Asked { format: self.format.after(preface), ..self }
    }

    /// Creates the format of an answer that must call tools.
    pub fn calls(form: CallForm) -> Asked {
        Asked { format: Format::Calls(Box::new(form)), field: "tools", name: "parameters of tools".into() }
    }
}

/// Most grammars that are compiled at a time, on other threads than those that answer.
const AT_ONCE: usize = 2;

/// Compiler of grammars for answers.
pub struct Formats {
    vocabulary: Arc<OnceLock<Result<Vocabulary, FormatError>>>,
    places: Semaphore,
}

impl Default for Formats {
    fn default() -> Formats {
        Formats { vocabulary: Arc::default(), places: Semaphore::new(AT_ONCE) }
    }
}

impl Formats {
    /// Adds the format's constraint to the requests.
    ///
    /// *Errors*: a format that cannot be enforced.
    pub async fn hold(
        &self,
        handle: &Handle,
        generate: Vec<Generate>,
        asked: Asked,
    ) -> Result<Vec<Generate>, ApiError> {
        let Some(tokenizer) = handle.tokenizer().cloned() else {
            let message = "this model has no tokenizer, so its answers cannot be held to a format; use another model";
            return Err(ApiError::request(message).about(asked.field));
        };
        // The semaphore is never closed.
        let _place = self.places.acquire().await;
        let Asked { format, field, name } = asked;
        let vocabulary = self.vocabulary.clone();
        let made = spawn_blocking(move || {
            let vocabulary = vocabulary.get_or_init(|| Vocabulary::new(&tokenizer));
            vocabulary.as_ref().map_err(Clone::clone)?.grammar(&format)
        });
        let failed = |_| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "a grammar could not be made; ask again");
        let invalid = |error| ApiError::request(format!("Invalid {name}: {error}")).about(field);
        let grammar = made.await.map_err(failed)?.map_err(invalid)?;
        let held = |generate: Generate| {
            let grammar = grammar.clone();
            generate.with(move |options| options.constraint = Some(grammar.constraint()))
        };
        Ok(generate.into_iter().map(held).collect())
    }
}
