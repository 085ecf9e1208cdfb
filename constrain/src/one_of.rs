//! Check whether alternatives of a `oneOf` exclude each other.

use serde_json::{Map, Value};

use crate::pointer;
use crate::schema::is_closed;

/// Most references to follow, and most levels of properties to compare.
const MAX_STEPS: usize = 8;
/// Most alternatives: each is compared with each other.
const MAX_SCHEMAS: usize = 64;

/// Returns whether the schemas exclude each other: no value that an answer has by one schema is valid by another.
/// `closes` says whether answers have no other keys where a schema leaves them open.
pub(crate) fn are_apart(root: &Value, schemas: &[Value], closes: bool) -> bool {
    let apart = Apart { root, closes };
    let each = |at: usize| {
        let mut others = schemas.iter().enumerate().filter(|(other, _)| *other != at);
        others.all(|(_, other)| apart.excludes(&schemas[at], other, MAX_STEPS))
    };
    schemas.len() <= MAX_SCHEMAS && (0..schemas.len()).all(each)
}

struct Apart<'s> {
    root: &'s Value,
    closes: bool,
}

impl<'s> Apart<'s> {
    /// Returns whether no value that an answer has by `one` is valid by `other`.
    fn excludes(&self, one: &'s Value, other: &'s Value, steps: usize) -> bool {
        let (one, other) = match (self.followed(one), self.followed(other)) {
            (Value::Object(one), Value::Object(other)) => (one, other),
            (one, other) => return [one, other].contains(&&Value::Bool(false)),
        };
        if let (Some(mut values), Some(others)) = (values(one), values(other)) {
            return !values.any(|value| others.clone().any(|other| is_same(value, other)));
        }
        let common = types(one) & types(other);
        if common != OBJECT || steps == 0 {
            return common == 0;
        }
        let names = |schema: &'s Map<String, Value>| {
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        };
        let property = |schema: &'s Map<String, Value>, name: &str| schema.get("properties")?.get(name);
        let is_lacked = |name: &str| property(one, name).is_none() && !names(one).any(|own| own == name);
        let is_closed = is_closed(one, self.closes);
        names(other).any(|name| match (property(one, name), property(other, name)) {
            (Some(of_one), Some(of_other)) if names(one).any(|own| own == name) => {
                self.excludes(of_one, of_other, steps - 1)
            }
            _ => is_closed && is_lacked(name),
        })
    }

    /// Follows a schema that is only a reference.
    fn followed(&self, schema: &'s Value) -> &'s Value {
        let step = |schema: &&'s Value| {
            let map = schema.as_object().filter(|map| map.len() == 1)?;
            let place = pointer::of_reference(map.get("$ref")?.as_str()?)?;
            pointer::find(self.root, &pointer::parts(&place))
        };
        std::iter::successors(Some(schema), step).take(MAX_STEPS).last().unwrap_or(schema)
    }
}

/// Returns the values of a schema with `const` or `enum`.
fn values(schema: &Map<String, Value>) -> Option<impl Iterator<Item = &Value> + Clone> {
    let one = schema.get("const").map(std::slice::from_ref);
    one.or_else(|| schema.get("enum")?.as_array().map(Vec::as_slice)).map(<[Value]>::iter)
}

/// Returns whether a validator may treat two values as equal. A number can be written in several ways.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => true,
        _ => one == other,
    }
}

const OBJECT: u8 = 1 << 5;

/// Returns the types that a schema allows, one bit for each.
fn types(schema: &Map<String, Value>) -> u8 {
    let of_value = |value: &Value| match value {
        Value::Null => 1,
        Value::Bool(_) => 1 << 1,
        Value::Number(_) => 1 << 2,
        Value::String(_) => 1 << 3,
        Value::Array(_) => 1 << 4,
        Value::Object(_) => OBJECT,
    };
    let of_name = |name: &Value| match name.as_str() {
        Some("null") => 1,
        Some("boolean") => 1 << 1,
        Some("integer" | "number") => 1 << 2,
        Some("string") => 1 << 3,
        Some("array") => 1 << 4,
        Some("object") => OBJECT,
        _ => u8::MAX,
    };
    if let Some(values) = values(schema) {
        return values.map(of_value).fold(0, |all, one| all | one);
    }
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().map(of_name).fold(0, |all, one| all | one),
        Some(name) => of_name(name),
        None => u8::MAX,
    }
}
