//! What chat templates are given.

use clap::Args;
use serde_json::Value;
use std::collections::BTreeMap;

/// What the chat template is given besides messages.
#[derive(Debug, Clone, Default, Args)]
pub struct TemplateArgs {
    /// Give the chat template a variable, such as enable_thinking=false; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, help_heading = "Text")]
    pub template_arg: Vec<(String, Value)>,
}

impl TemplateArgs {
    /// The variables; of one that is given twice, the last.
    pub fn variables(&self) -> BTreeMap<String, Value> {
        self.template_arg.iter().cloned().collect()
    }
}

/// A name, and a value as JSON; what is no JSON is a text.
fn variable(text: &str) -> Result<(String, Value), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
    let (name, value) = pair.ok_or_else(|| format!("{text:?} is not NAME=VALUE, such as enable_thinking=false"))?;
    Ok((name.trim().into(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

#[cfg(test)]
mod tests {
    use super::variable;
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
}
