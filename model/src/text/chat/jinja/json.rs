//! JSON in the format of Python's `json.dumps`, with the options of `transformers`' filter `tojson`.

use super::Fault;
use super::budget::{Budget, CELL};
use super::compare::{self, SortKey};
use super::machine::Given;
use super::strings;
use super::text::{Text, float};
use super::value::{Map, Value};

/// Format of JSON.
pub(super) struct Style {
    /// Whether characters beyond ASCII are escaped.
    ascii: bool,
    /// Indentation of a level; without one, all is on a single line.
    indent: Option<String>,
    /// Separator between elements.
    item: String,
    /// Separator after a key.
    key: String,
    /// Whether maps are sorted by their keys.
    sorted: bool,
}

impl Style {
    /// Reads the arguments of the filter, in its order.
    pub fn of(given: &Given, budget: &mut Budget) -> Result<Style, Fault> {
        let indent = match given.get(1, "indent") {
            None | Some(Value::None) => None,
            width => Some(strings::prefix(width, budget)?),
        };
        let (item, key) = match given.get(2, "separators") {
            None | Some(Value::None) => (if indent.is_some() { "," } else { ", " }.into(), ": ".into()),
            Some(pair) => match pair {
                Value::List(list) if list.len() == 2 => {
                    let (item, key) = (list[0].as_str()?, list[1].as_str()?);
                    budget.pay(item.len() + key.len())?;
                    (item.to_string(), key.to_string())
                }
                other => return Err(Fault::new(format!("separators are two strings, not {}", other.kind()))),
            },
        };
        let (ascii, sorted) = (given.flag(0, "ensure_ascii", false), given.flag(3, "sort_keys", false));
        Ok(Style { ascii, indent, item, key, sorted })
    }
}

/// Serialises a value.
pub(super) fn written(value: &Value, style: &Style, budget: &mut Budget) -> Result<String, Fault> {
    let mut writer = Writer { text: Text::new(budget), style };
    writer.value(value, 1)?;
    Ok(writer.text.out)
}

struct Writer<'a> {
    text: Text<'a>,
    style: &'a Style,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, level: usize) -> Result<(), Fault> {
        match value {
            Value::None => self.text.push("null"),
            Value::Bool(value) => self.text.push(if *value { "true" } else { "false" }),
            Value::Int(value) => self.text.push(&value.to_string()),
            Value::Float(value) if value.is_nan() => self.text.push("NaN"),
            Value::Float(value) if value.is_infinite() => {
                self.text.push(if *value > 0.0 { "Infinity" } else { "-Infinity" })
            }
            Value::Float(value) => self.text.push(&float(*value)),
            Value::Str(text) => self.string(text),
            Value::List(list) if list.is_empty() => self.text.push("[]"),
            Value::Map(map) if map.len() == 0 => self.text.push("{}"),
            Value::List(list) => {
                self.text.push("[")?;
                for (i, item) in list.iter().enumerate() {
                    self.before(i, level)?;
                    self.value(item, level + 1)?;
                }
                self.line(level - 1)?;
                self.text.push("]")
            }
            Value::Map(map) => self.map(map, level),
            other => Err(Fault::new(format!("{} cannot be written as JSON", other.kind()))),
        }
    }

    fn map(&mut self, map: &Map, level: usize) -> Result<(), Fault> {
        self.text.push("{")?;
        for (i, (key, item)) in self.ordered(map)?.into_iter().enumerate() {
            self.before(i, level)?;
            match key {
                Value::Str(text) => self.string(text)?,
                // All keys are strings in JSON.
                other => {
                    self.text.push("\"")?;
                    self.value(other, level)?;
                    self.text.push("\"")?;
                }
            }
            self.text.push(&self.style.key)?;
            self.value(item, level + 1)?;
        }
        self.line(level - 1)?;
        self.text.push("}")
    }

    /// Returns the pairs of a map in the order in which they are written.
    fn ordered<'m>(&mut self, map: &'m Map) -> Result<Vec<(&'m Value, &'m Value)>, Fault> {
        let budget = &mut *self.text.budget;
        budget.pay_each(map.len(), CELL)?;
        let pairs = map.pairs().iter().map(|(key, item)| (key, item));
        if !self.style.sorted {
            return Ok(pairs.collect());
        }
        let mut keyed = Vec::with_capacity(map.len());
        for pair in pairs {
            keyed.push((SortKey::new(pair.0, true, budget)?, pair));
        }
        compare::sort(&mut keyed, false, budget)?;
        Ok(keyed.into_iter().map(|(_, pair)| pair).collect())
    }

    /// Writes the text before the element at an index.
    fn before(&mut self, at: usize, level: usize) -> Result<(), Fault> {
        self.text.push(if at > 0 { &self.style.item } else { "" })?;
        self.line(level)
    }

    /// Begins a new line, if there is an indentation.
    fn line(&mut self, level: usize) -> Result<(), Fault> {
        let Some(indent) = &self.style.indent else { return Ok(()) };
        self.text.push("\n")?;
        (0..level).try_for_each(|_| self.text.push(indent))
    }

    fn string(&mut self, text: &str) -> Result<(), Fault> {
        // An escaped control character takes six bytes, as does each escaped character of two or more bytes.
        self.text.budget.pay(text.len().saturating_mul(6))?;
        let out = &mut self.text.out;
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if c < ' ' || (self.style.ascii && c > '~') => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
        Ok(())
    }
}
