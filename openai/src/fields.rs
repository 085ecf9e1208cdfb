//! Validation of request fields. Neutral values pass. A field that would change the answer but is not supported is
//! refused by name. An unknown field is noted, or refused by a strict server.

use crate::error::Refusal;
use serde_json::{Map, Value};
use std::cell::RefCell;

/// Most notes in a response. Further ones are dropped.
const MOST_NOTES: usize = 16;

/// Fields of a request that had no effect.
pub struct Notes {
    is_strict: bool,
    noted: RefCell<Vec<String>>,
}

impl Notes {
    /// Creates an empty list. A strict server refuses such fields instead of noting them.
    pub fn new(is_strict: bool) -> Notes {
        Notes { is_strict, noted: RefCell::default() }
    }

    /// Notes a field that has no effect.
    ///
    /// *Errors*: the server is strict.
    pub fn note(&self, name: &str, why: &str) -> Result<(), Refusal> {
        let name = name.chars().take(80).collect::<String>();
        if self.is_strict {
            let message = format!("{name} {why}; leave it out");
            return Err(Refusal::new(message).about(&name).with_code("unknown_parameter"));
        }
        let mut noted = self.noted.borrow_mut();
        if noted.len() < MOST_NOTES {
            noted.push(format!("{name} {why}, and changes nothing"));
        }
        Ok(())
    }

    /// Returns all notes.
    pub fn into_noted(self) -> Vec<String> {
        self.noted.into_inner()
    }
}

/// Rule for a field. Null always means that the field is missing.
pub enum Rule {
    /// The field is used, and must have this kind of value.
    Use(Kind),
    /// The field is not supported. These values, as JSON, are neutral and pass; the text says why others are refused
    /// and what to do.
    Only(&'static [&'static str], &'static str),
    /// The field is not supported, but does not change the answer. These values, as JSON, are neutral and pass; others
    /// are noted with the text as the reason.
    Noted(&'static [&'static str], &'static str),
    /// The field is ignored, because no value of it would change the answer.
    Ignored,
}

/// Kind of a value. Integers may be written with a decimal point, such as 5.0.
pub enum Kind {
    /// An integer from the one to the other.
    Integer(u64, u64),
    /// An integer, or -1 for no limit.
    Count(u64, u64),
    /// An integer of 64 bits, or -1 for a random one.
    Seed,
    /// A number from the one to the other.
    Number(f64, f64),
    /// True or false.
    Boolean,
    /// Any string.
    Text,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// An object with these fields.
    Object(Table),
    /// A value for which a function is true, with a description of it.
    Such(&'static str, fn(&Value) -> bool),
    /// A value that a function checks, with a description of it.
    Checked(&'static str, Check),
}

/// A function that checks a value of this name.
pub type Check = fn(&str, &Value, &Notes) -> Result<(), Refusal>;

/// The known fields of an object, with their rules.
pub type Table = &'static [(&'static str, Rule)];

/// Returns the value as an integer, if it is one.
pub fn integer(value: &Value) -> Option<i128> {
    let whole = |number: f64| (number.fract() == 0.0 && number.abs() <= 2f64.powi(53)).then_some(number as i128);
    let exact = value.as_u64().map(i128::from).or(value.as_i64().map(i128::from));
    exact.or_else(|| whole(value.as_f64()?))
}

/// Formats a value for error messages.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 { text } else { text.chars().take(77).collect::<String>() + "..." }
}

/// Returns the error for an invalid or missing value.
pub fn refused(name: &str, expected: &str, value: &Value) -> Refusal {
    let message = match value {
        Value::Null => format!("{name} must be {expected}, and is missing"),
        value => format!("{name} must be {expected}, not {}", shown(value)),
    };
    Refusal::new(message).about(name)
}

/// Checks all fields of an object against these tables. `path` leads to the object, and is empty for the request
/// itself.
pub fn check<'v>(
    path: &str,
    value: &'v Value,
    tables: &[Table],
    notes: &Notes,
) -> Result<&'v Map<String, Value>, Refusal> {
    let Value::Object(fields) = value else {
        if path.is_empty() {
            return Err(Refusal::new(format!("the request must be an object, not {}", shown(value))));
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
                let error = Refusal::new(format!("{name} {what}: {why}"));
                return Err(error.about(&name).with_code("unsupported_parameter"));
            }
        }
    }
    Ok(fields)
}

/// Returns whether a value equals the one in a JSON text; 0 and 0.0 are equal.
fn is(text: &str, value: &Value) -> bool {
    let one: Value = serde_json::from_str(text).unwrap_or_default();
    match (one.as_f64(), value.as_f64()) {
        (Some(one), Some(value)) => one == value,
        _ => one == *value,
    }
}

impl Kind {
    /// Describes the values in words.
    pub fn expected(&self) -> String {
        match self {
            Kind::Integer(least, most) => format!("an integer from {least} to {most}"),
            Kind::Count(least, most) => format!("an integer from {least} to {most}, or -1"),
            Kind::Seed => "an integer of 64 bits".into(),
            Kind::Number(least, most) => format!("a number from {least} to {most}"),
            Kind::Boolean => "true or false".into(),
            Kind::Text => "a string".into(),
            Kind::OneOf(names) => format!("one of {}", names.join(", ")),
            Kind::Object(_) => "an object".into(),
            Kind::Such(what, _) | Kind::Checked(what, _) => (*what).into(),
        }
    }

    /// Checks a value of this name.
    ///
    /// *Errors*: a value of another kind.
    pub fn check(&self, name: &str, value: &Value, notes: &Notes) -> Result<(), Refusal> {
        let within = |least: &u64, most: &u64| {
            integer(value).is_some_and(|n| (i128::from(*least)..=i128::from(*most)).contains(&n))
        };
        let sound = match self {
            Kind::Integer(least, most) => within(least, most),
            Kind::Count(least, most) => within(least, most) || integer(value) == Some(-1),
            Kind::Seed => integer(value).is_some(),
            Kind::Number(least, most) => value.as_f64().is_some_and(|n| (*least..=*most).contains(&n)),
            Kind::Boolean => value.is_boolean(),
            Kind::Text => value.is_string(),
            Kind::OneOf(names) => value.as_str().is_some_and(|name| names.contains(&name)),
            Kind::Such(_, is) => is(value),
            Kind::Object(table) => return check(name, value, &[*table], notes).map(|_| ()),
            Kind::Checked(_, check) => return check(name, value, notes),
        };
        if sound { Ok(()) } else { Err(refused(name, &self.expected(), value)) }
    }
}
