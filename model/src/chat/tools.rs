//! What a conversation has besides its messages: functions that the model may call, and variables of the template.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::calls::{Calls, Syntax};
use super::demanded::Written;
use super::harmony::{self, Harmony};
use super::json;
use super::parts::Parts;
use super::thoughts::{HARMONY, Marks, Thoughts, Wrapper};
use super::{ChatError, ChatTemplate, Message};
use crate::tokenizer::{TokenKind, Tokenizer};

/// Variables that templates have anyway.
const OWN: [&str; 5] = ["messages", "tools", "bos_token", "eos_token", "add_generation_prompt"];

/// What a conversation has besides its messages.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatOptions {
    /// Functions that the model may call, in the shape of OpenAI's API: `{ "type": "function", "function": { "name",
    /// "description", "parameters" } }`.
    pub tools: Vec<Value>,
    /// Whether it calls them.
    pub tool_choice: ToolChoice,
    /// Whether all but the first call of an answer are dropped. Unless it says so, they are where a call is demanded.
    pub one_call: Option<bool>,
    /// Variables of the template, such as `enable_thinking`.
    pub variables: BTreeMap<String, Value>,
    /// Whether the answer is held to a format. Reasoning that the template begins is then ended in the prompt, so that a model
    /// whose reasoning does not end still answers; with the variable `enable_thinking: true` it goes on.
    pub held: bool,
}

/// Whether a model calls functions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// If it wants to.
    #[default]
    Auto,
    /// It is not told that there are any.
    None,
    /// It must call one.
    Required,
    /// It must call the one of this name.
    Named(String),
}

impl ChatOptions {
    /// Whether an answer may have one call at most.
    pub(super) fn wants_one(&self) -> bool {
        matches!(self.tool_choice, ToolChoice::Named(_)) || self.one_call.unwrap_or(self.tool_choice.demands())
    }
}

/// A function that may be called.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tool {
    pub name: String,
    /// What its parameters are, by their names.
    properties: Value,
}

/// The function of a name.
pub(super) fn find<'t>(tools: &'t [Tool], name: &str) -> Option<&'t Tool> {
    tools.iter().find(|tool| tool.name == name)
}

impl Tool {
    fn of(value: &Value) -> Option<Tool> {
        let function = value.get("function").unwrap_or(value);
        let properties = function.pointer("/parameters/properties").cloned().unwrap_or_default();
        Some(Tool { name: function.get("name")?.as_str()?.to_owned(), properties })
    }

    /// An argument that was written as plain text, as JSON writes it.
    pub fn argument(&self, name: &str, text: &str) -> String {
        let is_text = match self.properties.pointer(&format!("/{}/type", name.replace('~', "~0").replace('/', "~1"))) {
            Some(Value::String(kind)) => kind == "string",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
            _ => false,
        };
        if !is_text && json::is_sound(text) { json::compact(text) } else { Value::from(text).to_string() }
    }
}

/// How the answers to a template are written.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    thoughts: Option<&'static Marks>,
    wrapper: Option<&'static Wrapper>,
    harmony: bool,
    syntax: Option<&'static Syntax>,
    /// The functions of the conversation.
    tools: Arc<[Tool]>,
    /// Calls that are wanted at most, and whether one must be there.
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

    /// Ends the thoughts that a prompt has begun, as templates write empty ones.
    pub fn end_thoughts(&self, prompt: &mut String) {
        if let Some(marks) = self.thoughts.filter(|marks| prompt.trim_end().ends_with(marks.begin)) {
            prompt.truncate(prompt.trim_end().len());
            *prompt += &format!("\n\n{}\n\n", marks.end);
        }
    }

    pub fn is_harmony(&self) -> bool {
        self.harmony
    }

    /// How calls are written that are demanded, where that is known.
    pub fn written(&self) -> Option<&'static Written> {
        self.syntax.filter(|_| !self.harmony)?.written
    }
}

impl ChatTemplate {
    /// The same for a conversation with these options.
    ///
    /// Where a call is demanded, the answer has to be held to it by who asks for it ([`Self::call_form`]).
    ///
    /// *Errors*: the template does not read a variable, tells the model of no functions, or has it write calls in a way
    /// that is not known here.
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
        // What it does tells more than what it says.
        let probe = [Message::new("user", "?")];
        let without = chat.render(&probe, true);
        chat.set_variable("tools", &Value::Array(options.tools.clone()));
        if Ok(chat.render(&probe, true)?) == without {
            return Err(ChatError::NoTools);
        }
        if chat.answers.syntax.is_none() && !chat.answers.harmony {
            return Err(ChatError::Calls);
        }
        chat.answers.tools = options.tools.iter().filter_map(Tool::of).collect();
        chat.answers.demanded = options.tool_choice.demands();
        chat.answers.wanted = if options.wants_one() { 1 } else { usize::MAX };
        Ok(chat)
    }

    /// What tells the parts of an answer apart that follows a prompt which ends so.
    pub fn parts(&self, prompt: &str) -> Parts {
        let Answers { thoughts, wrapper, harmony, syntax, tools, wanted, demanded } = &self.answers;
        if *harmony {
            return Parts::harmony(Harmony::new(tools.clone(), *wanted));
        }
        let calls =
            syntax.filter(|_| !tools.is_empty()).map(|syntax| Calls::new(syntax, tools.clone(), *wanted, *demanded));
        Parts::marked(Thoughts::after(prompt, *thoughts, *wrapper), calls)
    }

    /// The control tokens that [`Self::parts`] has to see: for
    /// [`GenerateOptions::shown`](crate::GenerateOptions::shown).
    pub fn marks(&self, tokenizer: &Tokenizer) -> Vec<u32> {
        let Answers { thoughts, syntax, tools, .. } = &self.answers;
        let calls = syntax.filter(|_| !tools.is_empty()).into_iter().flat_map(Syntax::marks);
        let thoughts = thoughts.iter().flat_map(|marks| marks.tokens.iter().copied());
        let ids = calls.chain(thoughts).filter_map(|mark| tokenizer.token_id(mark));
        ids.filter(|id| tokenizer.token_kind(*id) == TokenKind::Control && !tokenizer.is_eog(*id)).collect()
    }
}
