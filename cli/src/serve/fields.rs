//! What the fields of a request may hold. A value that asks for nothing special passes; a field that would change the
//! answer and is not supported is refused by name, and so is one that is not known.

use super::error::ApiError;
use serde_json::{Map, Value};

/// What is done with a field. For every one, null is the same as leaving it out.
pub enum Rule {
    /// It is used, if it is such a value.
    Use(Kind),
    /// It is not supported; these values, as JSON, ask for nothing. Why others are refused, and what to do.
    Only(&'static [&'static str], &'static str),
    /// Whatever it holds, the answer would be the same.
    Ignored,
}

/// A kind of values.
pub enum Kind {
    Integer(u64, u64),
    Number(f64, f64),
    Boolean,
    Text,
    OneOf(&'static [&'static str]),
    Object(Table),
    /// A check of its own.
    Checked(fn(&str, &Value) -> Result<(), ApiError>),
}

/// All fields that an object may have.
pub type Table = &'static [(&'static str, Rule)];

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
pub fn check<'v>(path: &str, value: &'v Value, tables: &[Table]) -> Result<&'v Map<String, Value>, ApiError> {
    let Value::Object(fields) = value else {
        if path.is_empty() {
            return Err(ApiError::request(format!("the request must be an object, not {}", shown(value))));
        }
        return Err(refused(path, "an object", value));
    };
    for (key, value) in fields {
        let name = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let Some((_, rule)) = tables.iter().copied().flatten().find(|(known, _)| known == key) else {
            let name = name.chars().take(80).collect::<String>();
            let message = format!("{name} is not known; leave it out");
            return Err(ApiError::request(message).about(&name).with_code("unknown_parameter"));
        };
        match rule {
            _ if value.is_null() => {}
            Rule::Ignored => {}
            Rule::Use(kind) => kind.check(&name, value)?,
            Rule::Only(neutral, _) if neutral.iter().any(|text| is(text, value)) => {}
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
    pub fn check(&self, name: &str, value: &Value) -> Result<(), ApiError> {
        let (sound, expected) = match self {
            Kind::Integer(least, most) => {
                let sound = value.as_u64().is_some_and(|n| (*least..=*most).contains(&n));
                (sound, format!("an integer from {least} to {most}"))
            }
            Kind::Number(least, most) => {
                let sound = value.as_f64().is_some_and(|n| (*least..=*most).contains(&n));
                (sound, format!("a number from {least} to {most}"))
            }
            Kind::Boolean => (value.is_boolean(), "true or false".into()),
            Kind::Text => (value.is_string(), "a string".into()),
            Kind::OneOf(names) => {
                (value.as_str().is_some_and(|name| names.contains(&name)), format!("one of {}", names.join(", ")))
            }
            Kind::Object(table) => return check(name, value, &[*table]).map(|_| ()),
            Kind::Checked(check) => return check(name, value),
        };
        if sound { Ok(()) } else { Err(refused(name, &expected, value)) }
    }
}
