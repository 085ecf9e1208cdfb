//! Chat templates: a conversation as the one text that a model was trained on.
//!
//! Files carry a Jinja2 template, written for Python. A file is not trusted: the size of a template, the instructions of
//! a rendering and its output are bounded.

mod clock;
mod json;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind, Value};
use serde::Serialize;

use crate::gguf::{GgufError, Metadata, StringArray};
use crate::tokenizer::Tokenizer;

/// Real templates take a few kilobytes.
const MAX_TEMPLATE: usize = 256 << 10;
/// Template instructions of one rendering; a message takes about a hundred.
const FUEL: u64 = 1_000_000;
/// Bytes that one rendering may produce.
const MAX_OUTPUT: usize = 64 << 20;

/// The only template of the environment.
const NAME: &str = "chat_template";

/// For files without a template: the most common form.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + \
                      '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Who speaks: `system`, `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub content: String,
}

impl Message {
    /// A turn.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Message {
        Message { role: role.into(), content: content.into() }
    }
}

/// A conversation that cannot be rendered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChatError {
    /// The template is not valid Jinja, or uses something that this build lacks.
    #[error("the chat template of the file cannot be read ({0}); send the prompt without chat formatting")]
    Template(String),
    /// The template is larger than any real one.
    #[error("the chat template of the file has {size} bytes, above the limit of {limit}; send the prompt without it")]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// The largest accepted size.
        limit: usize,
    },
    /// The template refused the messages, or failed on them.
    #[error(
        "the chat template refuses these messages ({0}); change their roles or order, or send the prompt without it"
    )]
    Render(String),
    /// Metadata of the wrong type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
}

/// The chat template of a file.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

impl ChatTemplate {
    /// The template in a file's metadata, or ChatML if it has none.
    ///
    /// *Errors*: the template is malformed or too large.
    pub fn from_metadata(metadata: &Metadata) -> Result<ChatTemplate, ChatError> {
        let source = metadata.get::<&str>("tokenizer.chat_template")?.unwrap_or(CHATML);
        if source.len() > MAX_TEMPLATE {
            return Err(ChatError::TooLarge { size: source.len(), limit: MAX_TEMPLATE });
        }
        let mut environment = environment();
        environment
            .add_template_owned(NAME, with_known_blocks(source))
            .map_err(|e| ChatError::Template(one_line(&e.to_string())))?;
        let tokens = metadata.get::<&Arc<StringArray>>("tokenizer.ggml.tokens")?;
        let token = |key: &str| -> Result<String, GgufError> {
            let id = metadata.get::<usize>(key)?;
            Ok(id.zip(tokens).and_then(|(id, tokens)| tokens.get(id)).unwrap_or_default().to_owned())
        };
        Ok(ChatTemplate {
            environment,
            bos: token("tokenizer.ggml.bos_token_id")?,
            eos: token("tokenizer.ggml.eos_token_id")?,
        })
    }

    /// Gives the template a variable of its own, such as `enable_thinking` (Qwen3).
    pub fn set_variable(&mut self, name: &str, value: &serde_json::Value) {
        self.environment.add_global(name.to_owned(), Value::from(Serde(value)));
    }

    /// Gives the template the date, as `strftime_now`. Without it templates fall back to a fixed date.
    ///
    /// *Units*: seconds since 1970-01-01, in the user's time zone.
    pub fn set_now(&mut self, seconds: i64) {
        self.environment.add_function("strftime_now", move |format: &str| clock::strftime(format, seconds));
    }

    /// The text of a conversation. `add_generation_prompt` adds the beginning of the assistant's turn.
    ///
    /// *Errors*: the template refuses the messages, fails, or produces too much.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String, ChatError> {
        let failed = |e: Error| ChatError::Render(one_line(&e.to_string()));
        let mut variables = vec![
            ("messages", Value::from(Serde(messages))),
            ("bos_token", Value::from(&*self.bos)),
            ("eos_token", Value::from(&*self.eos)),
        ];
        // Templates may ask whether it is defined rather than whether it is true.
        if add_generation_prompt {
            variables.push(("add_generation_prompt", Value::from(true)));
        }
        let template = self.environment.get_template(NAME).map_err(failed)?;
        let mut output = Bounded(Vec::new());
        template.render_captured_to(Value::from_pairs(variables), &mut output).map_err(failed)?;
        String::from_utf8(output.0).map_err(|e| ChatError::Render(e.to_string()))
    }

    /// The tokens of a conversation. What the tokenizer adds around a text is not added twice.
    ///
    /// *Errors*: as [`ChatTemplate::render`].
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        add_generation_prompt: bool,
    ) -> Result<Vec<u32>, ChatError> {
        let text = self.render(messages, add_generation_prompt)?;
        let mut text = text.as_str();
        if tokenizer.add_bos() {
            text = text.strip_prefix(&*self.bos).unwrap_or(text);
        }
        if tokenizer.add_eos() {
            text = text.strip_suffix(&*self.eos).unwrap_or(text);
        }
        Ok(tokenizer.encode(text, true, true))
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    // The settings that Hugging Face's tokenizers render with.
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_filter("tojson", json::tojson);
    environment.add_function("raise_exception", |text: &str| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, text.to_owned()))
    });
    environment
}

/// The same with blocks of Jinja's own in place of `generation`, which marks for training what an assistant says and
/// changes nothing of the text (SmolLM3).
fn with_known_blocks(source: &str) -> String {
    const BLOCKS: [(&str, &str); 2] = [("generation", "if true"), ("endgeneration", "endif")];
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let tag = &rest[at + 2..];
        let word = tag.trim_start_matches(['-', '+']).trim_start();
        out.push_str(&rest[..rest.len() - word.len()]);
        rest = word;
        for (mark, block) in BLOCKS {
            if let Some(end) = word.strip_prefix(mark)
                && end.trim_start().trim_start_matches(['-', '+']).starts_with("%}")
            {
                out.push_str(block);
                rest = end;
            }
        }
    }
    out + rest
}

/// Messages come from files, so they may hold anything.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}

/// A buffer that refuses to grow past [`MAX_OUTPUT`].
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT {
            return Err(io::Error::other("the text is too long"));
        }
        self.0.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
