//! Formats of answers.

use model::{CallForm, Preface};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::FormatError;

/// The format that an answer must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Any JSON object.
    Object,
    /// JSON that follows a schema.
    Schema(Value),
    /// Text that a regular expression matches from end to end, in the notation of Rust's `regex` without look-around.
    Regex(String),
    /// Calls of functions, in the form of the model's family.
    Calls(Box<CallForm>),
    /// Another format, and a preface that may precede the answer. Not for calls, whose form includes the preface.
    After(Box<Preface>, Box<Format>),
}

impl Format {
    /// Parses the text of a schema, which may begin with a byte order mark.
    ///
    /// *Errors*: the text is not JSON.
    pub fn schema(text: &str) -> Result<Format, FormatError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        serde_json::from_str(text).map(Format::Schema).map_err(|error| FormatError::NotJson(error.to_string()))
    }

    /// Returns this format for the answer to a conversation, with the preface that
    /// [`ChatTemplate::preface`](model::ChatTemplate::preface) returns.
    pub fn after(self, preface: Option<Preface>) -> Format {
        match preface {
            Some(preface) => Format::After(preface.into(), self.into()),
            None => self,
        }
    }

    /// Restores a format from the result of [`Constraint::source`](model::Constraint::source).
    ///
    /// *Errors*: an unknown format.
    pub fn from_source(source: &str) -> Result<Format, FormatError> {
        serde_json::from_str(source).map_err(|error| FormatError::NotJson(error.to_string()))
    }

    /// Returns the schema of this format, if it is one, also after reasoning.
    pub(crate) fn schema_of(&self) -> Option<&Value> {
        match self {
            Format::Schema(schema) => Some(schema),
            Format::After(_, format) => format.schema_of(),
            Format::Object | Format::Regex(_) | Format::Calls(_) => None,
        }
    }

    /// Serializes the format for [`Self::from_source`].
    pub(crate) fn source(&self) -> String {
        // Serialization cannot fail, because all keys are strings.
        serde_json::to_string(self).unwrap_or_default()
    }
}
