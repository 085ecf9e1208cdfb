//! An answer as a message of OpenAI's API.

use anygpu::{Part, Parts};
use serde::Serialize;

/// Reasoning, text and tool calls of an answer.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    role: &'static str,
    /// Null if the answer only calls tools.
    content: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Call {
    id: String,
    r#type: &'static str,
    function: Function,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Function {
    name: String,
    arguments: String,
}

impl Answer {
    /// Parses a complete text.
    pub fn of(mut parts: Parts, text: &str) -> Answer {
        let mut answer = Answer { role: "assistant", ..Answer::default() };
        let told = [parts.push(text), parts.finish()].concat();
        for part in told {
            match part {
                Part::Said(text) => *answer.content.get_or_insert_default() += &text,
                Part::Thought(text) => answer.reasoning_content += &text,
                Part::Call(call) => {
                    let function = Function { name: call.name, arguments: call.arguments };
                    // Ids have nine letters and digits, because Mistral's templates require that.
                    let id = format!("call{:05}", answer.tool_calls.len());
                    answer.tool_calls.push(Call { id, r#type: "function", function });
                }
                Part::Arguments(more) => {
                    if let Some(call) = answer.tool_calls.last_mut() {
                        call.function.arguments += &more;
                    }
                }
            }
        }
        if answer.tool_calls.is_empty() {
            answer.content.get_or_insert_default();
        }
        answer
    }
}
