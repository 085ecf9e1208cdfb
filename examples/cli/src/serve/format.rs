//! `response_format`: what an answer is to be.

use super::error::ApiError;
use super::fields::Kind::{Boolean, Checked, Object, OneOf, Text};
use super::fields::Rule::Use;
use super::fields::{Table, check, refused};
use anygpu::handle::{Generate, Handle};
use anygpu::{CallForm, Preface};
use anygpu_constrain::{Format, FormatError, Vocabulary};
use axum::http::StatusCode;
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

const FIELD: &str = "response_format";

const FORMAT: Table = &[
    ("type", Use(OneOf(&["text", "json_object", "json_schema"]))),
    (
        "json_schema",
        Use(Object(&[
            ("name", Use(Checked(check_name))),
            ("description", Use(Text)),
            ("schema", Use(Checked(check_schema))),
            // Answers always follow it.
            ("strict", Use(Boolean)),
        ])),
    ),
];

fn check_name(name: &str, value: &Value) -> Result<(), ApiError> {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let sound = value.as_str().is_some_and(|text| (1..=64).contains(&text.len()) && text.bytes().all(of_name));
    if sound { Ok(()) } else { Err(refused(name, "1 to 64 letters, digits, underscores and dashes", value)) }
}

fn check_schema(name: &str, value: &Value) -> Result<(), ApiError> {
    if value.is_object() { Ok(()) } else { Err(refused(name, "an object", value)) }
}

/// Checks the field.
pub fn check_format(name: &str, value: &Value) -> Result<(), ApiError> {
    let fields = check(name, value, &[FORMAT])?;
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

/// What a request asks for.
pub struct Asked {
    format: Format,
    /// The field that asks for it, and what messages call that.
    field: &'static str,
    name: String,
}

impl Asked {
    /// From a field that was found sound.
    pub fn read(value: &Value) -> Option<Asked> {
        let schema = &value["json_schema"];
        let format = match value["type"].as_str()? {
            "json_object" => Format::Object,
            "json_schema" => Format::Schema(schema["schema"].clone()),
            _ => return None,
        };
        let name = format!("schema for {FIELD} '{}'", schema["name"].as_str().unwrap_or("json_object"));
        Some(Asked { format, field: FIELD, name })
    }

    /// For the answer to a conversation, before which there may be something else.
    pub fn after(self, preface: Option<Preface>) -> Asked {
        Asked { format: self.format.after(preface), ..self }
    }

    /// From tools of which some must be called.
    pub fn calls(form: CallForm) -> Asked {
        Asked { format: Format::Calls(Box::new(form)), field: "tools", name: "parameters of tools".into() }
    }
}

/// Grammars that are made at a time, beside the threads that answer.
const AT_ONCE: usize = 2;

/// Makes grammars for answers.
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
    /// Requests with answers that are held to a format.
    ///
    /// *Errors*: a format that answers cannot be held to.
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
