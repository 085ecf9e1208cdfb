//! Answers that must call: how a family writes calls, for those who hold answers to that.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tools::ToolChoice;
use super::{ChatError, ChatOptions, ChatTemplate, Message};

/// How calls are written that are demanded: the texts around names and arguments.
#[derive(Debug, PartialEq)]
pub(super) struct Written {
    /// Before all calls, and behind them.
    pub around: (&'static str, &'static str),
    /// Before the name of a function, between that and its arguments, and behind them.
    pub call: (&'static str, &'static str, &'static str),
    /// Between two calls, where an answer may have several.
    pub between: Option<&'static str>,
    /// What of all that may be a token of its own.
    pub marks: &'static [&'static str],
}

/// Behind `{`, as Python writes JSON.
const NAME: &str = "{\"name\": \"";

/// An object between marks of its own, as Hermes has it.
pub(super) const MARKED: Written = Written {
    around: ("", ""),
    call: ("<tool_call>\n{\"name\": \"", "\", \"arguments\": ", "}\n</tool_call>"),
    between: Some("\n"),
    marks: &["<tool_call>", "</tool_call>"],
};
/// A list of objects behind one mark; what ends it may be left out.
pub(super) const LIST: Written = Written {
    around: ("<|tool_call|>[", "]"),
    call: (NAME, "\", \"arguments\": ", "}"),
    between: Some(", "),
    marks: &["<|tool_call|>"],
};
/// Mistral's list.
pub(super) const MISTRAL_LIST: Written = Written { around: ("[TOOL_CALLS][", "]"), marks: &["[TOOL_CALLS]"], ..LIST };
/// A mark, a name, a mark and arguments.
pub(super) const MISTRAL: Written = Written {
    around: ("", ""),
    call: ("[TOOL_CALLS]", "[ARGS]", ""),
    between: Some(""),
    marks: &["[TOOL_CALLS]", "[ARGS]"],
};
/// Nothing but an object.
pub(super) const BARE: Written =
    Written { around: ("", ""), call: (NAME, "\", \"parameters\": ", "}"), between: None, marks: &[] };

/// What an answer must be that has to call functions: thoughts, if there may be some, and then calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallForm {
    /// What thoughts begin and end with, where the family has such.
    pub thoughts: Option<(String, String)>,
    /// Whether the prompt has begun them.
    pub thinking: bool,
    /// What stands before all calls, and behind them.
    pub around: (String, String),
    /// What stands before the name of a function, between that and its arguments, and behind them.
    pub call: (String, String, String),
    /// What stands between two calls, if there may be more than one.
    pub between: Option<String>,
    /// What of all that is a token of its own, if the vocabulary has such.
    pub marks: Vec<String>,
    /// The functions that may be called: their names, and the JSON schemas of their arguments.
    pub functions: Vec<(String, Value)>,
}

impl ToolChoice {
    /// Whether a call is demanded.
    pub fn demands(&self) -> bool {
        matches!(self, ToolChoice::Required | ToolChoice::Named(_))
    }
}

impl ChatTemplate {
    /// What the answer to a conversation must be if its options demand calls; nothing if they do not.
    ///
    /// *Errors*: as [`Self::with`] and [`Self::render`]; there is no function to call; the family writes calls in a way that is
    /// not known as a form.
    pub fn call_form(&self, messages: &[Message], options: &ChatOptions) -> Result<Option<CallForm>, ChatError> {
        if !options.tool_choice.demands() {
            return Ok(None);
        }
        let wanted = |name: &str| match &options.tool_choice {
            ToolChoice::Named(named) => name == named,
            _ => true,
        };
        let function = |tool: &Value| {
            let function = tool.get("function").unwrap_or(tool);
            let name = function.get("name")?.as_str().filter(|name| wanted(name))?;
            let none = || json!({ "type": "object", "properties": {}, "additionalProperties": false });
            let parameters = function.get("parameters").filter(|parameters| parameters.is_object());
            Some((name.to_owned(), parameters.cloned().unwrap_or_else(none)))
        };
        let functions: Vec<_> = options.tools.iter().filter_map(function).collect();
        if functions.is_empty() {
            return Err(ChatError::NothingToCall);
        }
        let chat = self.with(options)?;
        let Written { around, call, between, marks } = chat.answers.written().ok_or(ChatError::Demanded)?;
        let thoughts = chat.answers.thoughts();
        Ok(Some(CallForm {
            thoughts: thoughts.map(|marks| (marks.begin.into(), marks.end.into())),
            thinking: chat.is_thinking_after(messages)?,
            around: (around.0.into(), around.1.into()),
            call: (call.0.into(), call.1.into(), call.2.into()),
            between: between.filter(|_| !options.wants_one()).map(Into::into),
            marks: marks
                .iter()
                .chain(thoughts.into_iter().flat_map(|marks| marks.tokens))
                .map(|mark| (*mark).into())
                .collect(),
            functions,
        }))
    }
}
