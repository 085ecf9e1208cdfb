//! Grammars that hold answers to formats.

use super::error::ApiError;
use anygpu::handle::{Generate, Handle};
use anygpu::{CallForm, Preface};
use anygpu_constrain::{Format, FormatError, Vocabulary};
use anygpu_openai::Asked;
use axum::http::StatusCode;
use std::sync::{Arc, OnceLock};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The format that an answer is held to.
pub struct Held {
    format: Format,
    /// The field that asks for it, and its name in error messages.
    field: &'static str,
    name: String,
}

impl Held {
    /// Returns the format of a request for the answer to a conversation, which a preface such as reasoning may precede.
    pub fn asked(asked: Asked, preface: Option<Preface>) -> Held {
        let format = match asked.format {
            anygpu_openai::Format::Object => Format::Object,
            anygpu_openai::Format::Schema(schema) => Format::Schema(schema),
            anygpu_openai::Format::Regex(regex) => Format::Regex(regex),
        };
        Held { format: format.after(preface), field: asked.field, name: asked.name }
    }

    /// Creates the format of an answer that must call tools.
    pub fn calls(form: CallForm) -> Held {
        Held { format: Format::Calls(Box::new(form)), field: "tools", name: "parameters of tools".into() }
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
    pub async fn hold(&self, handle: &Handle, generate: Vec<Generate>, held: Held) -> Result<Vec<Generate>, ApiError> {
        let Some(tokenizer) = handle.tokenizer().cloned() else {
            let message = "this model has no tokenizer, so its answers cannot be held to a format; use another model";
            return Err(ApiError::request(message).about(held.field));
        };
        // The semaphore is never closed.
        let _place = self.places.acquire().await;
        let Held { format, field, name } = held;
        let vocabulary = self.vocabulary.clone();
        let made = spawn_blocking(move || {
            let vocabulary = vocabulary.get_or_init(|| Vocabulary::new(&tokenizer));
            vocabulary.as_ref().map_err(Clone::clone)?.grammar(&format)
        });
        let failed = |_| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "a grammar could not be made; ask again");
        let invalid = |error| ApiError::request(format!("Invalid {name}: {error}")).about(field);
        let grammar = made.await.map_err(failed)?.map_err(invalid)?;
        let with = |generate: Generate| {
            let grammar = grammar.clone();
            generate.with(move |options| options.constraint = Some(grammar.constraint()))
        };
        Ok(generate.into_iter().map(with).collect())
    }
}
