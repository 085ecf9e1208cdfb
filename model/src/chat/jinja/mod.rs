//! Jinja2 as chat templates use it, for templates that are not trusted.
//!
//! A template comes with a model file, so it may be made to do harm. Every length that it can choose is bounded: names,
//! nesting of blocks and of values, how deep evaluation goes (which is what bounds the stack), and the work of a
//! rendering ([`budget`]), which every operation pays for before it is done. Values cannot be changed and namespaces
//! are numbered, so nothing can hold itself.
//!
//! The language is Jinja2's with the settings of `transformers`. What belongs to web pages or to several files
//! (inheritance, imports, escaping, `call` blocks, recursive loops) is refused by name.
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

/// Work that a rendering may do whatever the conversation is: two million steps, or 64 MiB of text and values.
pub(super) const WORK: usize = 64 << 20;
/// Work of a rendering that only finds out what a template takes. There are several of them, and real templates need far less.
pub(super) const WORK_OF_PROBE: usize = WORK / 32;
/// What it may do besides for each byte of the conversation.
const WORK_PER_BYTE: usize = 64;

/// What is wrong with a template, without its place.
#[derive(Debug, Clone, PartialEq)]
struct Fault(Cow<'static, str>);

impl Fault {
    fn new(what: impl Into<Cow<'static, str>>) -> Fault {
        Fault(what.into())
    }
}

/// What is wrong with a template, and where.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("line {line}: {what}")]
pub(super) struct TemplateError {
    line: u32,
    what: Cow<'static, str>,
}

/// A template, parsed.
#[derive(Debug)]
pub(super) struct Template {
    block: ast::Block,
    macros: Vec<ast::Macro>,
    /// All names that stand in tags: of variables, fields, filters and words of the language.
    names: BTreeSet<Arc<str>>,
}

/// What a rendering begins with.
#[derive(Debug)]
pub(super) struct Input<'i> {
    /// Work that it may do whatever the conversation is, in the units of its budget.
    pub work: usize,
    pub messages: &'i [Message],
    pub add_generation_prompt: bool,
    pub bos: &'i str,
    pub eos: &'i str,
    pub variables: &'i BTreeMap<String, serde_json::Value>,
    /// Seconds since 1970, if templates may ask for the date.
    pub now: Option<i64>,
}

impl Template {
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

    /// Whether it may read a variable: one that it does not name makes no difference.
    pub fn names(&self, variable: &str) -> bool {
        self.names.contains(variable)
    }

    /// *Errors*: the template raises one, does what its language does not allow, or takes too much.
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

/// The variables that every template has.
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
    // As `transformers` has them where a caller gives none.
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
