//! What answers can be held to.

use model::{CallForm, Preface};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::FormatError;

/// What an answer is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Any JSON object.
    Object,
    /// JSON that follows a schema.
    Schema(Value),
    /// Text that a regular expression matches from end to end, in the notation of Rust's `regex` without look-around.
    Regex(String),
    /// Calls of functions, as the family of a model writes them.
    Calls(Box<CallForm>),
    /// Another format, and what may stand before the answer that is held to it. Not for calls, which have that themselves.
    After(Box<Preface>, Box<Format>),
}

impl Format {
    /// From the text of a schema, which may have a byte order mark.
    ///
    /// *Errors*: it is no JSON.
    pub fn schema(text: &str) -> Result<Format, FormatError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        serde_json::from_str(text).map(Format::Schema).map_err(|error| FormatError::NotJson(error.to_string()))
    }

    /// This format for the answer to a conversation ([`ChatTemplate::preface`](model::ChatTemplate::preface)).
    pub fn after(self, preface: Option<Preface>) -> Format {
        match preface {
            Some(preface) => Format::After(preface.into(), self.into()),
            None => self,
        }
    }

    /// From what [`Constraint::source`](model::Constraint::source) gave.
    ///
    /// *Errors*: a format that is not known.
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

    /// What [`Self::from_source`] reads.
    pub(crate) fn source(&self) -> String {
        // Keys are strings, and nothing else could fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}
