//! Which JSON schemas answers can be held to: those of which every word is held to.
//!
//! - Values: `type`, `const`, `enum`, `anyOf`, `allOf`, `$ref` within the document, and `oneOf` where no two of its
//!   alternatives can hold at once.
//! - Objects: `properties`, `required`, `additionalProperties`, `patternProperties`, `maxProperties`, and `minProperties` as
//!   far as keys cannot be repeated for it. Named properties come in the schema's order.
//! - Arrays: `items`, `prefixItems`, `additionalItems`, `minItems`, `maxItems`.
//! - Strings: `minLength`, `maxLength`, `pattern` without look-around, and `format` where it is known.
//! - Numbers: `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`.
//!
//! Titles, descriptions and the like ask for nothing. Everything else is refused by name. A schema may have
//! [`MAX_BYTES`] bytes, [`MAX_DEPTH`] levels, and [`MAX_LEVELS`] on the way through all places that are referred to.

use std::collections::HashSet;

use llguidance::JsonCompileOptions;
use llguidance::api::TopLevelGrammar;
use serde_json::{Map, Value};

use crate::error::FormatError;

/// Bytes of a schema, at most.
pub const MAX_BYTES: usize = 64 << 10;
/// Levels of a schema, at most.
pub const MAX_DEPTH: usize = 64;
/// Levels times places that are referred to, at most: so deep the stack can become, of which browsers have less.
pub const MAX_LEVELS: usize = if cfg!(target_arch = "wasm32") { 128 } else { 1024 };
/// Bytes of a pattern, at most.
const MAX_PATTERN: usize = 4096;
/// Digits of a number that others are multiples of, at most: each remainder takes memory.
const MAX_DIGITS: usize = 3;
/// From here on integers are rounded.
const MAX_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Between two words of JSON: nothing, a space, or a new line with an indent. A model that has lost its way can write no
/// more of it.
const SPACE: &str = r" |\n[ \t]{0,32}";
/// What may follow a backslash. Without `u` there is one way to write a string, so that a key which is named cannot come
/// in disguise.
const ESCAPES: &str = "nrbtf\\\"";

/// Keywords that ask nothing of an answer.
const ANNOTATIONS: &[&str] = &[
    "$comment",
    "$defs",
    "contentEncoding",
    "contentMediaType",
    "default",
    "definitions",
    "deprecated",
    "description",
    "discriminator",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];
/// Those of the whole document only.
const OF_DOCUMENT: &[&str] = &["$id", "$schema", "id"];
const TYPES: &[&str] = &["null", "boolean", "integer", "number", "string", "array", "object"];

/// The grammar of a schema.
///
/// *Errors*: a schema that answers cannot be held to.
pub(crate) fn grammar(schema: &Value) -> Result<TopLevelGrammar, FormatError> {
    document(schema).map(TopLevelGrammar::from_json_schema)
}

/// A schema as the library takes it.
///
/// *Errors*: as [`grammar`].
pub(crate) fn document(schema: &Value) -> Result<Value, FormatError> {
    let bytes = schema.to_string().len();
    if bytes > MAX_BYTES {
        return Err(FormatError::TooLarge { what: "bytes", found: bytes, most: MAX_BYTES });
    }
    let mut check = Check { place: Vec::new(), level: 0, deepest: 0, refs: HashSet::new() };
    let mut document = match schema {
        Value::Bool(true) => Map::new(),
        Value::Bool(false) => return check.wrong("allows nothing; give one that allows something"),
        Value::Object(map) => map.clone(),
        _ => return check.wrong("must be an object"),
    };
    // All keywords are understood as the latest draft has them, or refused.
    document.retain(|key, _| !OF_DOCUMENT.contains(&key.as_str()));
    let mut document = Value::Object(document);
    check.schema(&document)?;
    let levels = check.deepest * (check.refs.len() + 1);
    if levels > MAX_LEVELS {
        return Err(FormatError::TooLarge { what: "levels times references", found: levels, most: MAX_LEVELS });
    }
    let options = JsonCompileOptions {
        whitespace_pattern: Some(SPACE.into()),
        json_allowed_escapes: Some(ESCAPES.into()),
        ..JsonCompileOptions::default()
    };
    options.apply_to(&mut document);
    Ok(document)
}

/// Walks a schema.
struct Check<'s> {
    /// Where it is.
    place: Vec<&'s str>,
    /// Schemas around this place, and around the one that has most.
    level: usize,
    deepest: usize,
    /// Places that are referred to.
    refs: HashSet<&'s str>,
}

impl<'s> Check<'s> {
    fn place(&self) -> String {
        let shown: String = self.place.iter().flat_map(|part| ["/", part]).collect();
        let short: String = shown.chars().take(120).collect();
        format!("#{short}")
    }

    fn wrong<T>(&self, why: impl Into<String>) -> Result<T, FormatError> {
        Err(FormatError::Schema { place: self.place(), why: why.into() })
    }

    /// Goes into a part.
    fn within(
        &mut self,
        part: &'s str,
        check: impl FnOnce(&mut Check<'s>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        self.place.push(part);
        if self.place.len() > MAX_DEPTH {
            return Err(FormatError::TooLarge { what: "levels", found: self.place.len(), most: MAX_DEPTH });
        }
        check(self)?;
        self.place.pop();
        Ok(())
    }

    fn schema(&mut self, schema: &'s Value) -> Result<(), FormatError> {
        let map = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(map) => map,
            _ => return self.wrong("must be a schema: an object, true or false"),
        };
        self.level += 1;
        self.deepest = self.deepest.max(self.level);
        map.iter().try_for_each(|(key, value)| self.within(key, |check| check.keyword(map, key, value)))?;
        self.level -= 1;
        Ok(())
    }

    fn keyword(&mut self, schema: &'s Map<String, Value>, key: &str, value: &'s Value) -> Result<(), FormatError> {
        match key {
            "properties" | "patternProperties" | "$defs" | "definitions" => self.schemas_by_name(value),
            key if ANNOTATIONS.contains(&key) => Ok(()),
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => self.schemas(value),
            "items" if value.is_array() => self.schemas(value),
            "items" | "additionalItems" | "additionalProperties" => {
                let old = key == "additionalItems" || value.is_array();
                if old && schema.contains_key("prefixItems") {
                    return self.wrong("is of an older draft than prefixItems; use items for those that follow");
                }
                self.schema(value)
            }
            "const" => self.value(value),
            "enum" => match value.as_array().filter(|values| !values.is_empty()) {
                Some(values) => values.iter().try_for_each(|value| self.value(value)),
                None => self.wrong("must be an array with at least one value"),
            },
            "type" => {
                let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
                let some = |values: &Vec<Value>| !values.is_empty() && values.iter().all(known);
                if known(value) || value.as_array().is_some_and(some) {
                    return Ok(());
                }
                self.wrong(format!("must be one of {}, or an array of them", TYPES.join(", ")))
            }
            "$ref" => self.reference(value),
            "required" => match value.as_array() {
                Some(names) if names.iter().all(Value::is_string) => Ok(()),
                _ => self.wrong("must be an array of strings"),
            },
            "pattern" | "format" => match value.as_str() {
                Some(text) if text.len() <= MAX_PATTERN => Ok(()),
                Some(text) => {
                    Err(FormatError::TooLarge { what: "bytes in a pattern", found: text.len(), most: MAX_PATTERN })
                }
                None => self.wrong("must be a string"),
            },
            "minProperties" => {
                // Keys that are not named may come twice: of those, no more than one can be counted on.
                let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len) as u64;
                match value.as_u64() {
                    Some(least) if least <= required + 1 => Ok(()),
                    Some(_) => self.wrong("asks for more keys than are named; name them in required"),
                    None => self.wrong("must be an integer from 0 up"),
                }
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "maxProperties" => {
                match value.as_u64().filter(|number| u32::try_from(*number).is_ok()) {
                    Some(_) => Ok(()),
                    None => self.wrong("must be an integer from 0 to 4294967295"),
                }
            }
            // Of draft 4.
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => Ok(()),
            "multipleOf" if digits(value) > MAX_DIGITS => {
                self.wrong(format!("has more than {MAX_DIGITS} digits; check that of the answer yourself"))
            }
            "multipleOf" if value.as_f64().is_none_or(|number| number <= 0.0) => self.wrong("must be a number above 0"),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => match value {
                Value::Number(_) => self.value(value),
                _ => self.wrong("must be a number"),
            },
            key => {
                self.place.pop();
                Err(FormatError::Keyword { keyword: key.chars().take(80).collect(), place: self.place() })
            }
        }
    }

    fn schemas(&mut self, value: &'s Value) -> Result<(), FormatError> {
        match value.as_array().filter(|schemas| !schemas.is_empty()) {
            Some(schemas) => schemas.iter().try_for_each(|schema| self.within("*", |check| check.schema(schema))),
            None => self.wrong("must be an array with at least one schema"),
        }
    }

    fn schemas_by_name(&mut self, value: &'s Value) -> Result<(), FormatError> {
        let Some(schemas) = value.as_object() else { return self.wrong("must be an object of schemas") };
        schemas.iter().try_for_each(|(name, schema)| self.within(name, |check| check.schema(schema)))
    }

    fn reference(&mut self, value: &'s Value) -> Result<(), FormatError> {
        match value.as_str() {
            Some(place) if place == "#" || place.starts_with("#/") => {
                self.refs.insert(place);
                Ok(())
            }
            _ => self.wrong("must be a place in this schema, such as #/$defs/name: nothing is fetched"),
        }
    }

    /// A value that an answer may have.
    fn value(&mut self, value: &'s Value) -> Result<(), FormatError> {
        match value {
            Value::Number(number) if number.as_f64().is_none_or(|number| number.abs() >= MAX_INTEGER) => {
                self.wrong(format!("has {number}, and numbers must be between -2^53 and 2^53"))
            }
            Value::Array(values) => values.iter().try_for_each(|value| self.within("*", |check| check.value(value))),
            Value::Object(map) => map.iter().try_for_each(|(key, value)| self.within(key, |check| check.value(value))),
            _ => Ok(()),
        }
    }
}

/// Digits of a number, but for zeros around them.
fn digits(value: &Value) -> usize {
    let Some(number) = value.as_f64() else { return 0 };
    let all: String = number.to_string().chars().filter(char::is_ascii_digit).collect();
    all.trim_matches('0').len()
}
