//! Generator of random schemas, and a checker of values that shares no code with the crate.

use serde_json::{Map, Value, json};

/// Random numbers with a seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % most
    }

    fn chance(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// A pattern, and a function that matches it.
type Pattern = (&'static str, fn(&str) -> bool);

const PATTERNS: [Pattern; 3] = [
    ("^[a-z]{2,5}$", |text| (2..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase())),
    ("^(yes|no)!?$", |text| ["yes", "no", "yes!", "no!"].contains(&text)),
    ("^\\d{3}-\\d{2}$", |text| {
        let digit = |(at, b): (usize, u8)| if at == 3 { b == b'-' } else { b.is_ascii_digit() };
        text.len() == 6 && text.bytes().enumerate().all(digit)
    }),
];

/// Types of the values of random schemas.
const TYPES: [&str; 6] = ["array", "boolean", "number", "null", "object", "string"];

const NAMES: [&str; 8] = ["name", "age", "größe", "a b", "\"q\"", "x\n", "tags", "id"];

/// Returns a random schema whose answers are finite.
pub fn schema(random: &mut Random) -> Value {
    let mut schema = object(random, 0);
    if random.below(4) == 0 {
        let definition = value(random, 2);
        schema["$defs"] = json!({ "part": definition });
        schema["properties"]["part"] = json!({ "$ref": "#/$defs/part" });
        schema["required"].as_array_mut().unwrap().push("part".into());
    }
    schema
}

fn value(random: &mut Random, depth: usize) -> Value {
    let kinds = if depth < 3 { 14 } else { 10 };
    match random.below(kinds) {
        0 => json!({ "type": "boolean" }),
        1 => json!({ "type": "null", "description": "nothing" }),
        2 => {
            let least = random.below(2000) as i64 - 1000;
            json!({ "type": "integer", "minimum": least, "maximum": least + random.below(5000) as i64 })
        }
        3 => json!({ "type": "integer", "exclusiveMinimum": 0, "maximum": 100, "multipleOf": 5 }),
        4 => json!({ "type": "string", "maxLength": random.below(12) }),
        5 => {
            let least = random.below(4);
            json!({ "type": "string", "minLength": least, "maxLength": least + random.below(6) })
        }
        6 => json!({ "type": "string", "pattern": PATTERNS[random.below(PATTERNS.len())].0 }),
        7 => json!({ "enum": ["red", "grün", "b\"l\\ue", 7, -1.5, null, true, [1, "x"], { "k": [] }] }),
        8 => json!({ "const": (["one", "zwei", ""])[random.below(3)] }),
        9 => json!({ "type": (["boolean", "null"]), "title": "maybe" }),
        10 => array(random, depth),
        11 => json!({ "anyOf": [value(random, depth + 1), value(random, depth + 1)] }),
        12 => json!({ "oneOf": [{ "type": "boolean" }, { "type": "string", "maxLength": 5 }, array(random, depth)] }),
        _ => object(random, depth + 1),
    }
}

fn array(random: &mut Random, depth: usize) -> Value {
    let least = random.below(3);
    let mut array = json!({ "type": "array", "items": value(random, depth + 1), "minItems": least });
    array["maxItems"] = json!(least + random.below(3));
    if random.below(3) == 0 {
        array["prefixItems"] = json!([value(random, depth + 1), value(random, depth + 1)]);
    }
    array
}

fn object(random: &mut Random, depth: usize) -> Value {
    let mut properties = Map::new();
    for _ in 0..=random.below(4) {
        properties.insert(NAMES[random.below(NAMES.len())].into(), value(random, depth + 1));
    }
    let all: Vec<String> = properties.keys().cloned().collect();
    let required: Vec<&String> = all.iter().filter(|_| random.chance()).collect();
    let mut object = json!({ "type": "object", "additionalProperties": false });
    let may_have_more = required.len() == all.len() && random.chance();
    if may_have_more {
        object["patternProperties"] = json!({ PATTERNS[1].0: { "type": "boolean" } });
        object["maxProperties"] = json!(all.len() + 3);
    }
    object["required"] = json!(required);
    object["properties"] = Value::Object(properties);
    if !may_have_more && random.below(5) == 0 {
        object["allOf"] = json!([{ "properties": { "id": { "type": TYPES } } }]);
    }
    object
}

/// Returns the error of a value, if there is one. `root` is the whole schema.
pub fn fault(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let Value::Object(keywords) = schema else {
        return (schema == &json!(false)).then(|| format!("{value} where nothing may be"));
    };
    let wrong = |keyword: &str| Some(format!("{value} breaks {keyword} of {schema}"));
    let fits = |schema: &Value| fault(root, schema, value).is_none();
    let each = |schemas: &Value| schemas.as_array().unwrap().iter().filter(|schema| fits(schema)).count();
    let number = |keyword: &Value| keyword.as_f64().unwrap();
    for (keyword, asked) in keywords {
        let sound = match (keyword.as_str(), value) {
            ("type", _) => match asked {
                Value::Array(types) => types.iter().any(|name| is_of(name, value)),
                name => is_of(name, value),
            },
            ("const", _) => asked == value,
            ("enum", _) => asked.as_array().unwrap().contains(value),
            ("anyOf", _) => each(asked) > 0,
            ("oneOf", _) => each(asked) == 1,
            ("allOf", _) => each(asked) == asked.as_array().unwrap().len(),
            ("$ref", _) => fits(root.pointer(asked.as_str().unwrap().trim_start_matches('#')).unwrap()),
            ("minimum", Value::Number(n)) => n.as_f64().unwrap() >= number(asked),
            ("maximum", Value::Number(n)) => n.as_f64().unwrap() <= number(asked),
            ("exclusiveMinimum", Value::Number(n)) => n.as_f64().unwrap() > number(asked),
            ("multipleOf", Value::Number(n)) => n.as_f64().unwrap() % number(asked) == 0.0,
            ("minLength", Value::String(text)) => text.chars().count() as f64 >= number(asked),
            ("maxLength", Value::String(text)) => text.chars().count() as f64 <= number(asked),
            ("pattern", Value::String(text)) => has(asked.as_str().unwrap(), text),
            ("patternProperties", Value::Object(map)) => asked.as_object().unwrap().iter().all(|(pattern, schema)| {
                let mut those = map.iter().filter(|(name, _)| has(pattern, name));
                those.all(|(_, value)| fault(root, schema, value).is_none())
            }),
            ("minItems", Value::Array(items)) => items.len() as f64 >= number(asked),
            ("maxItems", Value::Array(items)) => items.len() as f64 <= number(asked),
            ("prefixItems", Value::Array(items)) => {
                let pairs = asked.as_array().unwrap().iter().zip(items);
                pairs.into_iter().all(|(schema, item)| fault(root, schema, item).is_none())
            }
            ("items", Value::Array(items)) => {
                let before = keywords.get("prefixItems").map_or(0, |prefix| prefix.as_array().unwrap().len());
                items.iter().skip(before).all(|item| fault(root, asked, item).is_none())
            }
            ("required", Value::Object(map)) => {
                asked.as_array().unwrap().iter().all(|name| map.contains_key(name.as_str().unwrap()))
            }
            ("maxProperties", Value::Object(map)) => map.len() as f64 <= number(asked),
            ("properties", Value::Object(map)) => {
                let known = |(name, value)| asked.get(name).is_none_or(|schema| fault(root, schema, value).is_none());
                map.iter().all(known)
            }
            ("additionalProperties", Value::Object(map)) => {
                let named = keywords.get("properties");
                let patterns = keywords.get("patternProperties").and_then(Value::as_object);
                let others = map.iter().filter(|(name, _)| named.is_none_or(|named| named.get(name).is_none()));
                let others = others.filter(|(name, _)| !patterns.is_some_and(|all| all.keys().any(|p| has(p, name))));
                others.into_iter().all(|(_, value)| fault(root, asked, value).is_none())
            }
            ("$defs" | "title" | "description", _) => true,
            (
                "minimum"
                | "maximum"
                | "exclusiveMinimum"
                | "multipleOf"
                | "minLength"
                | "maxLength"
                | "pattern"
                | "minItems"
                | "maxItems"
                | "prefixItems"
                | "items"
                | "required"
                | "maxProperties"
                | "properties"
                | "additionalProperties"
                | "patternProperties",
                _,
            ) => true,
            (other, _) => panic!("the checker does not know {other}"),
        };
        if !sound {
            return wrong(keyword);
        }
    }
    None
}

/// Returns whether a text matches a pattern.
fn has(pattern: &str, text: &str) -> bool {
    PATTERNS.iter().find(|(known, _)| *known == pattern).is_some_and(|(_, has)| has(text))
}

fn is_of(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the checker does not know the type {other}"),
    }
}
