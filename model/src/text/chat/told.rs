//! Tools for templates that have no place for them, or whose calls are written in a way that is not known here: the model is
//! told of the tools in the system message, and of calls and their results in the text of messages. It was not trained
//! for that, but many models follow it.
//!
//! *Source*: Nous Research, "Hermes Function Calling", 2024, whose marks these are.

use serde_json::{Value, json};

use super::Message;
use super::takes::joined;

/// Returns the instructions for a list of tools.
fn instructions(tools: &[Value]) -> String {
    let tools: Vec<String> = tools.iter().map(Value::to_string).collect();
    format!(
        "You can call functions. These are their signatures, one on each line:\n<tools>\n{}\n</tools>\n\nTo call a \
         function, answer with its name and arguments as a JSON object between tags, and with nothing else:\n\
         <tool_call>\n{{\"name\": \"NAME\", \"arguments\": {{\"PARAMETER\": \"VALUE\"}}}}\n</tool_call>\nIts result \
         follows between <tool_response> tags. Answer as usual if no function helps.",
        tools.join("\n")
    )
}

/// Writes tools, calls and results into a conversation: the tools into the first system message.
pub(super) fn told(messages: &[Message], tools: &[Value]) -> Vec<Message> {
    let mut out: Vec<Message> = messages.iter().map(written).collect();
    let told = Message::new("system", instructions(tools));
    match out.first_mut().filter(|first| ["system", "developer"].contains(&&*first.role)) {
        Some(system) => *system = joined(system, &told),
        None => out.insert(0, told),
    }
    out
}

/// Writes the calls of a message, or the result that it is, as text.
fn written(message: &Message) -> Message {
    let mut message = message.clone();
    if message.role == "tool" {
        let text = format!("<tool_response>\n{}\n</tool_response>", message.content);
        return Message::new("user", text);
    }
    let Some(Value::Array(calls)) = message.fields.remove("tool_calls") else { return message };
    for call in &calls {
        let function = call.get("function").unwrap_or(call);
        let call = json!({ "name": function["name"], "arguments": function["arguments"] });
        let text = format!("<tool_call>\n{call}\n</tool_call>");
        message = joined(&message, &Message::new(&*message.role, text));
    }
    message
}
