//! Required calls: the format that an answer is constrained to.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tools::ToolChoice;
use super::{ChatError, ChatOptions, ChatTemplate, Message};

/// Format of required calls: the texts around names and arguments.
#[derive(Debug, PartialEq)]
pub(super) struct Written {
    /// Texts before all calls, and after them.
    pub around: (&'static str, &'static str),
    /// Texts before a function's name, between the name and the arguments, and after the arguments.
    pub call: (&'static str, &'static str, &'static str),
    /// Text between two calls, if there may be several.
    pub between: Option<&'static str>,
    /// Marks in these texts that may be single tokens.
    pub marks: &'static [&'static str],
}

/// Beginning of a call object, with spaces as Python's `json.dumps` writes them.
const NAME: &str = "{\"name\": \"";

/// Hermes: each call is an object between marks.
pub(super) const MARKED: Written = Written {
    around: ("", ""),
    call: ("<tool_call>\n{\"name\": \"", "\", \"arguments\": ", "}\n</tool_call>"),
    between: Some("\n"),
    marks: &["<tool_call>", "</tool_call>"],
};
/// Granite and Phi-4: a list of objects after a single mark. Its end mark may be omitted.
pub(super) const LIST: Written = Written {
    around: ("<|tool_call|>[", "]"),
    call: (NAME, "\", \"arguments\": ", "}"),
    between: Some(", "),
    marks: &["<|tool_call|>"],
};
/// Mistral before 2025: a list after its own mark.
pub(super) const MISTRAL_LIST: Written = Written { around: ("[TOOL_CALLS][", "]"), marks: &["[TOOL_CALLS]"], ..LIST };
/// Mistral since 2025: a mark, the name, a mark, and the arguments.
pub(super) const MISTRAL: Written = Written {
    around: ("", ""),
    call: ("[TOOL_CALLS]", "[ARGS]", ""),
    between: Some(""),
    marks: &["[TOOL_CALLS]", "[ARGS]"],
};
/// Llama: only an object.
pub(super) const BARE: Written =
    Written { around: ("", ""), call: (NAME, "\", \"parameters\": ", "}"), between: None, marks: &[] };

/// Format of an answer that must call functions: optional thoughts, followed by calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallForm {
    /// Begin and end marks of thoughts, if the family has thoughts.
    pub thoughts: Option<(String, String)>,
    /// Whether the prompt has already begun the thoughts.
    pub thinking: bool,
    /// Texts before all calls, and after them.
    pub around: (String, String),
    /// Texts before a function's name, between the name and the arguments, and after the arguments.
    pub call: (String, String, String),
    /// Text between two calls, if there may be several.
    pub between: Option<String>,
    /// Marks in these texts that are single tokens, if the vocabulary has them.
    pub marks: Vec<String>,
    /// Functions that may be called: their names, and the JSON schemas of their arguments.
    pub functions: Vec<(String, Value)>,
}

impl ToolChoice {
    /// Returns whether a call is required.
    pub fn demands(&self) -> bool {
        matches!(self, ToolChoice::Required | ToolChoice::Named(_))
    }
}

impl ChatTemplate {
    /// Returns the format of the answer if the options require calls; otherwise nothing.
    ///
    /// *Errors*: as [`Self::with`] and [`Self::render`]; there is no function to call; the template's call syntax has
    /// no such format.
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
