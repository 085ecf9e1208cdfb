//! What the fields of a request may hold. A value that asks for nothing special passes. A field that would change what the
//! answer may be and is not supported is refused by name; one that is not known is noted, or refused by a strict server.

use super::error::ApiError;
use serde_json::{Map, Value};
use std::cell::RefCell;

/// Notes that are told; a client that gives cause for more has the first ones.
const MOST_NOTES: usize = 16;

/// What a request asks for in vain, and is answered without.
pub struct Notes {
    is_strict: bool,
    noted: RefCell<Vec<String>>,
}

impl Notes {
    /// A strict server refuses what others note.
    pub fn new(is_strict: bool) -> Notes {
        Notes { is_strict, noted: RefCell::default() }
    }

    /// Takes note of a field that changes nothing.
    ///
    /// *Errors*: the server is strict.
    pub fn note(&self, name: &str, why: &str) -> Result<(), ApiError> {
        let name = name.chars().take(80).collect::<String>();
        if self.is_strict {
            let message = format!("{name} {why}; leave it out");
            return Err(ApiError::request(message).about(&name).with_code("unknown_parameter"));
        }
        let mut noted = self.noted.borrow_mut();
        if noted.len() < MOST_NOTES {
            noted.push(format!("{name} {why}, and changes nothing"));
        }
        Ok(())
    }

    /// All notes.
    pub fn into_noted(self) -> Vec<String> {
        self.noted.into_inner()
    }
}

/// What is done with a field. For every one, null is the same as leaving it out.
pub enum Rule {
    /// It is used, if it is such a value.
    Use(Kind),
    /// It is not supported; these values, as JSON, ask for nothing. Why others are refused, and what to do.
    Only(&'static [&'static str], &'static str),
    /// It is not supported, and the answer is the same without: these values, as JSON, ask for nothing, and others are
    /// noted. Why it changes nothing.
    Noted(&'static [&'static str], &'static str),
    /// Whatever it holds, the answer would be the same.
    Ignored,
}

/// A kind of values. Integers may be written as numbers with a point, such as 5.0.
pub enum Kind {
    Integer(u64, u64),
    /// An integer, or -1 for as many as there may be.
    Count(u64, u64),
    /// Any integer of 64 bits; -1 is any of them.
    Seed,
    Number(f64, f64),
    Boolean,
    Text,
    OneOf(&'static [&'static str]),
    Object(Table),
    /// A check of its own.
    Checked(fn(&str, &Value, &Notes) -> Result<(), ApiError>),
}

/// All fields that an object may have.
pub type Table = &'static [(&'static str, Rule)];

/// The integer that a value is.
pub fn integer(value: &Value) -> Option<i128> {
    let whole = |number: f64| (number.fract() == 0.0 && number.abs() <= 2f64.powi(53)).then_some(number as i128);
    let exact = value.as_u64().map(i128::from).or(value.as_i64().map(i128::from));
    exact.or_else(|| whole(value.as_f64()?))
}

/// A value as messages show it.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 { text } else { text.chars().take(77).collect::<String>() + "..." }
}

/// Refuses a value.
pub fn refused(name: &str, expected: &str, value: &Value) -> ApiError {
    let message = match value {
        Value::Null => format!("{name} must be {expected}, and is missing"),
        value => format!("{name} must be {expected}, not {}", shown(value)),
    };
    ApiError::request(message).about(name)
}

/// Checks all fields of an object, which stand in one of the tables. `path` leads to it, and is empty for the request
/// itself.
pub fn check<'v>(
    path: &str,
    value: &'v Value,
    tables: &[Table],
    notes: &Notes,
) -> Result<&'v Map<String, Value>, ApiError> {
    let Value::Object(fields) = value else {
        if path.is_empty() {
            return Err(ApiError::request(format!("the request must be an object, not {}", shown(value))));
        }
        return Err(refused(path, "an object", value));
    };
    for (key, value) in fields {
        let name = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let Some((_, rule)) = tables.iter().copied().flatten().find(|(known, _)| known == key) else {
            if !value.is_null() {
                notes.note(&name, "is not known")?;
            }
            continue;
        };
        match rule {
            _ if value.is_null() => {}
            Rule::Ignored => {}
            Rule::Use(kind) => kind.check(&name, value, notes)?,
            Rule::Only(neutral, _) | Rule::Noted(neutral, _) if neutral.iter().any(|text| is(text, value)) => {}
            Rule::Noted(_, why) => notes.note(&name, why)?,
            Rule::Only(neutral, why) => {
                let what = match neutral {
                    [] => "is not supported".to_owned(),
                    neutral => format!("can only be {}, not {}", neutral.join(" or "), shown(value)),
                };
                let error = ApiError::request(format!("{name} {what}: {why}"));
                return Err(error.about(&name).with_code("unsupported_parameter"));
            }
        }
    }
    Ok(fields)
}

/// Whether a value is what a text of JSON says; 0 and 0.0 are the same.
fn is(text: &str, value: &Value) -> bool {
    let one: Value = serde_json::from_str(text).unwrap_or_default();
    match (one.as_f64(), value.as_f64()) {
        (Some(one), Some(value)) => one == value,
        _ => one == *value,
    }
}

impl Kind {
    pub fn check(&self, name: &str, value: &Value, notes: &Notes) -> Result<(), ApiError> {
        let within = |least: &u64, most: &u64| {
            integer(value).is_some_and(|n| (i128::from(*least)..=i128::from(*most)).contains(&n))
        };
        let (sound, expected) = match self {
            Kind::Integer(least, most) => (within(least, most), format!("an integer from {least} to {most}")),
            Kind::Count(least, most) => {
                let sound = within(least, most) || integer(value) == Some(-1);
                (sound, format!("an integer from {least} to {most}, or -1"))
            }
            Kind::Seed => (integer(value).is_some(), "an integer of 64 bits".into()),
            Kind::Number(least, most) => {
                let sound = value.as_f64().is_some_and(|n| (*least..=*most).contains(&n));
                (sound, format!("a number from {least} to {most}"))
            }
            Kind::Boolean => (value.is_boolean(), "true or false".into()),
            Kind::Text => (value.is_string(), "a string".into()),
            Kind::OneOf(names) => {
                (value.as_str().is_some_and(|name| names.contains(&name)), format!("one of {}", names.join(", ")))
            }
            Kind::Object(table) => return check(name, value, &[*table], notes).map(|_| ()),
            Kind::Checked(check) => return check(name, value, notes),
        };
        if sound { Ok(()) } else { Err(refused(name, &expected, value)) }
    }
}
