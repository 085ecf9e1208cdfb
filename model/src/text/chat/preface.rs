//! Text before an answer that is constrained to a format: models think first, and some name the channel of the answer.

use serde::{Deserialize, Serialize};

use super::{ChatError, ChatOptions, ChatTemplate, Message, harmony};

/// Text before an answer that is constrained to a format. The format does not apply to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preface {
    /// Begin and end marks of thoughts, if the family has thoughts.
    pub thoughts: Option<(String, String)>,
    /// Whether the prompt has already begun the thoughts.
    pub thinking: bool,
    /// Text between the thoughts (or the prompt, without thoughts) and the answer.
    pub header: String,
    /// Marks in these texts that are single tokens, if the vocabulary has them.
    pub marks: Vec<String>,
}

impl ChatTemplate {
    /// Returns the text that may stand before the answer to a conversation; nothing if the format applies from the
    /// first token on.
    ///
    /// *Errors*: as [`Self::with`] and [`Self::render`].
    pub fn preface(&self, messages: &[Message], options: &ChatOptions) -> Result<Option<Preface>, ChatError> {
        let chat = self.with(options)?;
        let Some(marks) = chat.answers.thoughts() else { return Ok(None) };
        Ok(Some(Preface {
            thoughts: Some((marks.begin.into(), marks.end.into())),
            thinking: chat.is_thinking_after(messages)?,
            header: if chat.answers.is_harmony() { harmony::FINAL.into() } else { String::new() },
            marks: marks.tokens.iter().map(|mark| (*mark).to_owned()).collect(),
        }))
    }

    /// Returns whether the prompt of a conversation begins the thoughts of the answer.
    pub(super) fn is_thinking_after(&self, messages: &[Message]) -> Result<bool, ChatError> {
        Ok(self.parts(&self.render(messages, true)?).is_thinking())
    }
}
