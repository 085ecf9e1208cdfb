//! Python's methods of strings, maps and lists, which templates call.

use super::Fault;
use super::budget::{Budget, CELL};
use super::functions::cycle;
use super::machine::Given;
use super::value::{Map, Value};
use super::{compare, format, lists, strings};

/// Methods of maps, which take precedence over keys in `map.name`.
pub(super) const OF_MAPS: [&str; 11] =
    ["clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"];

/// Calls a method; returns nothing if the value does not have it.
pub(super) fn call(value: &Value, name: &str, given: &Given, budget: &mut Budget) -> Result<Option<Value>, Fault> {
    match value {
        Value::Str(text) => of_string(text, name, given, budget),
        Value::Map(map) => of_map(map, name, given, budget),
        Value::List(list) => match name {
            "count" | "index" => {
                let wanted = given.require(0, "value")?;
                let mut places = Vec::new();
                for (at, item) in list.iter().enumerate() {
                    if compare::equal(item, wanted, budget)? {
                        budget.pay(CELL)?;
                        places.push(at as i64);
                    }
                }
                match (name, places.first()) {
                    ("count", _) => Ok(Some(Value::Int(places.len() as i64))),
                    (_, Some(first)) => Ok(Some(Value::Int(*first))),
                    _ => Err(Fault::new("the list has no such element")),
                }
            }
            "append" | "extend" | "insert" | "pop" | "remove" | "clear" | "sort" | "reverse" => Err(Fault::new(
                format!("lists cannot be changed with \"{name}\"; a template joins them with + instead"),
            )),
            _ => Ok(None),
        },
        Value::Loop(state) if name == "cycle" => cycle(state, given).map(Some),
        _ => Ok(None),
    }
}

fn of_map(map: &Map, name: &str, given: &Given, budget: &mut Budget) -> Result<Option<Value>, Fault> {
    Ok(Some(match name {
        "get" => {
            let found = map.get(given.require(0, "key")?, budget)?;
            found.or(given.get(1, "default")).cloned().unwrap_or(Value::None)
        }
        "items" => lists::pairs(map, budget)?,
        "keys" | "values" => {
            budget.pay_each(map.len(), CELL)?;
            let each = |(key, value): &(Value, Value)| if name == "keys" { key.clone() } else { value.clone() };
            Value::list(map.pairs().iter().map(each).collect())?
        }
        _ => return Ok(None),
    }))
}

fn of_string(text: &str, name: &str, given: &Given, budget: &mut Budget) -> Result<Option<Value>, Fault> {
    let all = |holds: fn(char) -> bool| Value::Bool(!text.is_empty() && text.chars().all(holds));
    let text_at = |at: usize, name: &str| given.require(at, name).and_then(Value::as_str);
    // Each of them looks at the whole text.
    budget.pay(text.len())?;
    Ok(Some(match name {
        "strip" => strings::strip(text, given.get(0, "chars"), (true, true), budget)?,
        "lstrip" => strings::strip(text, given.get(0, "chars"), (true, false), budget)?,
        "rstrip" => strings::strip(text, given.get(0, "chars"), (false, true), budget)?,
        "upper" => strings::cased(text, true, budget)?,
        "lower" => strings::cased(text, false, budget)?,
        "title" => strings::capitalized(text, true, budget)?,
        "capitalize" => strings::capitalized(text, false, budget)?,
        "splitlines" => strings::lines(text, budget)?,
        "split" | "rsplit" => {
            let separator = match given.get(0, "sep") {
                None | Some(Value::None) => None,
                Some(separator) => Some(&**separator.as_str()?),
            };
            strings::split(text, separator, given.int(1, "maxsplit", -1)?, name == "rsplit", budget)?
        }
        "replace" => {
            let (from, to) = (text_at(0, "old")?, text_at(1, "new")?);
            strings::replace(text, from, to, given.int(2, "count", -1)?, budget)?
        }
        "removeprefix" => {
            let prefix = text_at(0, "prefix")?;
            Value::str(text.strip_prefix(&**prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let suffix = text_at(0, "suffix")?;
            Value::str(text.strip_suffix(&**suffix).unwrap_or(text))
        }
        "startswith" => ends(given.require(0, "prefix")?, |part| text.starts_with(part), budget)?,
        "endswith" => ends(given.require(0, "suffix")?, |part| text.ends_with(part), budget)?,
        "find" | "rfind" | "index" => {
            let part = text_at(0, "sub")?;
            budget.pay(part.len())?;
            let at = if name == "rfind" { text.rfind(&**part) } else { text.find(&**part) };
            match at {
                Some(at) => Value::Int(text[..at].chars().count() as i64),
                None if name == "index" => return Err(Fault::new("the text has no such part")),
                None => Value::Int(-1),
            }
        }
        "count" => {
            let part = text_at(0, "sub")?;
            budget.pay(part.len())?;
            Value::Int(text.matches(&**part).count() as i64)
        }
        "format" => format::braces(text, given, budget)?,
        "join" => lists::join(given.require(0, "iterable")?, text, budget)?,
        "isdigit" | "isnumeric" | "isdecimal" => all(char::is_numeric),
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isspace" => all(char::is_whitespace),
        "isascii" => Value::Bool(text.is_ascii()),
        "islower" => Value::Bool(text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase)),
        "isupper" => Value::Bool(text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase)),
        _ => return Ok(None),
    }))
}

/// Returns whether `holds` is true for the string, or for one string of the list.
fn ends(parts: &Value, holds: impl Fn(&str) -> bool, budget: &mut Budget) -> Result<Value, Fault> {
    let Value::List(list) = parts else {
        let part = parts.as_str()?;
        budget.pay(part.len())?;
        return Ok(Value::Bool(holds(part)));
    };
    for part in list.iter() {
        let part = part.as_str()?;
        budget.pay(part.len() + CELL)?;
        if holds(part) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
