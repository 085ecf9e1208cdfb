//! Values as text, as `{{ }}` shows them.

use super::Fault;
use super::budget::Budget;
use super::value::Value;

/// Text that pays for its growth.
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

    /// Writes a value like Python's `str`; undefined values are empty.
    pub fn show(&mut self, value: &Value) -> Result<(), Fault> {
        match value {
            Value::Undefined => Ok(()),
            Value::Str(text) => self.push(text),
            other => self.repr(other),
        }
    }

    /// Writes a value like Python's `repr`.
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
                self.push(if list.is_tuple { "(" } else { "[" })?;
                for (i, item) in list.iter().enumerate() {
                    self.push(if i > 0 { ", " } else { "" })?;
                    self.repr(item)?;
                }
                match (list.is_tuple, list.len()) {
                    (true, 1) => self.push(",)"),
                    (true, _) => self.push(")"),
                    (false, _) => self.push("]"),
                }
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
        // An escaped control character takes four bytes.
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
}

/// Converts a value to text.
pub(super) fn shown(value: &Value, budget: &mut Budget) -> Result<String, Fault> {
    let mut text = Text::new(budget);
    text.show(value)?;
    Ok(text.out)
}

/// Converts a value to the text of Python's `repr`.
pub(super) fn represented(value: &Value, budget: &mut Budget) -> Result<String, Fault> {
    let mut text = Text::new(budget);
    text.repr(value)?;
    Ok(text.out)
}

/// Formats a float like Python's `repr`.
pub(super) fn float(value: f64) -> String {
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
