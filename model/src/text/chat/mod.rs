//! Chat templates: they render a conversation as the text format that a model was trained on.
//!
//! A GGUF file carries a Jinja2 template, written for Python. Files are not trusted: the size and the nesting of a
//! template, and the work of a rendering, are bounded.

#[cfg(test)]
mod answers;
mod bodies;
mod calls;
mod clock;
#[cfg(test)]
mod corpus;
mod demanded;
mod harmony;
mod jinja;
mod json;
mod literals;
mod parts;
mod preface;
mod takes;
#[cfg(test)]
mod tests;
mod thoughts;
mod told;
mod tools;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::gguf::{GgufError, Metadata};
use crate::text::tokenizer::{Tokenizer, marks_of_text};
use jinja::{Input, Template};
use takes::Takes;
use tools::Answers;

pub use demanded::CallForm;
pub use parts::{Part, Parts, ToolCall};
pub use preface::Preface;
pub use tools::{ChatOptions, ToolChoice};
pub use turn::arguments as call_arguments;

/// Limit on the size of a template. Real ones have a few kilobytes.
const MAX_TEMPLATE: usize = 256 << 10;

/// Template for files without one: ChatML, the most common format.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + \
                      '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Role of the speaker: `system`, `developer`, `user`, `assistant`, `tool`, or another role that the template
    /// knows.
    pub role: String,
    /// Text of the message.
    pub content: String,
    /// Other fields that a template may read: `tool_calls`, `tool_call_id`, `reasoning_content`, or the content as
    /// parts.
    #[serde(flatten)]
    pub fields: BTreeMap<String, serde_json::Value>,
}

impl Message {
    /// Makes a message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Message {
        Message { role: role.into(), content: content.into(), fields: BTreeMap::new() }
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: serde_json::Value) -> Message {
        self.fields.insert(name.into(), value);
        self
    }
}

/// Error of rendering a conversation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChatError {
    /// The template is not valid Jinja, or uses a feature that is not supported.
    #[error("the chat template of the file cannot be read ({0}); send the prompt without chat formatting")]
    Template(String),
    /// The template exceeds the size limit.
    #[error("the chat template of the file has {size} bytes, above the limit of {limit}; send the prompt without it")]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// The largest accepted size.
        limit: usize,
    },
    /// The template rejected the messages, or failed on them.
    #[error(
        "the chat template refuses these messages ({0}); change their roles or order, or send the prompt without it"
    )]
    Render(String),
    /// The template does not know the role of a message.
    #[error("the chat template of the file knows no role {0:?}; use system, developer, user, assistant or tool")]
    Role(String),
    /// The template does not read a variable that the caller sets, or defines it itself.
    #[error("the chat template of the file takes no argument {0}; leave it out")]
    Variable(String),
    /// A call is required, but nothing constrains the answer to be one.
    #[error(
        "answers cannot be held to calls as the chat template of the file has them written; let the model choose (auto), or \
         leave tools out (none)"
    )]
    Demanded,
    /// A call is required, but the function does not exist.
    #[error(
        "a call is demanded, but there is no such function; give it among the tools, or let the model choose (auto)"
    )]
    NothingToCall,
    /// Metadata of the wrong type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
}

/// The chat template of a file.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    template: Arc<Template>,
    takes: Arc<Takes>,
    answers: Answers,
    /// The template for conversations with tools, if the file has a separate one.
    for_tools: Option<Result<Arc<ChatTemplate>, ChatError>>,
    variables: BTreeMap<String, serde_json::Value>,
    /// Tools of which the model is told in the system message, since the template does not do so.
    told: Vec<serde_json::Value>,
    /// Whether thoughts that a rendering begins are ended in it.
    ends_thoughts: bool,
    now: Option<i64>,
    bos: String,
    eos: String,
}

impl ChatTemplate {
    /// Reads the template in a file's metadata; ChatML if the file does not have one.
    ///
    /// *Errors*: the template is malformed or too large.
    pub fn from_metadata(metadata: &Metadata) -> Result<ChatTemplate, ChatError> {
        let source = metadata.get::<&str>("tokenizer.chat_template")?.unwrap_or(CHATML);
        let mut chat = ChatTemplate::read(source, metadata)?;
        let for_tools = metadata.get::<&str>("tokenizer.chat_template.tool_use")?;
        chat.for_tools = for_tools.map(|source| ChatTemplate::read(source, metadata).map(Arc::new));
        Ok(chat)
    }

    fn read(source: &str, metadata: &Metadata) -> Result<ChatTemplate, ChatError> {
        if source.len() > MAX_TEMPLATE {
            return Err(ChatError::TooLarge { size: source.len(), limit: MAX_TEMPLATE });
        }
        let template = Template::parse(source).map_err(|e| ChatError::Template(one_line(&e.to_string())))?;
        let [bos, eos] = marks_of_text(metadata)?;
        Ok(ChatTemplate {
            template: Arc::new(template),
            takes: Arc::default(),
            answers: Answers::of(source),
            for_tools: None,
            variables: BTreeMap::new(),
            told: Vec::new(),
            ends_thoughts: false,
            now: None,
            bos,
            eos,
        })
    }

    /// Sets a variable of the template, such as `tools`, or `enable_thinking` (Qwen3).
    pub fn set_variable(&mut self, name: &str, value: &serde_json::Value) {
        self.variables.insert(name.to_owned(), value.clone());
    }

    /// Sets the time that `strftime_now` formats. Without it, templates use a fixed date.
    ///
    /// *Units*: seconds since 1970-01-01, in the user's time zone.
    pub fn set_now(&mut self, seconds: i64) {
        self.now = Some(seconds);
    }

    /// Renders a conversation. `add_generation_prompt` adds the beginning of the assistant's turn.
    ///
    /// Messages are adapted to the template: an unknown `developer` role becomes `system`, an unsupported system
    /// message is prepended to the next message of the user, and texts become typed parts if the template reads nothing
    /// else. If the template still refuses them, arguments of calls become texts, what was said beside a call joins the
    /// thoughts, and neighbours of one role are joined. Tools that the template does not show come into the system
    /// message.
    ///
    /// *Errors*: the template rejects the messages, does not know a role, fails, or does too much work.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String, ChatError> {
        let told = (!self.told.is_empty()).then(|| told::told(messages, &self.told));
        let messages = told.as_deref().unwrap_or(messages);
        let mut text = self.conceded(&self.suited(messages)?, add_generation_prompt)?;
        if add_generation_prompt && self.ends_thoughts {
            self.answers.end_thoughts(&mut text);
        }
        Ok(text)
    }

    /// Renders a conversation without adapting it, with at most so much work.
    fn rendered(&self, messages: &[Message], add_generation_prompt: bool, work: usize) -> Result<String, ChatError> {
        let input = Input {
            work,
            messages,
            add_generation_prompt,
            bos: &self.bos,
            eos: &self.eos,
            variables: &self.variables,
            now: self.now,
        };
        self.template.render(&input).map_err(|e| ChatError::Render(one_line(&e.to_string())))
    }

    /// Renders and tokenizes a conversation. BOS and EOS are not duplicated if the tokenizer adds them.
    ///
    /// *Errors*: as [`ChatTemplate::render`].
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        add_generation_prompt: bool,
    ) -> Result<Vec<u32>, ChatError> {
        Ok(self.tokens(tokenizer, &self.render(messages, add_generation_prompt)?))
    }

    /// Tokenizes a text from [`Self::render`]. BOS and EOS are not duplicated if the tokenizer adds them.
    pub fn tokens(&self, tokenizer: &Tokenizer, mut text: &str) -> Vec<u32> {
        if tokenizer.add_bos() {
            text = text.strip_prefix(&*self.bos).unwrap_or(text);
        }
        if tokenizer.add_eos() {
            text = text.strip_suffix(&*self.eos).unwrap_or(text);
        }
        tokenizer.encode(text, true, true)
    }
}

/// Makes a message one short line: it comes from the file and may contain anything.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}
