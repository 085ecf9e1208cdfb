//! Requests that require function calls, and a checker of their answers.

use model::{CallForm, ChatOptions, ChatTemplate, Message, Metadata, Part, ToolChoice, gguf};
use serde_json::{Value, json};

use super::common::{Random, fault, schema};

/// Templates of families that write calls in different ways: Hermes, Granite 3 and Phi-4, Mistral (twice), Llama.
pub const TEMPLATES: [&str; 5] = [
    "{{ tools | tojson }}<tool_call></tool_call><think></think>",
    "{{ tools | tojson }}<|tool_call|>",
    "{{ tools | tojson }}[TOOL_CALLS]",
    "{{ tools | tojson }}[TOOL_CALLS][ARGS][THINK][/THINK]",
    "{{ tools | tojson }}<|start_header_id|>{\"name\": NAME, \"parameters\": OBJECT}",
];

/// A conversation that requires calls.
pub struct Demand {
    chat: ChatTemplate,
    options: ChatOptions,
}

impl Demand {
    /// Creates a conversation with two functions, whose arguments have random schemas. It requires the second one by
    /// name, or any of them.
    pub fn new(template: &str, random: &mut Random) -> Demand {
        let mut metadata = Metadata::default();
        metadata.insert("tokenizer.chat_template", gguf::Value::String(template.into()));
        let tool = |name| json!({ "type": "function", "function": { "name": name, "parameters": schema(random) } });
        let tools: Vec<Value> = ["weather", "time"].map(tool).to_vec();
        let tool_choice = if random.below(2) == 0 { ToolChoice::Named("time".into()) } else { ToolChoice::Required };
        let options = ChatOptions { tools, tool_choice, one_call: Some(false), ..ChatOptions::default() };
        Demand { chat: ChatTemplate::from_metadata(&metadata).unwrap(), options }
    }

    pub fn form(&self) -> CallForm {
        self.chat.call_form(&[Message::new("user", "?")], &self.options).unwrap().unwrap()
    }

    /// Returns the error in an answer, if there is one, and its reasoning.
    pub fn read(&self, text: &str) -> (Option<String>, String) {
        let mut parts = self.chat.with(&self.options).unwrap().parts("");
        let (mut thoughts, mut calls, mut wrong) = (String::new(), Vec::new(), None);
        for part in parts.push(text).into_iter().chain(parts.finish()) {
            match part {
                Part::Thought(text) => thoughts += &text,
                Part::Said(text) => wrong = Some(format!("says {text}")),
                Part::Call(call) => calls.push(call),
                Part::Arguments(more) => calls.last_mut().unwrap().arguments += &more,
            }
        }
        let count = calls.len();
        for call in calls {
            let tool = self.options.tools.iter().find(|tool| tool["function"]["name"] == *call.name).unwrap();
            let schema = &tool["function"]["parameters"];
            let value = serde_json::from_str(&call.arguments).unwrap();
            wrong = fault(schema, schema, &value).or(wrong);
            if matches!(&self.options.tool_choice, ToolChoice::Named(name) if *name != call.name) {
                wrong = Some(format!("calls {}", call.name));
            }
        }
        let named = matches!(self.options.tool_choice, ToolChoice::Named(_));
        if count == 0 || named && count > 1 {
            wrong = Some(format!("has {count} calls"));
        }
        (wrong, thoughts)
    }
}
