//! Key-value pairs of a file, with getters that convert and check.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::error::{GgufError, shown};

/// Array of strings in one allocation: a vocabulary has a quarter of a million of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StringArray {
    text: String,
    ends: Vec<u32>,
}

impl StringArray {
    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the string at `index`.
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)? as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        self.text.get(start..end)
    }

    /// Iterates over all strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|i| self.get(i).unwrap_or_default())
    }

    /// Appends a string.
    ///
    /// *Errors*: the text of all strings would pass 4 GiB; nothing is appended.
    pub fn push(&mut self, string: &str) -> Result<(), u64> {
        let end = self.text.len() as u64 + string.len() as u64;
        self.ends.push(u32::try_from(end).map_err(|_| end)?);
        self.text.push_str(string);
        Ok(())
    }
}

impl<S: AsRef<str>> FromIterator<S> for StringArray {
    /// Collects strings; those beyond 4 GiB of text are left out.
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> StringArray {
        let mut array = StringArray::default();
        let _ = strings.into_iter().try_for_each(|s| array.push(s.as_ref()));
        array
    }
}

/// A metadata value. Widths of numbers are not kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Any unsigned integer.
    Uint(u64),
    /// Any signed integer.
    Int(i64),
    /// f32 or f64.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    String(Box<str>),
    /// An array of unsigned integers.
    Uints(Vec<u64>),
    /// An array of signed integers of at most 32 bits, such as token types.
    Ints(Vec<i32>),
    /// An array of 64-bit signed integers.
    Longs(Vec<i64>),
    /// An array of f32, such as token scores.
    Floats(Vec<f32>),
    /// An array of f64.
    Doubles(Vec<f64>),
    /// An array of truth values.
    Bools(Vec<bool>),
    /// An array of strings, shared because tokenizers keep it.
    Strings(Arc<StringArray>),
}

impl fmt::Display for Value {
    /// Formats a short description for messages: arrays by kind and length, strings shortened.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, len) = match self {
            Value::Uint(v) => return write!(f, "the integer {v}"),
            Value::Int(v) => return write!(f, "the integer {v}"),
            // Very large and small numbers have an exponent, so that messages stay short.
            Value::Float(v) => return write!(f, "the number {v:?}"),
            Value::Bool(v) => return write!(f, "the bool {v}"),
            Value::String(v) => {
                let short: String = v.chars().take(40).collect();
                return write!(f, "the string {short:?}");
            }
            Value::Uints(v) => ("integers", v.len()),
            Value::Ints(v) => ("integers", v.len()),
            Value::Longs(v) => ("integers", v.len()),
            Value::Floats(v) => ("numbers", v.len()),
            Value::Doubles(v) => ("numbers", v.len()),
            Value::Bools(v) => ("bools", v.len()),
            Value::Strings(v) => ("strings", v.len()),
        };
        write!(f, "an array of {len} {kind}")
    }
}

/// A type that a metadata value can be read as.
pub trait FromValue<'a>: Sized {
    /// Name of the type in messages.
    const EXPECTED: &'static str;

    /// Converts a value, if its type and magnitude fit.
    fn from_value(value: &'a Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($type:ty, $expected:literal, $value:ident => $body:expr;)+) => {
        $(impl<'a> FromValue<'a> for $type {
            const EXPECTED: &'static str = $expected;

            fn from_value($value: &'a Value) -> Option<Self> {
                $body
            }
        })+
    };
}

from_value! {
    u64, "a non-negative integer", value => match value {
        Value::Uint(v) => Some(*v),
        Value::Int(v) => u64::try_from(*v).ok(),
        _ => None,
    };
    u32, "a non-negative integer below 2^32", value => u32::try_from(u64::from_value(value)?).ok();
    usize, "a non-negative integer that fits memory", value => usize::try_from(u64::from_value(value)?).ok();
    f32, "a number", value => match value {
        Value::Float(v) => Some(*v as f32),
        Value::Uint(v) => Some(*v as f32),
        Value::Int(v) => Some(*v as f32),
        _ => None,
    };
    bool, "a bool", value => match value {
        Value::Bool(v) => Some(*v),
        _ => None,
    };
    &'a str, "a string", value => match value {
        Value::String(v) => Some(v),
        _ => None,
    };
    &'a Arc<StringArray>, "an array of strings", value => match value {
        Value::Strings(v) => Some(v),
        _ => None,
    };
    Vec<u8>, "an array of bytes", value => match value {
        Value::Uints(v) => v.iter().map(|&x| u8::try_from(x).ok()).collect(),
        // Some converters write bytes as signed integers.
        Value::Ints(v) => v.iter().map(|&x| u8::try_from(x).or_else(|_| i8::try_from(x).map(i8::cast_unsigned)).ok()).collect(),
        _ => None,
    };
    Vec<u32>, "an array of non-negative integers below 2^32", value => match value {
        Value::Uints(v) => v.iter().map(|&x| u32::try_from(x).ok()).collect(),
        Value::Ints(v) => v.iter().map(|&x| u32::try_from(x).ok()).collect(),
        Value::Longs(v) => v.iter().map(|&x| u32::try_from(x).ok()).collect(),
        _ => None,
    };
    Vec<f32>, "an array of numbers", value => match value {
        Value::Floats(v) => Some(v.clone()),
        Value::Doubles(v) => Some(v.iter().map(|&x| x as f32).collect()),
        Value::Uints(v) => Some(v.iter().map(|&x| x as f32).collect()),
        Value::Ints(v) => Some(v.iter().map(|&x| x as f32).collect()),
        Value::Longs(v) => Some(v.iter().map(|&x| x as f32).collect()),
        _ => None,
    };
    Vec<bool>, "an array of bools", value => match value {
        Value::Bools(v) => Some(v.clone()),
        _ => None,
    };
}

/// All key-value pairs of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    entries: BTreeMap<Box<str>, Value>,
}

impl Metadata {
    /// Returns the value as it is in the file.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.entries.get(key)
    }

    /// Returns the value as a `T`, or `None` if the key is absent.
    ///
    /// *Errors*: the value has another type, or does not fit.
    pub fn get<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>, GgufError> {
        let Some(value) = self.entries.get(key) else { return Ok(None) };
        match T::from_value(value) {
            Some(v) => Ok(Some(v)),
            None => Err(GgufError::WrongValue { key: shown(key), expected: T::EXPECTED, found: value.to_string() }),
        }
    }

    /// Returns the value as a `T`.
    ///
    /// *Errors*: the key is absent, the value has another type, or does not fit.
    pub fn require<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<T, GgufError> {
        self.get(key)?.ok_or_else(|| GgufError::MissingKey { key: shown(key), expected: T::EXPECTED })
    }

    /// Adds a pair. If the key exists already, changes nothing and returns false.
    pub fn insert(&mut self, key: &str, value: Value) -> bool {
        let vacant = !self.entries.contains_key(key);
        if vacant {
            self.entries.insert(key.into(), value);
        }
        vacant
    }

    /// Iterates over all pairs, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(k, v)| (&**k, v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_any_width_are_taken_and_errors_name_everything() {
        let mut m = Metadata::default();
        assert!(m.insert("a", Value::Int(7)));
        assert!(m.insert("b", Value::Uint(1 << 40)));
        assert!(m.insert("c", Value::Ints(vec![1, -1])));
        assert!(!m.insert("a", Value::Int(8)));
        assert_eq!(m.require::<u32>("a"), Ok(7));
        assert_eq!(m.require::<f32>("a"), Ok(7.0));
        assert_eq!(m.get::<u32>("z"), Ok(None));
        let wide = m.require::<u32>("b").unwrap_err().to_string();
        assert!(wide.contains("\"b\"") && wide.contains("below 2^32") && wide.contains("1099511627776"), "{wide}");
        assert!(m.get::<Vec<u32>>("c").unwrap_err().to_string().contains("an array of 2 integers"));
        assert!(m.require::<&str>("z").unwrap_err().to_string().contains("\"z\" (a string) is missing"));
        assert_eq!(Value::Float(f64::MAX).to_string(), "the number 1.7976931348623157e308");
    }

    #[test]
    fn string_arrays_keep_empty_strings() {
        let a: StringArray = ["", "ab", "", "ü"].into_iter().collect();
        assert_eq!(a.iter().collect::<Vec<_>>(), ["", "ab", "", "ü"]);
        assert_eq!(a.get(4), None);
    }
}
