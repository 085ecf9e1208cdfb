//! Tools of a conversation, and variables of the template.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::calls::{Calls, Syntax};
use super::demanded::Written;
use super::harmony::{self, Harmony};
use super::json;
use super::parts::Parts;
use super::thoughts::{HARMONY, Marks, Thoughts, Wrapper};
use super::{ChatError, ChatTemplate, Message};
use crate::text::tokenizer::{TokenKind, Tokenizer};

/// Variables that the renderer sets itself.
const OWN: [&str; 5] = ["messages", "tools", "bos_token", "eos_token", "add_generation_prompt"];

/// Options of a conversation besides its messages.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatOptions {
    /// Functions that the model may call, in the format of OpenAI's API: `{ "type": "function", "function": { "name",
    /// "description", "parameters" } }`.
    pub tools: Vec<Value>,
    /// Whether the model calls functions.
    pub tool_choice: ToolChoice,
    /// Whether only the first call of an answer is returned. By default, that is so if a call is required; for
    /// [`ToolChoice::Named`], it is always so.
    pub one_call: Option<bool>,
    /// Variables of the template, such as `enable_thinking`.
    pub variables: BTreeMap<String, Value>,
    /// Whether the answer is constrained to a format. Thoughts that the template begins are then ended in the prompt,
    /// so that a model whose thoughts do not end still answers. With the variable `enable_thinking: true`, they go on.
    pub held: bool,
}

/// Choice of whether a model calls functions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model is not told of any functions.
    None,
    /// The model must call a function.
    Required,
    /// The model must call the function of this name.
    Named(String),
}

impl ChatOptions {
    /// Returns whether at most one call is returned.
    pub(super) fn wants_one(&self) -> bool {
        matches!(self.tool_choice, ToolChoice::Named(_)) || self.one_call.unwrap_or(self.tool_choice.demands())
    }
}

/// A function that may be called.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tool {
    pub name: String,
    /// JSON schemas of its parameters, by name.
    properties: Value,
}

/// Finds a function by its name.
pub(super) fn find<'t>(tools: &'t [Tool], name: &str) -> Option<&'t Tool> {
    tools.iter().find(|tool| tool.name == name)
}

impl Tool {
    fn of(value: &Value) -> Option<Tool> {
        let function = value.get("function").unwrap_or(value);
        let properties = function.pointer("/parameters/properties").cloned().unwrap_or_default();
        Some(Tool { name: function.get("name")?.as_str()?.to_owned(), properties })
    }

    /// Converts an argument that was written as plain text to JSON. It stays as it is if it is JSON and the parameter
    /// is not a string.
    pub fn argument(&self, name: &str, text: &str) -> String {
        let is_text = match self.properties.pointer(&format!("/{}/type", name.replace('~', "~0").replace('/', "~1"))) {
            Some(Value::String(kind)) => kind == "string",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
            _ => false,
        };
        if !is_text && json::is_sound(text) { json::compact(text) } else { Value::from(text).to_string() }
    }
}

/// Markup of the answers to a template.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    thoughts: Option<&'static Marks>,
    wrapper: Option<&'static Wrapper>,
    harmony: bool,
    syntax: Option<&'static Syntax>,
    /// Functions of the conversation.
    tools: Arc<[Tool]>,
    /// Largest number of calls to return, and whether there must be one.
    wanted: usize,
    demanded: bool,
}

impl Answers {
    pub fn of(template: &str) -> Answers {
        let harmony = harmony::is_of(template);
        let thoughts = if harmony { Some(&HARMONY) } else { Marks::of(template) };
        let (wrapper, syntax) = (Wrapper::of(template), Syntax::of(template));
        Answers { thoughts, wrapper, harmony, syntax, tools: Arc::default(), wanted: 0, demanded: false }
    }

    pub fn thoughts(&self) -> Option<&'static Marks> {
        self.thoughts
    }

    /// Ends the thoughts that a prompt has begun, in the way that templates write empty thoughts.
    pub fn end_thoughts(&self, prompt: &mut String) {
        if let Some(marks) = self.thoughts.filter(|marks| prompt.trim_end().ends_with(marks.begin)) {
            prompt.truncate(prompt.trim_end().len());
            *prompt += &format!("\n\n{}\n\n", marks.end);
        }
    }

    pub fn is_harmony(&self) -> bool {
        self.harmony
    }

    /// Returns the format of required calls, if it is supported.
    pub fn written(&self) -> Option<&'static Written> {
        self.syntax.filter(|_| !self.harmony)?.written
    }
}

/// Adds what a function may lack, but some templates read always: a description, and parameters.
fn completed(tool: &Value) -> Value {
    let mut tool = tool.clone();
    let function = if tool.get("function").is_some() { &mut tool["function"] } else { &mut tool };
    let Some(function) = function.as_object_mut() else { return tool };
    function.entry("description").or_insert_with(|| "".into());
    let parameters = function.entry("parameters").or_insert_with(|| json!({}));
    if let Some(parameters) = parameters.as_object_mut() {
        for (name, value) in [("type", json!("object")), ("properties", json!({})), ("required", json!([]))] {
            parameters.entry(name).or_insert(value);
        }
    }
    tool
}

impl ChatTemplate {
    /// Applies the options of a conversation.
    ///
    /// Tools that the template does not show, or whose calls it has written in an unknown way, come into the system
    /// message. If a call is required, the caller must constrain the answer to it ([`Self::call_form`]).
    ///
    /// *Errors*: the template does not read a variable, or fails.
    pub fn with(&self, options: &ChatOptions) -> Result<ChatTemplate, ChatError> {
        let has_tools = !options.tools.is_empty() && options.tool_choice != ToolChoice::None;
        let mut chat = match &self.for_tools {
            Some(for_tools) if has_tools => {
                let chat = for_tools.as_ref().map_err(Clone::clone)?;
                ChatTemplate { variables: self.variables.clone(), now: self.now, ..(**chat).clone() }
            }
            _ => self.clone(),
        };
        for (name, value) in &options.variables {
            if OWN.contains(&name.as_str()) || !chat.template.names(name) {
                return Err(ChatError::Variable(super::one_line(name)));
            }
            chat.set_variable(name, value);
        }
        chat.ends_thoughts = options.held && options.variables.get("enable_thinking") != Some(&Value::Bool(true));
        if !has_tools {
            return Ok(chat);
        }
        // Rendering is a better test than searching the source for "tools".
        let probe = [Message::new("user", "?")];
        let without = chat.render(&probe, true);
        chat.set_variable("tools", &Value::Array(options.tools.clone()));
        let mut shown = chat.render(&probe, true);
        if shown.is_err() {
            chat.set_variable("tools", &options.tools.iter().map(completed).collect());
            shown = chat.render(&probe, true).or(shown);
        }
        let is_known = chat.answers.syntax.is_some() || chat.answers.harmony;
        match (shown, without) {
            (Err(error), Err(_)) => return Err(error),
            (Err(error), _) if options.tools.iter().any(|tool| Tool::of(tool).is_none()) => return Err(error),
            (Ok(shown), without) if is_known && Ok(&shown) != without.as_ref() => {}
            _ => {
                chat.variables.remove("tools");
                chat.told = options.tools.clone();
                chat.answers.syntax = Some(Syntax::told());
            }
        }
        chat.answers.tools = options.tools.iter().filter_map(Tool::of).collect();
        chat.answers.demanded = options.tool_choice.demands();
        chat.answers.wanted = if options.wants_one() { 1 } else { usize::MAX };
        Ok(chat)
    }

    /// Makes the parser of an answer that follows `prompt`, of which the end suffices.
    pub fn parts(&self, prompt: &str) -> Parts {
        let Answers { thoughts, wrapper, harmony, syntax, tools, wanted, demanded } = &self.answers;
        if *harmony {
            return Parts::harmony(Harmony::new(tools.clone(), *wanted));
        }
        let calls =
            syntax.filter(|_| !tools.is_empty()).map(|syntax| Calls::new(syntax, tools.clone(), *wanted, *demanded));
        Parts::marked(Thoughts::after(prompt, *thoughts, *wrapper), calls)
    }

    /// Returns the control tokens that [`Self::parts`] must see, for
    /// [`GenerateOptions::shown`](crate::GenerateOptions::shown).
    pub fn marks(&self, tokenizer: &Tokenizer) -> Vec<u32> {
        let Answers { thoughts, syntax, tools, .. } = &self.answers;
        let calls = syntax.filter(|_| !tools.is_empty()).into_iter().flat_map(Syntax::marks);
        let thoughts = thoughts.iter().flat_map(|marks| marks.tokens.iter().copied());
        let ids = calls.chain(thoughts).filter_map(|mark| tokenizer.token_id(mark));
        ids.filter(|id| tokenizer.token_kind(*id) == TokenKind::Control && !tokenizer.is_eog(*id)).collect()
    }
}
