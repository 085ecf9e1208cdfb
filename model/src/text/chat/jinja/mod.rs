//! Jinja2 for chat templates, which are not trusted.
//!
//! A template comes with a model file, so it may be malicious. All lengths that it can choose are bounded: names, the
//! nesting of blocks and values, the depth of evaluation (which bounds the stack), and the work of a rendering
//! ([`budget`]), which each operation pays for in advance. Values are immutable and namespaces are referred to by
//! index, so there are no reference cycles.
//!
//! The language is Jinja2's, with the settings of `transformers`. Features for web pages or several files (inheritance,
//! imports, escaping, `call` blocks, recursive loops) are rejected with an error that names them.
//!
//! *Source*: <https://jinja.palletsprojects.com/en/stable/templates/>.

mod ast;
mod budget;
mod checks;
mod compare;
mod expr;
mod filters;
mod format;
mod functions;
mod json;
mod lexer;
mod lists;
mod machine;
mod methods;
mod numbers;
mod parser;
mod statements;
mod strings;
mod subscript;
mod text;
mod value;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Message;
use lexer::Token;
use machine::Machine;
use parser::Parser;
use value::{MAX_NESTING, Map, Value};

/// Work of a rendering, apart from that for the conversation: two million steps, or 64 MiB of text and values.
pub(super) const WORK: usize = 64 << 20;
/// Work of a probe, which only detects what a template supports. There are several probes, and real templates need far
/// less.
pub(super) const WORK_OF_PROBE: usize = WORK / 32;
/// Additional work for each byte of the conversation.
const WORK_PER_BYTE: usize = 64;

/// Error in a template, without its line.
#[derive(Debug, Clone, PartialEq)]
struct Fault(Cow<'static, str>);

impl Fault {
    fn new(what: impl Into<Cow<'static, str>>) -> Fault {
        Fault(what.into())
    }
}

/// Error in a template, with its line.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("line {line}: {what}")]
pub(super) struct TemplateError {
    line: u32,
    what: Cow<'static, str>,
}

/// A parsed template.
#[derive(Debug)]
pub(super) struct Template {
    block: ast::Block,
    macros: Vec<ast::Macro>,
    /// All names in tags: of variables, fields, filters and keywords.
    names: BTreeSet<Arc<str>>,
}

/// Input of a rendering.
#[derive(Debug)]
pub(super) struct Input<'i> {
    /// Work that does not depend on the conversation, in the units of [`budget`].
    pub work: usize,
    pub messages: &'i [Message],
    pub add_generation_prompt: bool,
    pub bos: &'i str,
    pub eos: &'i str,
    pub variables: &'i BTreeMap<String, serde_json::Value>,
    /// Current time in seconds since 1970, if templates may read the date.
    pub now: Option<i64>,
}

impl Template {
    /// Parses a template.
    ///
    /// *Errors*: it is malformed, nests too deeply, or uses blocks that are not supported.
    pub fn parse(source: &str) -> Result<Template, TemplateError> {
        let at = |(Fault(what), line)| TemplateError { line, what };
        let tokens = lexer::tokens(source).map_err(at)?;
        let named = tokens.iter().filter_map(|(token, _)| match token {
            Token::Name(name) => Some(name.clone()),
            _ => None,
        });
        let names = named.collect();
        let mut parser = Parser::new(tokens);
        match parser.template() {
            Ok(block) => Ok(Template { block, macros: parser.macros, names }),
            Err(fault) => Err(at((fault, parser.line()))),
        }
    }

    /// Returns whether it may read a variable: whether its name occurs in a tag.
    pub fn names(&self, variable: &str) -> bool {
        self.names.contains(variable)
    }

    /// Renders a conversation.
    ///
    /// *Errors*: the template raises one, fails, or does too much work.
    pub fn render(&self, input: &Input<'_>) -> Result<String, TemplateError> {
        let size = |values: &BTreeMap<String, serde_json::Value>| -> usize {
            values.values().map(|value| value.to_string().len()).sum()
        };
        let said: usize = input.messages.iter().map(|m| m.role.len() + m.content.len() + size(&m.fields)).sum();
        let bytes = said + size(input.variables);
        let budget = budget::Budget::new(input.work.saturating_add(bytes.saturating_mul(WORK_PER_BYTE)));
        let mut machine = Machine::new(self, budget, input.now);
        let result = globals(input, &mut machine).and_then(|()| machine.run());
        result.map_err(|Fault(what)| TemplateError { line: machine.line, what })
    }
}

/// Defines the variables that every template has.
fn globals(input: &Input<'_>, machine: &mut Machine<'_>) -> Result<(), Fault> {
    let mut messages = Vec::with_capacity(input.messages.len());
    for message in input.messages {
        let mut map = Map::default();
        map.set(Value::str("role"), Value::str(&message.role), &mut machine.budget)?;
        map.set(Value::str("content"), Value::str(&message.content), &mut machine.budget)?;
        for (name, value) in &message.fields {
            let value = from_json(value, 0, machine)?;
            map.set(Value::str(name), value, &mut machine.budget)?;
        }
        messages.push(Value::map(map));
    }
    // These are the defaults of `transformers`.
    machine.define("tools", Value::None);
    machine.define("documents", Value::None);
    for (name, value) in input.variables {
        let value = from_json(value, 0, machine)?;
        machine.define(name, value);
    }
    machine.define("messages", Value::list(messages)?);
    machine.define("bos_token", Value::str(input.bos));
    machine.define("eos_token", Value::str(input.eos));
    machine.define("add_generation_prompt", Value::Bool(input.add_generation_prompt));
    Ok(())
}

fn from_json(value: &serde_json::Value, nesting: usize, machine: &mut Machine<'_>) -> Result<Value, Fault> {
    if nesting > MAX_NESTING {
        return Err(Fault::new(format!("a variable of the caller is nested more than {MAX_NESTING} deep")));
    }
    Ok(match value {
        serde_json::Value::Null => Value::None,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(value) => Value::Int(value),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::str(text),
        serde_json::Value::Array(items) => {
            let items: Result<Vec<Value>, Fault> =
                items.iter().map(|item| from_json(item, nesting + 1, machine)).collect();
            Value::list(items?)?
        }
        serde_json::Value::Object(pairs) => {
            let mut map = Map::default();
            for (key, item) in pairs {
                let item = from_json(item, nesting + 1, machine)?;
                map.set(Value::str(key), item, &mut machine.budget)?;
            }
            Value::map(map)
        }
    })
}
