//! The supported JSON schemas: those in which every keyword can be enforced.
//!
//! - Values: `type`, `const`, `enum`, `anyOf`, `allOf`, `$ref` within the document, and `oneOf` where no two of its
//!   alternatives can hold at once.
//! - Objects: `properties`, `required`, `additionalProperties`, `patternProperties`, `maxProperties`, and
//!   `minProperties` as far as repeated keys cannot satisfy it. Named properties come in the schema's order. An object
//!   with `properties` has no other keys, unless `additionalProperties` or `patternProperties` allow some, or the
//!   object combines several schemas (`allOf`, `anyOf` beside `properties`, and so on).
//! - Arrays: `items`, `prefixItems`, `additionalItems`, `minItems`, `maxItems`.
//! - Strings: `minLength`, `maxLength`, `pattern` without look-around, back-references and word boundaries, and
//!   `format` if it is a known one. A pattern is enforced in the readings of both ECMA-262 and Python: `\d` is an ASCII
//!   digit, and `\D` excludes the digits of all scripts.
//! - Numbers: `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`.
//!
//! Titles, descriptions, keywords that begin with `x-`, unknown formats and similar annotations are ignored. Every
//! other keyword is refused by name. A schema with a part that no answer could finish is refused as well. Definitions
//! are read only if they are referred to. A schema may have [`MAX_BYTES`] bytes, [`MAX_DEPTH`] levels, and
//! [`MAX_LEVELS`] levels times references.

use std::collections::HashMap;

use llguidance::JsonCompileOptions;
use llguidance::api::TopLevelGrammar;
use serde_json::{Map, Value};

use crate::error::FormatError;
use crate::one_of;
use crate::pattern::{self, Use};
use crate::pointer;

/// Most bytes of a schema.
pub const MAX_BYTES: usize = 64 << 10;
/// Most levels of a schema.
pub const MAX_DEPTH: usize = 64;
/// Most levels times references: this bounds the stack, of which browsers have less.
pub const MAX_LEVELS: usize = if cfg!(target_arch = "wasm32") { 128 } else { 1024 };
/// Most bytes of a schema's rewritten patterns: Unicode classes are long.
const MAX_WRITTEN: usize = 1 << 20;
/// Most schemas that are examined to find the one that no answer follows.
const MAX_PARTS: usize = 32;
/// Most bytes of a pattern.
const MAX_PATTERN: usize = 4096;
/// Most digits of `multipleOf`: each remainder takes memory.
const MAX_DIGITS: usize = 3;
/// Magnitude from which on integers are rounded (2^53).
const MAX_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Whitespace between two tokens of JSON: none, a space, or a line break with an indent. The bound keeps a confused
/// model from writing whitespace without end.
const SPACE: &str = r" |\n[ \t]{0,32}";
/// Characters that may follow a backslash. Without `u` a string can be written in one way only, so a named key cannot
/// appear in another spelling.
const ESCAPES: &str = "nrbtf\\\"";

/// Keywords that do not constrain an answer. Definitions are read when they are referred to.
const ANNOTATIONS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "nullable",
    "readOnly",
    "title",
    "writeOnly",
    "xml",
];
/// Annotations that only the whole document may have.
const OF_DOCUMENT: &[&str] = &["$id", "$schema", "id"];
const TYPES: &[&str] = &["null", "boolean", "integer", "number", "string", "array", "object"];
/// Formats of strings that are enforced. Others are annotations.
const FORMATS: &[&str] = &["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"];
/// Keywords that combine a schema from others, or from values.
const COMBINE: &[&str] = &["$ref", "allOf", "anyOf", "const", "enum", "oneOf"];
/// Keywords of objects that concern their keys.
const OF_OBJECTS: &[&str] = &[
    "additionalProperties",
    "maxProperties",
    "minProperties",
    "patternProperties",
    "properties",
    "required",
    "unevaluatedProperties",
];
/// Keywords that say which keys objects may have besides named properties.
const OTHER_KEYS: &[&str] = &["additionalProperties", "patternProperties", "unevaluatedProperties"];

/// Returns the grammar of a schema.
///
/// *Errors*: a schema that cannot be enforced.
pub(crate) fn grammar(schema: &Value) -> Result<TopLevelGrammar, FormatError> {
    document(schema).map(TopLevelGrammar::from_json_schema)
}

/// Rewrites a schema for the library.
///
/// *Errors*: those of [`grammar`].
pub(crate) fn document(schema: &Value) -> Result<Value, FormatError> {
    let mut writer = Writer::new(schema)?;
    let top = writer.schema(schema, true)?;
    let definitions = writer.definitions()?;
    Ok(whole(top, &definitions))
}

/// Returns each schema of a document as a document of its own for the library, with its place. Inner schemas come
/// before outer ones. At most `MAX_PARTS` are returned.
///
/// *Errors*: those of [`grammar`].
pub(crate) fn parts(schema: &Value) -> Result<Vec<(String, Value)>, FormatError> {
    let mut writer = Writer { parts: Some(Vec::new()), ..Writer::new(schema)? };
    writer.schema(schema, true)?;
    let definitions = writer.definitions()?;
    let parts = writer.parts.unwrap_or_default();
    Ok(parts.into_iter().map(|(place, part)| (place, whole(part, &definitions))).collect())
}

/// Adds the definitions and the library's options to a schema.
fn whole(top: Value, definitions: &Map<String, Value>) -> Value {
    let mut document = match top {
        Value::Object(map) => map,
        other => Map::from_iter([("allOf".to_owned(), Value::from(vec![other]))]),
    };
    if !definitions.is_empty() {
        document.insert("$defs".into(), definitions.clone().into());
    }
    let options = JsonCompileOptions {
        whitespace_pattern: Some(SPACE.into()),
        json_allowed_escapes: Some(ESCAPES.into()),
        ..JsonCompileOptions::default()
    };
    let mut document = Value::Object(document);
    options.apply_to(&mut document);
    document
}

/// Returns whether an object of this schema has no keys but those that it names. `closes` says whether no schema around
/// this one adds keys.
pub(crate) fn is_closed(schema: &Map<String, Value>, closes: bool) -> bool {
    let has = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
    schema.get("additionalProperties") == Some(&Value::Bool(false)) && !schema.contains_key("patternProperties")
        || closes && schema.contains_key("properties") && !has(OTHER_KEYS) && !has(COMBINE)
}

/// Rewrites a schema for the library.
struct Writer<'s> {
    root: &'s Value,
    /// Place of the current schema.
    place: Vec<String>,
    /// Current level of nested schemas, and the largest so far.
    level: usize,
    deepest: usize,
    /// Names of the places that are referred to. The flag says whether the schema there is closed.
    refs: HashMap<(String, bool), usize>,
    /// References whose schemas were not written yet.
    pending: Vec<(String, bool)>,
    /// Bytes of rewritten patterns so far.
    written: usize,
    /// The written schemas, if the caller needs them.
    parts: Option<Vec<(String, Value)>>,
}

impl<'s> Writer<'s> {
    fn new(root: &'s Value) -> Result<Writer<'s>, FormatError> {
        let bytes = root.to_string().len();
        if bytes > MAX_BYTES {
            return Err(FormatError::TooLarge { what: "bytes", found: bytes, most: MAX_BYTES });
        }
        let writer = Writer {
            root,
            place: Vec::new(),
            level: 0,
            deepest: 0,
            refs: HashMap::new(),
            pending: Vec::new(),
            written: 0,
            parts: None,
        };
        match root {
            Value::Bool(false) => writer.wrong("allows nothing; give one that allows something"),
            Value::Bool(true) | Value::Object(_) => Ok(writer),
            _ => writer.wrong("must be an object"),
        }
    }

    fn place(&self) -> String {
        let short: String = pointer::written(&self.place).chars().take(120).collect();
        format!("#{short}")
    }

    fn wrong<T>(&self, why: impl Into<String>) -> Result<T, FormatError> {
        Err(FormatError::Schema { place: self.place(), why: why.into() })
    }

    /// Writes a part, whose place is one level deeper.
    fn within<T>(
        &mut self,
        part: &str,
        write: impl FnOnce(&mut Writer<'s>) -> Result<T, FormatError>,
    ) -> Result<T, FormatError> {
        self.place.push(part.to_owned());
        if self.place.len() > MAX_DEPTH {
            return Err(FormatError::TooLarge { what: "levels", found: self.place.len(), most: MAX_DEPTH });
        }
        let written = write(self)?;
        self.place.pop();
        Ok(written)
    }

    /// Writes the definitions, under the names that [`Self::reference`] gave.
    fn definitions(&mut self) -> Result<Map<String, Value>, FormatError> {
        let mut definitions = Map::new();
        while let Some((place, closes)) = self.pending.pop() {
            let name = self.refs[&(place.clone(), closes)].to_string();
            self.place = pointer::parts(&place);
            let found = pointer::find(self.root, &self.place);
            let Some(schema) = found else { return self.wrong("is referred to, and is not found") };
            let written = self.schema(schema, closes)?;
            definitions.insert(name, written);
        }
        let levels = self.deepest * (self.refs.len() + 1);
        if levels > MAX_LEVELS {
            return Err(FormatError::TooLarge { what: "levels times references", found: levels, most: MAX_LEVELS });
        }
        Ok(definitions)
    }

    fn schema(&mut self, schema: &'s Value, closes: bool) -> Result<Value, FormatError> {
        let map = match schema {
            Value::Bool(_) => return Ok(schema.clone()),
            Value::Object(map) => map,
            _ => return self.wrong("must be a schema: an object, true or false"),
        };
        self.level += 1;
        self.deepest = self.deepest.max(self.level);
        // An object that combines several schemas with keys is not closed: each schema would forbid the keys of the
        // others.
        let combines = map.keys().filter(|key| COMBINE.contains(&key.as_str())).count();
        let has_keys = map.keys().any(|key| OF_OBJECTS.contains(&key.as_str()));
        let within = closes && combines == 1 && !has_keys;
        let (mut combined, mut simple) = (Map::new(), Map::new());
        let mut is_simple_first = None;
        for (key, value) in map {
            let Some((key, value)) = self.within(key, |writer| writer.keyword(map, key, value, within))? else {
                continue;
            };
            let is_simple = !COMBINE.contains(&key.as_str());
            is_simple_first.get_or_insert(is_simple);
            let to = if is_simple { &mut simple } else { &mut combined };
            to.insert(key, value);
        }
        name_keys(&mut simple);
        if is_closed(map, closes) {
            self.close(map, &mut simple);
        }
        // The library reads simple keywords that are not in sequence as separate schemas.
        let (mut written, then) = if is_simple_first == Some(true) { (simple, combined) } else { (combined, simple) };
        written.extend(then);
        self.level -= 1;
        let place = self.place();
        if let Some(parts) = self.parts.as_mut().filter(|parts| parts.len() < MAX_PARTS) {
            parts.push((place, written.clone().into()));
        }
        Ok(Value::Object(written))
    }

    /// Restricts the keys of an object to the named ones.
    fn close(&self, schema: &Map<String, Value>, written: &mut Map<String, Value>) {
        if schema.contains_key("additionalProperties") {
            return;
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        if let Some(Value::Object(properties)) = written.get_mut("properties") {
            for name in required.filter_map(Value::as_str) {
                properties.entry(name).or_insert(Value::Bool(true));
            }
        }
        written.insert("additionalProperties".into(), false.into());
    }

    /// Writes a keyword, unless it is an annotation. `within` says whether the schemas that this one combines are
    /// closed.
    fn keyword(
        &mut self,
        schema: &'s Map<String, Value>,
        key: &str,
        value: &'s Value,
        within: bool,
    ) -> Result<Option<(String, Value)>, FormatError> {
        let written = match key {
            key if ANNOTATIONS.contains(&key) || key.starts_with("x-") => return Ok(None),
            key if OF_DOCUMENT.contains(&key) && self.place.len() == 1 => return Ok(None),
            "properties" => self.schemas_by_name(value, |writer, name| {
                writer.text(name)?;
                Ok(name.to_owned())
            })?,
            "patternProperties" => self.schemas_by_name(value, |writer, name| writer.pattern(name, Use::Key))?,
            "allOf" => self.schemas(value, within && value.as_array().is_some_and(|schemas| schemas.len() == 1))?,
            "anyOf" => self.schemas(value, within)?,
            "oneOf" => {
                let schemas = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let root = self.root;
                let apart = |closes| one_of::are_apart(root, schemas, closes);
                let closes = within && apart(true);
                let written = self.schemas(value, closes)?;
                // If no two alternatives can hold at once, `anyOf` means the same.
                let is_any = !schema.contains_key("anyOf") && (closes || apart(false));
                return Ok(Some((if is_any { "anyOf" } else { key }.into(), written)));
            }
            "prefixItems" => self.schemas(value, true)?,
            "items" if value.is_array() => {
                if schema.contains_key("prefixItems") {
                    return self.wrong("is of an older draft than prefixItems; use items for those that follow");
                }
                self.schemas(value, true)?
            }
            "additionalItems" if schema.contains_key("prefixItems") => {
                return self.wrong("is of an older draft than prefixItems; use items for those that follow");
            }
            "items" | "additionalItems" | "additionalProperties" => self.schema(value, true)?,
            // Without these keywords beside it, it means `additionalProperties`.
            "unevaluatedProperties"
                if !COMBINE.iter().chain(&["additionalProperties"]).any(|other| schema.contains_key(*other)) =>
            {
                return Ok(Some(("additionalProperties".into(), self.schema(value, true)?)));
            }
            "uniqueItems" if value == &Value::Bool(false) => return Ok(None),
            "const" => self.value(value)?,
            "enum" => match value.as_array().filter(|values| !values.is_empty()) {
                Some(values) => values.iter().map(|value| self.value(value)).collect::<Result<Vec<_>, _>>()?.into(),
                None => return self.wrong("must be an array with at least one value"),
            },
            "type" => {
                let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
                let some = |values: &Vec<Value>| !values.is_empty() && values.iter().all(known);
                if !known(value) && !value.as_array().is_some_and(some) {
                    return self.wrong(format!("must be one of {}, or an array of them", TYPES.join(", ")));
                }
                value.clone()
            }
            "$ref" => self.reference(value, within)?,
            "required" => match value.as_array() {
                Some(names) if names.iter().all(Value::is_string) => {
                    names.iter().filter_map(Value::as_str).try_for_each(|name| self.text(name))?;
                    value.clone()
                }
                _ => return self.wrong("must be an array of strings"),
            },
            "pattern" => match value.as_str() {
                Some(pattern) => self.pattern(pattern, Use::Value)?.into(),
                None => return self.wrong("must be a string"),
            },
            "format" => match value.as_str() {
                Some(format) if FORMATS.contains(&format) => value.clone(),
                Some(_) => return Ok(None),
                None => return self.wrong("must be a string"),
            },
            "minProperties" => {
                // Keys that are not named may be repeated, so only one of them counts.
                let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len) as u64;
                match integer(value) {
                    Some(least) if least <= required + 1 => least.into(),
                    Some(_) => return self.wrong("asks for more keys than are named; name them in required"),
                    None => return self.wrong("must be an integer from 0 up"),
                }
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "maxProperties" => {
                match integer(value).filter(|number| u32::try_from(*number).is_ok()) {
                    Some(number) => number.into(),
                    None => return self.wrong("must be an integer from 0 to 4294967295"),
                }
            }
            // A boolean is the form of draft 4.
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => value.clone(),
            "multipleOf" if digits(value) > MAX_DIGITS => {
                return self.wrong(format!(
                    "has more than {MAX_DIGITS} digits; remove it and validate that part of the answer yourself"
                ));
            }
            "multipleOf" if value.as_f64().is_none_or(|number| number <= 0.0) => {
                return self.wrong("must be a number above 0");
            }
            // The library does not enforce exclusive bounds at the ends of negative ranges, so they are replaced by
            // slightly narrower inclusive ones.
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_number() && !is_integral(schema) => {
                let bound = value.as_f64().unwrap_or_default();
                let step = (bound.abs() * 1e-12).max(1e-6);
                let is_least = key == "exclusiveMinimum";
                let (beside, narrowed) = if is_least { ("minimum", bound + step) } else { ("maximum", bound - step) };
                let other = schema.get(beside).and_then(Value::as_f64);
                let stricter =
                    other.map_or(narrowed, |other| if is_least { narrowed.max(other) } else { narrowed.min(other) });
                return Ok(Some((beside.into(), stricter.into())));
            }
            // The exclusive bound includes this one.
            "minimum" if schema.get("exclusiveMinimum").is_some_and(Value::is_number) && !is_integral(schema) => {
                return Ok(None);
            }
            "maximum" if schema.get("exclusiveMaximum").is_some_and(Value::is_number) && !is_integral(schema) => {
                return Ok(None);
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => match value {
                Value::Number(_) => self.value(value)?,
                _ => return self.wrong("must be a number"),
            },
            key => {
                self.place.pop();
                return Err(FormatError::Keyword { keyword: key.chars().take(80).collect(), place: self.place() });
            }
        };
        Ok(Some((key.to_owned(), written)))
    }

    fn schemas(&mut self, value: &'s Value, closes: bool) -> Result<Value, FormatError> {
        match value.as_array().filter(|schemas| !schemas.is_empty()) {
            Some(schemas) => {
                let each = schemas.iter().enumerate();
                let each =
                    each.map(|(at, schema)| self.within(&at.to_string(), |writer| writer.schema(schema, closes)));
                each.collect::<Result<Vec<_>, _>>().map(Value::from)
            }
            None => self.wrong("must be an array with at least one schema"),
        }
    }

    fn schemas_by_name(
        &mut self,
        value: &'s Value,
        key: impl Fn(&mut Writer<'s>, &str) -> Result<String, FormatError>,
    ) -> Result<Value, FormatError> {
        let Some(schemas) = value.as_object() else { return self.wrong("must be an object of schemas") };
        let mut written = Map::new();
        for (name, schema) in schemas {
            let (key, schema) = self.within(name, |writer| Ok((key(writer, name)?, writer.schema(schema, true)?)))?;
            if written.insert(key, schema).is_some() {
                return self.wrong("has one pattern twice; put their schemas together with allOf");
            }
        }
        Ok(written.into())
    }

    fn reference(&mut self, value: &'s Value, closes: bool) -> Result<Value, FormatError> {
        let place = value.as_str().and_then(pointer::of_reference);
        let Some(place) = place else {
            return self.wrong("must be a place in this schema, such as #/$defs/name: nothing is fetched");
        };
        if pointer::find(self.root, &pointer::parts(&place)).is_none() {
            return self.wrong("refers to a place that is not found in this schema");
        }
        let next = self.refs.len();
        let name = *self.refs.entry((place.clone(), closes)).or_insert_with(|| {
            self.pending.push((place, closes));
            next
        });
        Ok(format!("#/$defs/{name}").into())
    }

    fn pattern(&mut self, pattern: &str, asked: Use) -> Result<String, FormatError> {
        if pattern.len() > MAX_PATTERN {
            return Err(FormatError::TooLarge { what: "bytes in a pattern", found: pattern.len(), most: MAX_PATTERN });
        }
        let written = match pattern::written(pattern, asked) {
            Ok(written) => written,
            Err(why) => return self.wrong(why),
        };
        self.written += written.len();
        if self.written > MAX_WRITTEN {
            return Err(FormatError::TooLarge { what: "bytes in patterns", found: self.written, most: MAX_WRITTEN });
        }
        Ok(written)
    }

    /// Checks that answers can have a text.
    fn text(&self, text: &str) -> Result<(), FormatError> {
        match text.chars().find(|c| !pattern::is_writable(*c)) {
            Some(c) => self.wrong(format!("has the control character {c:?}, which answers do not have; leave it out")),
            None => Ok(()),
        }
    }

    /// Checks and writes a value that an answer may have.
    fn value(&mut self, value: &'s Value) -> Result<Value, FormatError> {
        Ok(match value {
            Value::Number(number) => match number.as_f64() {
                Some(float) if float.abs() >= MAX_INTEGER => {
                    return self.wrong(format!("has {number}, and numbers must be between -2^53 and 2^53"));
                }
                Some(float) if float.fract() == 0.0 => Value::from(float as i64),
                _ => value.clone(),
            },
            Value::Array(values) => {
                let each = values.iter().map(|value| self.within("*", |writer| writer.value(value)));
                each.collect::<Result<Vec<_>, _>>()?.into()
            }
            Value::Object(map) => {
                let mut written = Map::new();
                for (key, value) in map {
                    self.text(key)?;
                    written.insert(key.clone(), self.within(key, |writer| writer.value(value))?);
                }
                written.into()
            }
            Value::String(text) => {
                self.text(text)?;
                value.clone()
            }
            Value::Null | Value::Bool(_) => value.clone(),
        })
    }
}

/// Turns patterns that match a single key into properties: beside a property of that name, the library would offer a
/// key that can never be completed.
fn name_keys(simple: &mut Map<String, Value>) {
    let Some(Value::Object(patterns)) = simple.get_mut("patternProperties") else { return };
    let mut named = Vec::new();
    patterns.retain(|pattern, schema| match pattern::only_text(pattern) {
        Some(name) => {
            named.push((name, schema.take()));
            false
        }
        None => true,
    });
    if patterns.is_empty() {
        simple.shift_remove("patternProperties");
    }
    if named.is_empty() {
        return;
    }
    let properties = simple.entry("properties").or_insert_with(|| Map::new().into());
    for (name, schema) in named {
        let also = &mut properties[name];
        *also = if also.is_null() { schema } else { serde_json::json!({ "allOf": [also.take(), schema] }) };
    }
}

/// Returns a count, which may be written as `5.0`.
fn integer(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0)?;
        (0.0..MAX_INTEGER).contains(&float).then_some(float as u64)
    })
}

/// Returns whether all numbers that follow a schema are integers.
fn is_integral(schema: &Map<String, Value>) -> bool {
    let kinds = schema
        .get("type")
        .into_iter()
        .flat_map(|kind| kind.as_array().map_or(std::slice::from_ref(kind), Vec::as_slice));
    let mut kinds = kinds.filter_map(Value::as_str).peekable();
    kinds.peek().is_some() && kinds.all(|kind| kind != "number")
}

/// Returns the number of significant digits of a number.
fn digits(value: &Value) -> usize {
    let Some(number) = value.as_f64() else { return 0 };
    let all: String = number.to_string().chars().filter(char::is_ascii_digit).collect();
    all.trim_matches('0').len()
}
