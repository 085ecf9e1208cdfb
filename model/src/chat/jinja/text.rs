//! Values as text: what `{{ }}` shows, and JSON.

use super::Fault;
use super::budget::Budget;
use super::value::{Map, Value};

/// The widest indentation of JSON that is accepted; more is a mistake or an attack.
const MAX_INDENT: i64 = 16;

/// Text that is paid for as it grows.
pub(super) struct Text<'b> {
    pub out: String,
    pub budget: &'b mut Budget,
}

impl Text<'_> {
    pub fn new(budget: &mut Budget) -> Text<'_> {
        Text { out: String::new(), budget }
    }

    pub fn push(&mut self, text: &str) -> Result<(), Fault> {
        self.budget.pay(text.len() + 1)?;
        self.out.push_str(text);
        Ok(())
    }

    /// As Python's `str`, except that undefined values show nothing.
    pub fn show(&mut self, value: &Value) -> Result<(), Fault> {
        match value {
            Value::Undefined => Ok(()),
            Value::Str(text) => self.push(text),
            other => self.repr(other),
        }
    }

    /// As Python's `repr`.
    fn repr(&mut self, value: &Value) -> Result<(), Fault> {
        match value {
            Value::Undefined => self.push("Undefined"),
            Value::None => self.push("None"),
            Value::Bool(true) => self.push("True"),
            Value::Bool(false) => self.push("False"),
            Value::Int(value) => self.push(&value.to_string()),
            Value::Float(value) => self.push(&float(*value)),
            Value::Str(text) => self.quoted(text),
            Value::List(list) => {
                self.push("[")?;
                for (i, item) in list.iter().enumerate() {
                    self.push(if i > 0 { ", " } else { "" })?;
                    self.repr(item)?;
                }
                self.push("]")
            }
            Value::Map(map) => {
                self.push("{")?;
                for (i, (key, item)) in map.pairs().iter().enumerate() {
                    self.push(if i > 0 { ", " } else { "" })?;
                    self.repr(key)?;
                    self.push(": ")?;
                    self.repr(item)?;
                }
                self.push("}")
            }
            Value::Namespace(_) => self.push("<namespace>"),
            Value::Loop(_) => self.push("<loop>"),
            Value::Function(_) => self.push("<function>"),
        }
    }

    fn quoted(&mut self, text: &str) -> Result<(), Fault> {
        let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
        // A control character takes four.
        self.budget.pay(text.len().saturating_mul(4))?;
        self.out.push(quote);
        for c in text.chars() {
            match c {
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\\' => self.out.push_str("\\\\"),
                c if c == quote => self.out.extend(['\\', c]),
                c if c.is_ascii_control() => self.out.push_str(&format!("\\x{:02x}", c as u32)),
                c => self.out.push(c),
            }
        }
        self.out.push(quote);
        Ok(())
    }

    /// JSON as Python's `json.dumps` writes it, with characters beyond ASCII as they are. With a width, one element a
    /// line.
    pub fn json(&mut self, value: &Value, indent: Option<i64>) -> Result<(), Fault> {
        let indent = indent.map(|width| width.clamp(0, MAX_INDENT) as usize);
        self.json_at(value, indent, 1)
    }

    fn json_at(&mut self, value: &Value, indent: Option<usize>, level: usize) -> Result<(), Fault> {
        match value {
            Value::None => self.push("null"),
            Value::Bool(value) => self.push(if *value { "true" } else { "false" }),
            Value::Int(value) => self.push(&value.to_string()),
            Value::Float(value) if value.is_nan() => self.push("NaN"),
            Value::Float(value) if value.is_infinite() => {
                self.push(if *value > 0.0 { "Infinity" } else { "-Infinity" })
            }
            Value::Float(value) => self.push(&float(*value)),
            Value::Str(text) => self.json_string(text),
            Value::List(list) if list.is_empty() => self.push("[]"),
            Value::Map(map) if map.len() == 0 => self.push("{}"),
            Value::List(list) => {
                self.push("[")?;
                for (i, item) in list.iter().enumerate() {
                    self.separate(i, indent, level)?;
                    self.json_at(item, indent, level + 1)?;
                }
                self.end(indent, level)?;
                self.push("]")
            }
            Value::Map(map) => self.json_map(map, indent, level),
            other => Err(Fault::new(format!("{} cannot be written as JSON", other.kind()))),
        }
    }

    fn json_map(&mut self, map: &Map, indent: Option<usize>, level: usize) -> Result<(), Fault> {
        self.push("{")?;
        for (i, (key, item)) in map.pairs().iter().enumerate() {
            self.separate(i, indent, level)?;
            match key {
                Value::Str(text) => self.json_string(text)?,
                // Keys are strings in JSON.
                other => {
                    self.push("\"")?;
                    self.json_at(other, None, level)?;
                    self.push("\"")?;
                }
            }
            self.push(": ")?;
            self.json_at(item, indent, level + 1)?;
        }
        self.end(indent, level)?;
        self.push("}")
    }

    fn separate(&mut self, at: usize, indent: Option<usize>, level: usize) -> Result<(), Fault> {
        match indent {
            None => self.push(if at > 0 { ", " } else { "" }),
            Some(_) => {
                self.push(if at > 0 { "," } else { "" })?;
                self.line(indent, level)
            }
        }
    }

    fn end(&mut self, indent: Option<usize>, level: usize) -> Result<(), Fault> {
        self.line(indent, level - 1)
    }

    fn line(&mut self, indent: Option<usize>, level: usize) -> Result<(), Fault> {
        let Some(width) = indent else { return Ok(()) };
        self.budget.pay(width * level + 1)?;
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', width * level));
        Ok(())
    }

    fn json_string(&mut self, text: &str) -> Result<(), Fault> {
        // A control character takes six.
        self.budget.pay(text.len().saturating_mul(6))?;
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' => self.out.push_str(&format!("\\u{:04x}", c as u32)),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
        Ok(())
    }
}

/// The text of a value.
pub(super) fn shown(value: &Value, budget: &mut Budget) -> Result<String, Fault> {
    let mut text = Text::new(budget);
    text.show(value)?;
    Ok(text.out)
}

/// As Python's `repr` of a float.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{value:?}")
}
