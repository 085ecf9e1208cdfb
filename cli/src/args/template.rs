//! The inputs of chat templates besides messages.

use crate::text;
use anygpu::ToolChoice;
use clap::Args;
use serde_json::Value;
use std::collections::BTreeMap;

/// The variables of the chat template.
#[derive(Debug, Clone, Default, Args)]
pub struct TemplateArgs {
    /// Set a variable of the chat template, such as enable_thinking=false; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, help_heading = "Text")]
    pub template_arg: Vec<(String, Value)>,
}

impl TemplateArgs {
    /// Returns the variables. If one is given twice, the last value counts.
    pub fn variables(&self) -> BTreeMap<String, Value> {
        self.template_arg.iter().cloned().collect()
    }
}

/// Parses functions from JSON or from a file that has it.
pub fn tools(text: &str) -> Result<Tools, String> {
    let read =
        if text.trim_start().starts_with('[') { Ok(text.into()) } else { text::given(None, Some(text.as_ref())) };
    let json = read.map_err(|error| format!("{error:#}; give a file, or an array as JSON"))?;
    let tools: Vec<Value> =
        serde_json::from_str(&json).map_err(|error| format!("this is not a JSON array: {error}"))?;
    match tools.iter().position(|tool| !tool["function"]["name"].is_string()) {
        Some(at) => Err(format!("tool {at} is not {{\"type\": \"function\", \"function\": {{\"name\": ..., ...}}}}")),
        None => Ok(Tools(tools)),
    }
}

/// Parses whether a model calls functions.
pub fn choice(text: &str) -> Result<ToolChoice, String> {
    Ok(match text {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "required" => ToolChoice::Required,
        name => ToolChoice::Named(name.into()),
    })
}

/// Functions that a model may call.
#[derive(Debug, Clone)]
pub struct Tools(pub Vec<Value>);

/// Parses a name and a value. The value is JSON, or else a string.
fn variable(text: &str) -> Result<(String, Value), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
    let (name, value) = pair.ok_or_else(|| format!("{text:?} is not NAME=VALUE, such as enable_thinking=false"))?;
    Ok((name.trim().into(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

#[cfg(test)]
mod tests {
    use super::{tools, variable};
    use serde_json::json;

    #[test]
    fn a_variable_is_a_name_and_a_value() {
        let read = |text: &str| variable(text).unwrap().1;
        assert_eq!(
            [read("a=false"), read("a=3"), read("a=\"3\""), read("a=high"), read("a=b=c"), read("a=")],
            [json!(false), json!(3), json!("3"), json!("high"), json!("b=c"), json!("")]
        );
        for wrong in ["a", "=1", ""] {
            assert!(variable(wrong).unwrap_err().contains("enable_thinking=false"), "{wrong}");
        }
    }

    #[test]
    fn tools_are_an_array_of_functions() {
        let read = tools(r#" [{"type": "function", "function": {"name": "f"}}]"#).unwrap();
        assert_eq!(read.0[0]["function"]["name"], "f");
        for (wrong, why) in [("[{}]", "tool 0"), ("[", "not a JSON array"), ("/no/such", "cannot open")] {
            assert!(tools(wrong).unwrap_err().contains(why), "{wrong}");
        }
    }
}
