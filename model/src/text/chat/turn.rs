//! Messages in the format of OpenAI's API.

use serde_json::{Map, Value};

use super::Message;

/// Parses the arguments of a call, which are a string with a JSON object. An empty string, which some services send,
/// counts as `{}`.
pub fn arguments(text: &str) -> Option<Value> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    serde_json::from_str::<Map<String, Value>>(text).ok().map(Value::Object)
}

impl Message {
    /// Converts a message from OpenAI's format: `role`, `content` as a string or as text parts, and optionally
    /// `reasoning_content`, `name`, `tool_call_id` and `tool_calls`. Malformed fields are ignored.
    pub fn from_openai(turn: &Value) -> Message {
        let content = match &turn["content"] {
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            text => text.as_str().unwrap_or_default().to_owned(),
        };
        let mut message = Message::new(turn["role"].as_str().unwrap_or_default(), content);
        for field in ["reasoning_content", "name", "tool_call_id"] {
            if let Some(text) = turn[field].as_str().filter(|text| !text.is_empty()) {
                message = message.with(field, text.into());
            }
        }
        // Templates of LFM2.5 and gpt-oss call it `thinking`.
        if let Some(thought) = message.fields.get("reasoning_content").cloned() {
            message = message.with("thinking", thought);
        }
        match turn["tool_calls"].as_array() {
            Some(calls) if !calls.is_empty() => {
                let calls = calls.iter().map(|call| {
                    // Templates serialise the arguments themselves, so they get an object. Some clients send one.
                    let given = &call["function"]["arguments"];
                    let mut call = call.clone();
                    if !given.is_object() {
                        call["function"]["arguments"] =
                            arguments(given.as_str().unwrap_or_default()).unwrap_or_default();
                    }
                    call
                });
                message.with("tool_calls", calls.collect())
            }
            _ => message,
        }
    }
}
