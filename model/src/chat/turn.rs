//! Turns of conversations as OpenAI's API has them.

use serde_json::{Map, Value};

use super::Message;

/// The arguments of a call, which are a text that is an object as JSON; some services leave it empty where there are none.
pub fn arguments(text: &str) -> Option<Value> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    serde_json::from_str::<Map<String, Value>>(text).ok().map(Value::Object)
}

impl Message {
    /// A turn in the shape of OpenAI's API: `role`, `content` as a text or as parts of one, and what else there is of
    /// `reasoning_content`, `name`, `tool_call_id` and `tool_calls`. Whatever is not as it should be counts as left out.
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
        // LFM2.5 and gpt-oss have another name for it.
        if let Some(thought) = message.fields.get("reasoning_content").cloned() {
            message = message.with("thinking", thought);
        }
        match turn["tool_calls"].as_array() {
            Some(calls) if !calls.is_empty() => {
                let calls = calls.iter().map(|call| {
                    // Templates write the arguments as JSON themselves.
                    let given = call["function"]["arguments"].as_str().unwrap_or_default();
                    let mut call = call.clone();
                    call["function"]["arguments"] = arguments(given).unwrap_or_default();
                    call
                });
                message.with("tool_calls", calls.collect())
            }
            _ => message,
        }
    }
}
