//! What stands before an answer that is held to a format: models think first, and some name the channel of what they say.

use serde::{Deserialize, Serialize};

use super::{ChatError, ChatOptions, ChatTemplate, Message, harmony};

/// Text before an answer that is held to a format, which does not count as a part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preface {
    /// What thoughts begin and end with, where the family has such.
    pub thoughts: Option<(String, String)>,
    /// Whether the prompt has begun them.
    pub thinking: bool,
    /// Text between the thoughts, if there are any, and the answer.
    pub header: String,
    /// Parts of all that which are tokens of their own, if the vocabulary has such.
    pub marks: Vec<String>,
}

impl ChatTemplate {
    /// The text that may stand before the answer to a conversation where the answer is held to a format; none if the format
    /// holds from the first token on.
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

    /// Whether the prompt of a conversation begins the thoughts of the answer.
    pub(super) fn is_thinking_after(&self, messages: &[Message]) -> Result<bool, ChatError> {
        Ok(self.parts(&self.render(messages, true)?).is_thinking())
    }
}
