//! Conversations in requests: messages, tools, and variables of the template.

use crate::error::Refusal;
use crate::fields::Kind::{Boolean, Checked, Integer, OneOf, Such, Text};
use crate::fields::Rule::{Ignored, Only, Use};
use crate::fields::{Notes, Table, check, refused};
use anygpu::{ChatOptions, ChatTemplate, Message, ToolChoice, call_arguments};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Most tools of a request, as in OpenAI's API.
const MOST_TOOLS: usize = 128;
/// Most template variables of a request.
const MOST_VARIABLES: usize = 32;

const ONLY_TEXT: &str = "only text is read; leave this part out";

/// Fields of a message. Clients send back the messages that they received. So fields that services add to their answers
/// are accepted if they are empty, and fields that clients add are ignored.
pub const MESSAGE: Table = &[
    ("role", Use(Such("a string such as user", is_role))),
    ("content", Use(Checked("a string, or an array of { type: \"text\", text }", check_content))),
    ("reasoning_content", Use(Text)),
    ("name", Use(Text)),
    ("tool_calls", Use(Checked("an array of calls", check_calls))),
    ("tool_call_id", Use(Text)),
    ("refusal", Only(&["\"\""], "only content is read; put it there")),
    ("function_call", Only(&[], "its name is tool_calls")),
    ("audio", Only(&[], "only text is read; leave it out")),
    ("annotations", Ignored),
    ("parsed", Ignored),
    ("cache_control", Ignored),
];

/// Fields of a part of a message.
const PART: Table = &[
    ("type", Use(OneOf(&["text"]))),
    ("text", Use(Text)),
    ("image_url", Only(&[], ONLY_TEXT)),
    ("input_audio", Only(&[], ONLY_TEXT)),
    ("file", Only(&[], ONLY_TEXT)),
    ("refusal", Only(&[], ONLY_TEXT)),
    ("prompt_cache_breakpoint", Ignored),
    ("cache_control", Ignored),
];

const FUNCTION: &[&str] = &["function"];

/// Fields of a tool call in a message.
const CALL: Table = &[
    ("id", Use(Text)),
    ("type", Use(OneOf(FUNCTION))),
    ("function", Use(Checked("a function with its name and arguments", check_called))),
    ("index", Use(Integer(0, MOST_TOOLS as u64))),
    ("cache_control", Ignored),
];

const CALLED: Table = &[
    ("name", Use(Text)),
    ("arguments", Use(Such("an object, or a string that is one as JSON", are_arguments))),
    ("parsed_arguments", Ignored),
];

const TOOL: Table = &[
    ("type", Use(OneOf(FUNCTION))),
    ("function", Use(Checked("a function with its name and parameters", check_function))),
    ("cache_control", Ignored),
];

const DESCRIBED: Table = &[
    ("name", Use(Such("1 to 64 letters, digits, _, - and .", is_name))),
    ("description", Use(Text)),
    ("parameters", Use(Such("an object", Value::is_object))),
    ("strict", Use(Boolean)),
];

const CHOICE: Table =
    &[("type", Use(OneOf(FUNCTION))), ("function", Use(Checked("a function with its name", check_chosen)))];

const CHOSEN: Table = &[("name", Use(Such("1 to 64 letters, digits, _, - and .", is_name)))];

/// Checks an object with required fields.
fn check_with(name: &str, value: &Value, (table, required): (Table, &[&str]), notes: &Notes) -> Result<(), Refusal> {
    let fields = check(name, value, &[table], notes)?;
    match required.iter().find(|key| fields.get(**key).is_none_or(Value::is_null)) {
        Some(key) => Err(refused(&format!("{name}.{key}"), "given", &Value::Null)),
        None => Ok(()),
    }
}

fn is_role(value: &Value) -> bool {
    value.as_str().is_some_and(|role| !role.is_empty())
}

/// Checks the content of a message: a string, or an array of text parts.
fn check_content(name: &str, value: &Value, notes: &Notes) -> Result<(), Refusal> {
    let Value::Array(parts) = value else {
        let expected = "a string, or an array of { type: \"text\", text }";
        return if value.is_string() { Ok(()) } else { Err(refused(name, expected, value)) };
    };
    for (index, part) in parts.iter().enumerate() {
        let path = format!("{name}[{index}]");
        let part = check(&path, part, &[PART], notes)?;
        for key in ["type", "text"] {
            if part.get(key).is_none_or(Value::is_null) {
                return Err(refused(&format!("{path}.{key}"), "a string", &Value::Null));
            }
        }
    }
    Ok(())
}

fn check_calls(name: &str, value: &Value, notes: &Notes) -> Result<(), Refusal> {
    let calls = value.as_array().ok_or_else(|| refused(name, "an array of calls", value))?;
    let check = |(at, call)| check_with(&format!("{name}[{at}]"), call, (CALL, &["function"]), notes);
    calls.iter().enumerate().try_for_each(check)
}

fn check_called(name: &str, value: &Value, notes: &Notes) -> Result<(), Refusal> {
    check_with(name, value, (CALLED, &["name"]), notes)
}

fn are_arguments(value: &Value) -> bool {
    value.is_object() || value.as_str().is_some_and(|text| call_arguments(text).is_some())
}

pub fn check_messages(name: &str, value: &Value, notes: &Notes) -> Result<(), Refusal> {
    let turns = value.as_array().filter(|turns| !turns.is_empty());
    let turns = turns.ok_or_else(|| refused(name, "an array with at least one message", value))?;
    for (index, turn) in turns.iter().enumerate() {
        let path = format!("{name}[{index}]");
        let turn = check(&path, turn, &[MESSAGE], notes)?;
        let has = |field: &str| turn.get(field).is_some_and(|value| !value.is_null() && value != "");
        let Some(role) = turn.get("role").and_then(Value::as_str) else {
            return Err(refused(&format!("{path}.role"), "a string such as user", &Value::Null));
        };
        // Services answer without content when they call tools, and clients send such answers back.
        if turn.get("content").is_none_or(Value::is_null) && role != "assistant" {
            return Err(refused(&format!("{path}.content"), "a string", &Value::Null));
        }
        if role == "tool" && !has("tool_call_id") {
            return Err(refused(&format!("{path}.tool_call_id"), "the id of the call that this answers", &Value::Null));
        }
    }
    Ok(())
}

/// Returns whether a value is a name by the rules of OpenAI's API.
fn is_name(value: &Value) -> bool {
    let is = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    value.as_str().is_some_and(|text| (1..=64).contains(&text.len()) && text.chars().all(is))
}

fn check_function(name: &str, value: &Value, notes: &Notes) -> Result<(), Refusal> {
    check_with(name, value, (DESCRIBED, &["name"]), notes)
}

pub fn check_tools(name: &str, value: &Value, notes: &Notes) -> Result<(), Refusal> {
    let expected = format!("an array of at most {MOST_TOOLS} tools");
    let tools = value.as_array().filter(|tools| tools.len() <= MOST_TOOLS);
    let tools = tools.ok_or_else(|| refused(name, &expected, value))?;
    let check = |(at, tool)| check_with(&format!("{name}[{at}]"), tool, (TOOL, &["type", "function"]), notes);
    tools.iter().enumerate().try_for_each(check)
}

fn check_chosen(name: &str, value: &Value, notes: &Notes) -> Result<(), Refusal> {
    check_with(name, value, (CHOSEN, &["name"]), notes)
}

pub fn check_choice(name: &str, value: &Value, notes: &Notes) -> Result<(), Refusal> {
    match value {
        Value::Object(_) => check_with(name, value, (CHOICE, &["type", "function"]), notes),
        _ => OneOf(&["none", "auto", "required"]).check(name, value, notes),
    }
}

/// Returns whether a value has variables of the template.
pub fn are_variables(value: &Value) -> bool {
    value.as_object().is_some_and(|variables| variables.len() <= MOST_VARIABLES)
}

/// Reads a conversation by itself.
///
/// *Errors*: it is not an array of messages; a field of one is invalid.
pub fn conversation(value: &Value) -> Result<Vec<Message>, Refusal> {
    check_messages("messages", value, &Notes::new(true))?;
    Ok(messages(value))
}

/// Returns the messages of a valid request.
pub fn messages(value: &Value) -> Vec<Message> {
    value.as_array().into_iter().flatten().map(Message::from_openai).collect()
}

/// Returns the path of the first `name` of a speaker in a conversation, if the template ignores such names.
pub fn unread_name(chat: &ChatTemplate, value: &Value) -> Option<String> {
    let is_unread = |role: &str| {
        let (turn, user) = (Message::new(role, "?"), Message::new("user", "?"));
        let said = |turn: Message| chat.render(&[turn, user.clone()], true).ok();
        said(turn.clone()) == said(turn.with("name", "name".into()))
    };
    let has_name = |turn: &Value| turn["role"] != "tool" && turn["name"].as_str().is_some_and(|name| !name.is_empty());
    let (at, turn) = value.as_array()?.iter().enumerate().find(|(_, turn)| has_name(turn))?;
    is_unread(turn["role"].as_str()?).then(|| format!("messages[{at}].name"))
}

/// Reads the tools and template variables of a valid request.
///
/// *Errors*: fields that contradict each other.
pub fn options(request: &Map<String, Value>) -> Result<ChatOptions, Refusal> {
    let get = |name: &str| request.get(name).filter(|value| !value.is_null());
    let mut tools = get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
    // `strict` concerns only the grammar. Without it in the prompt, the model sees the same prompt either way.
    for function in tools.iter_mut().filter_map(|tool| tool["function"].as_object_mut()) {
        function.shift_remove("strict");
    }
    let choice = get("tool_choice").unwrap_or(&Value::Null);
    let tool_choice = match (choice.as_str(), choice["function"]["name"].as_str()) {
        (Some("none"), _) => ToolChoice::None,
        (Some("required"), _) => ToolChoice::Required,
        (_, Some(name)) if tools.iter().all(|tool| tool["function"]["name"] != name) => {
            let message = format!("tool_choice names {name:?}, which is not among the tools");
            return Err(Refusal::new(message).about("tool_choice"));
        }
        (_, Some(name)) => ToolChoice::Named(name.into()),
        _ => ToolChoice::Auto,
    };
    if tools.is_empty() && !matches!(tool_choice, ToolChoice::Auto | ToolChoice::None) {
        return Err(Refusal::new("tool_choice wants a call, but there are no tools to call").about("tool_choice"));
    }
    let given = get("chat_template_kwargs").and_then(Value::as_object);
    let mut variables: BTreeMap<String, Value> = given.cloned().into_iter().flatten().collect();
    variables.extend(get("reasoning_effort").map(|effort| ("reasoning_effort".into(), effort.clone())));
    let one_call = get("parallel_tool_calls").map(|several| several == false);
    Ok(ChatOptions { tools, tool_choice, one_call, variables, held: false })
}
