//! Adaptation of conversations to a template. Its capabilities are detected by rendering probes, once for each
//! template, since templates do not declare them. What a template refuses is changed as little as it takes.

use std::borrow::Cow;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::jinja::WORK_OF_PROBE;
use super::{ChatError, ChatTemplate, Message, jinja, one_line};

/// Text of the probes. Templates do not contain it themselves, and they do not change it.
const NEEDLE: &str = "Zq7 pv";
/// A role that no template knows.
const NOBODY: &str = "xwkqj";
/// Roles of OpenAI's API.
const USUAL: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

/// Changes for templates that refuse a conversation, in the order in which they are tried, each on top of those before it. None
/// drops a word.
const CONCESSIONS: [fn(&mut Vec<Message>); 3] = [arguments_as_text, one_place_for_thoughts, neighbours_together];

/// Capabilities of a template, as far as they were needed.
#[derive(Debug, Default)]
pub(super) struct Takes {
    only_parts: OnceLock<bool>,
    system: OnceLock<bool>,
    developer: OnceLock<bool>,
}

impl ChatTemplate {
    /// Adapts a conversation so that the template drops nothing of it. An unknown `developer` role becomes `system`, an
    /// unsupported system message is prepended to the next message of the user, and texts become typed parts if the
    /// template reads nothing else.
    ///
    /// *Errors*: a role that the template does not know.
    pub(super) fn suited<'m>(&self, messages: &'m [Message]) -> Result<Cow<'m, [Message]>, ChatError> {
        let mut unusual = messages.iter().map(|message| &*message.role).filter(|role| !USUAL.contains(role));
        if let Some(role) = unusual.find(|role| !self.knows(role)) {
            return Err(ChatError::Role(one_line(role)));
        }
        let mut suited = Cow::Borrowed(messages);
        if has(&suited, "developer") && !*self.takes.developer.get_or_init(|| self.knows("developer")) {
            suited = developers_as_system(&suited).into();
        }
        if has(&suited, "system") && !*self.takes.system.get_or_init(|| self.takes_system()) {
            suited = system_within_user(&suited).into();
        }
        if *self.takes.only_parts.get_or_init(|| self.takes_only_parts()) {
            suited = suited.iter().map(in_parts).collect();
        }
        Ok(suited)
    }

    /// Renders a conversation that was adapted before. If the template refuses it, it is changed until it does not.
    ///
    /// *Errors*: that of the conversation as it was given.
    pub(super) fn conceded(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String, ChatError> {
        let rendered = |messages: &[Message]| self.rendered(messages, add_generation_prompt, jinja::WORK);
        let first = rendered(messages);
        if first.is_ok() {
            return first;
        }
        let mut changed = messages.to_vec();
        let mut texts = CONCESSIONS.iter().filter_map(|change| {
            let before = changed.clone();
            change(&mut changed);
            if changed == before { None } else { rendered(&changed).ok() }
        });
        texts.next().map_or(first, Ok)
    }

    /// Returns whether a rendering of the conversation contains [`NEEDLE`].
    fn shows(&self, messages: &[Message]) -> bool {
        self.rendered(messages, true, WORK_OF_PROBE).is_ok_and(|text| text.contains(NEEDLE))
    }

    /// Returns whether the template drops text that is not in typed parts.
    fn takes_only_parts(&self) -> bool {
        let probe = [Message::new("user", NEEDLE)];
        !self.shows(&probe) && self.shows(&probe.map(|message| in_parts(&message)))
    }

    /// Returns whether system messages are shown. Also true for a template that shows no conversation at all.
    fn takes_system(&self) -> bool {
        let shows = |messages: &[Message]| {
            let in_parts: Vec<Message> = messages.iter().map(in_parts).collect();
            self.shows(messages) || self.shows(&in_parts)
        };
        shows(&[Message::new("system", NEEDLE), Message::new("user", "?")]) || !shows(&[Message::new("user", NEEDLE)])
    }

    /// Returns whether the template treats messages of a role differently from those of an unknown role.
    fn knows(&self, role: &str) -> bool {
        let differs = |at_start: bool, in_parts: bool| {
            let text = |role: &str| {
                let mut probe = vec![Message::new("user", "?"), Message::new(role, NEEDLE)];
                if at_start {
                    probe.reverse();
                }
                if in_parts {
                    probe = probe.iter().map(self::in_parts).collect();
                }
                self.rendered(&probe, true, WORK_OF_PROBE)
            };
            let Ok(text_of_role) = text(role) else { return false };
            // Some templates write roles in capitals.
            let as_nobody = |text: String| text.to_lowercase().replace(NOBODY, &role.to_lowercase());
            text_of_role.contains(NEEDLE)
                && text(NOBODY).map_or(true, |text| as_nobody(text) != text_of_role.to_lowercase())
        };
        [(true, false), (false, false), (true, true), (false, true)].into_iter().any(|(at, parts)| differs(at, parts))
    }
}

/// Writes the arguments of calls as JSON texts, which some templates concatenate with others.
fn arguments_as_text(messages: &mut Vec<Message>) {
    for message in messages {
        let Some(Value::Array(calls)) = message.fields.get_mut("tool_calls") else { continue };
        for arguments in calls.iter_mut().filter_map(|call| call.pointer_mut("/function/arguments")) {
            if !arguments.is_string() {
                *arguments = Value::String(arguments.to_string());
            }
        }
    }
}

/// Moves what was said beside a call to the thoughts, if there are some: gpt-oss takes only one of them before a call.
fn one_place_for_thoughts(messages: &mut Vec<Message>) {
    for message in messages {
        if !message.fields.contains_key("tool_calls") || message.content.is_empty() {
            continue;
        }
        if let Some(Value::String(thoughts)) = message.fields.get_mut("thinking") {
            *thoughts = format!("{thoughts}\n\n{}", std::mem::take(&mut message.content));
        }
    }
}

/// Joins messages of the user, or of the assistant, that follow each other, where roles must alternate.
fn neighbours_together(messages: &mut Vec<Message>) {
    let joinable = |message: &Message| {
        ["user", "assistant"].contains(&&*message.role) && message.fields.keys().all(|name| name == "content")
    };
    let mut out: Vec<Message> = Vec::new();
    for message in messages.drain(..) {
        match out.last_mut() {
            Some(last) if last.role == message.role && joinable(last) && joinable(&message) => {
                *last = joined(last, &message);
            }
            _ => out.push(message),
        }
    }
    *messages = out;
}

fn has(messages: &[Message], role: &str) -> bool {
    messages.iter().any(|message| message.role == role)
}

/// Converts the text of a message to a typed part, which is the only content that some templates read.
fn in_parts(message: &Message) -> Message {
    if message.fields.contains_key("content") {
        return message.clone();
    }
    message.clone().with("content", json!([{ "type": "text", "text": message.content }]))
}

/// Converts developer messages to system messages. One that follows a system message is joined with it, since many
/// templates support only one.
fn developers_as_system(messages: &[Message]) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::new();
    for message in messages {
        let follows = out.last_mut().filter(|last| last.role == "system" && message.role == "developer");
        match follows {
            Some(before) => *before = joined(before, message),
            None if message.role == "developer" => out.push(Message { role: "system".into(), ..message.clone() }),
            None => out.push(message.clone()),
        }
    }
    out
}

/// Moves system messages into the next message of the user. Those at the end become a message of the user.
fn system_within_user(messages: &[Message]) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::new();
    let mut waiting: Option<Message> = None;
    for message in messages {
        match (&*message.role, waiting.take()) {
            ("system", Some(before)) => waiting = Some(joined(&before, message)),
            ("system", None) => waiting = Some(Message { role: "user".into(), ..message.clone() }),
            ("user", Some(system)) => out.push(joined(&system, message)),
            (_, system) => {
                waiting = system;
                out.push(message.clone());
            }
        }
    }
    out.extend(waiting.filter(|system| !system.content.is_empty() || system.fields.contains_key("content")));
    out
}

/// Joins two messages; the result has the role of the first.
pub(super) fn joined(first: &Message, second: &Message) -> Message {
    let parts = |message: &Message| message.fields.get("content").and_then(|content| content.as_array()).cloned();
    let mut both = Message { role: first.role.clone(), ..second.clone() };
    if let (None, None) = (parts(first), parts(second)) {
        let texts = [&*first.content, &*second.content];
        both.content = texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        return both;
    }
    let as_parts = |message: &Message| parts(&in_parts(message)).unwrap_or_default();
    let between = [json!({ "type": "text", "text": "\n\n" })];
    let all = as_parts(first).into_iter().chain(between).chain(as_parts(second)).collect();
    both.fields.insert("content".into(), Value::Array(all));
    both
}
