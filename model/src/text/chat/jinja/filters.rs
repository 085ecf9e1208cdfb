//! Filters: names after `|`.

use super::Fault;
use super::budget::CELL;
use super::machine::{Given, Machine};
use super::value::Value;
use super::{checks, format, json, lists, numbers, strings, subscript};

pub(super) fn apply(machine: &mut Machine<'_>, name: &str, value: Value, given: &Given) -> Result<Value, Fault> {
    // A filter may apply other filters, so it counts as a level.
    machine.deeper(|machine| match of_text(machine, name, &value, given)? {
        Some(result) => Ok(result),
        None => match of_values(machine, name, &value, given)? {
            Some(result) => Ok(result),
            None => of_elements(machine, name, &value, given),
        },
    })
}

/// Applies a filter of text.
#[inline(never)]
fn of_text(machine: &mut Machine<'_>, name: &str, value: &Value, given: &Given) -> Result<Option<Value>, Fault> {
    const NAMES: [&str; 12] = [
        "capitalize",
        "e",
        "escape",
        "format",
        "indent",
        "lower",
        "replace",
        "split",
        "string",
        "title",
        "trim",
        "upper",
    ];
    if !NAMES.contains(&name) {
        return Ok(None);
    }
    let text = machine.text(value)?;
    let budget = &mut machine.budget;
    Ok(Some(match name {
        "capitalize" => strings::capitalized(&text, false, budget)?,
        "title" => strings::capitalized(&text, true, budget)?,
        "e" | "escape" => strings::escape(&text, budget)?,
        "format" => format::filter(&text, given, budget)?,
        "lower" => strings::cased(&text, false, budget)?,
        "upper" => strings::cased(&text, true, budget)?,
        "trim" => strings::strip(&text, given.get(0, "chars"), (true, true), budget)?,
        "replace" => {
            let (from, to) = (given.require(0, "old")?.as_str()?, given.require(1, "new")?.as_str()?);
            strings::replace(&text, from, to, given.int(2, "count", -1)?, budget)?
        }
        "split" => {
            let separator = given.get(0, "sep").map(Value::as_str).transpose()?;
            let most = given.int(1, "maxsplit", -1)?;
            strings::split(&text, separator.map(|separator| &**separator), most, false, budget)?
        }
        "indent" => {
            let prefix = strings::prefix(given.get(0, "width"), budget)?;
            let (first, blank) = (given.flag(1, "first", false), given.flag(2, "blank", false));
            strings::indent(&text, &prefix, first, blank, budget)?
        }
        _ => Value::Str(text.into()),
    }))
}

/// Applies a filter of a single value.
#[inline(never)]
fn of_values(machine: &mut Machine<'_>, name: &str, value: &Value, given: &Given) -> Result<Option<Value>, Fault> {
    let budget = &mut machine.budget;
    Ok(Some(match name {
        "safe" => value.clone(),
        "default" | "d" => {
            let missing = match value {
                Value::Undefined => true,
                other => given.flag(1, "boolean", false) && !other.is_true(),
            };
            let default = || given.get(0, "default_value").cloned().unwrap_or_else(|| Value::str(""));
            if missing { default() } else { value.clone() }
        }
        "abs" => numbers::magnitude(value)?,
        "bool" => Value::Bool(value.is_true()),
        "int" => numbers::to_int(value, given.get(0, "default").cloned().unwrap_or(Value::Int(0)), budget)?,
        "float" => numbers::to_float(value, given.get(0, "default").cloned().unwrap_or(Value::Float(0.0)), budget)?,
        "round" => {
            let method = match given.get(1, "method") {
                Some(method) => method.as_str()?,
                None => "common",
            };
            numbers::round(value, given.int(0, "precision", 0)?, method)?
        }
        "length" | "count" => lists::length(value, budget)?,
        "tojson" => {
            let style = json::Style::of(given, budget)?;
            Value::Str(json::written(value, &style, budget)?.into())
        }
        "items" => match value {
            Value::Map(map) => lists::pairs(map, budget)?,
            Value::Undefined => Value::list(Vec::new())?,
            other => return Err(Fault::new(format!("{} has no items", other.kind()))),
        },
        "attr" => {
            let name = given.require(0, "name")?.as_str()?.clone();
            machine.field(value, &name)?
        }
        _ => return Ok(None),
    }))
}

/// Applies a filter of a value's elements.
#[inline(never)]
fn of_elements(machine: &mut Machine<'_>, name: &str, value: &Value, given: &Given) -> Result<Value, Fault> {
    let attribute = given.named.iter().find(|(key, _)| **key == *"attribute").map(|(_, value)| value.clone());
    let unknown = || Fault::new(format!("there is no filter \"{name}\""));
    Ok(match name {
        "list" => match value.items(&mut machine.budget)? {
            items if items.is_tuple => {
                machine.budget.pay_each(items.len(), CELL)?;
                Value::list(items.to_vec())?
            }
            items => Value::List(items),
        },
        "first" => value.items(&mut machine.budget)?.first().cloned().unwrap_or_default(),
        "last" => value.items(&mut machine.budget)?.last().cloned().unwrap_or_default(),
        "reverse" => lists::reversed(value, &mut machine.budget)?,
        "join" => {
            let separator = machine.text(given.get(0, "d").unwrap_or(&Value::Undefined))?;
            let values = match attribute.as_ref().or(given.positional.get(1)) {
                Some(attribute) => values(machine, value, attribute, None)?,
                None => value.clone(),
            };
            lists::join(&values, &separator, &mut machine.budget)?
        }
        "map" => match attribute {
            Some(attribute) => {
                let default = given.named.iter().find(|(key, _)| **key == *"default").map(|(_, value)| value);
                values(machine, value, &attribute, default)?
            }
            None => {
                let filter = given.require(0, "filter")?.as_str()?.clone();
                let rest = without(given, 1, machine)?;
                each(machine, value, |machine, item| apply(machine, &filter, item.clone(), &rest).map(Some))?
            }
        },
        "select" | "reject" => {
            let keeps = name == "select";
            chosen(machine, value, None, &given.positional, keeps)?
        }
        "selectattr" | "rejectattr" => {
            let attribute = given.require(0, "attribute")?.clone();
            let rest = given.positional.get(1..).unwrap_or_default();
            chosen(machine, value, Some(&attribute), rest, name == "selectattr")?
        }
        "sum" => {
            let start = given.get(1, "start").cloned().unwrap_or(Value::Int(0));
            let values = match attribute.as_ref().or(given.positional.first()) {
                Some(attribute) => values(machine, value, attribute, None)?,
                None => value.clone(),
            };
            let items = values.items(&mut machine.budget)?;
            lists::sum(&items, start, &mut machine.budget)?
        }
        "sort" => {
            let (reverse, case_sensitive) = (given.flag(0, "reverse", false), given.flag(1, "case_sensitive", false));
            let keyed = keyed(machine, value, attribute.as_ref().or(given.positional.get(2)))?;
            let sorted = lists::sorted(keyed, case_sensitive, reverse, &mut machine.budget)?;
            Value::list(sorted.into_iter().map(|(_, item)| item).collect())?
        }
        "unique" => {
            let keyed = keyed(machine, value, attribute.as_ref())?;
            lists::unique(keyed, &mut machine.budget)?
        }
        "min" | "max" => {
            let keyed = keyed(machine, value, attribute.as_ref())?;
            lists::extreme(keyed, name == "max", &mut machine.budget)?
        }
        "dictsort" => {
            let Value::Map(map) = value else { return Err(Fault::new(format!("{} is no map", value.kind()))) };
            let by_value = matches!(given.get(1, "by"), Some(Value::Str(by)) if **by == *"value");
            let pairs = lists::pairs(map, &mut machine.budget)?;
            let keyed = keyed(machine, &pairs, Some(&Value::Int(i64::from(by_value))))?;
            let (sensitive, reverse) = (given.flag(0, "case_sensitive", false), given.flag(2, "reverse", false));
            let sorted = lists::sorted(keyed, sensitive, reverse, &mut machine.budget)?;
            Value::list(sorted.into_iter().map(|(_, item)| item).collect())?
        }
        "batch" | "slice" => {
            let items = value.items(&mut machine.budget)?;
            let size = given.require(0, "count")?.as_int()?;
            lists::pieces(&items, size, given.get(1, "fill_with"), name == "batch", &mut machine.budget)?
        }
        _ => return Err(unknown()),
    })
}

/// Applies a function to each element; keeps what it returns.
fn each<'t>(
    machine: &mut Machine<'t>,
    value: &Value,
    mut what: impl FnMut(&mut Machine<'t>, &Value) -> Result<Option<Value>, Fault>,
) -> Result<Value, Fault> {
    let items = value.items(&mut machine.budget)?;
    let mut out = Vec::new();
    for item in items.iter() {
        machine.budget.pay(CELL)?;
        out.extend(what(machine, item)?);
    }
    Value::list(out)
}

/// Returns an attribute of each element.
fn values(
    machine: &mut Machine<'_>,
    value: &Value,
    attribute: &Value,
    default: Option<&Value>,
) -> Result<Value, Fault> {
    each(machine, value, |machine, item| {
        let found = read(machine, item, attribute)?;
        Ok(Some(match (&found, default) {
            (Value::Undefined, Some(default)) => default.clone(),
            _ => found,
        }))
    })
}

/// Returns the elements that pass a test, or (with `keeps` false) those that fail. The test applies to an attribute if
/// one is named. Without a test, the value's truth counts.
fn chosen(
    machine: &mut Machine<'_>,
    value: &Value,
    attribute: Option<&Value>,
    test: &[Value],
    keeps: bool,
) -> Result<Value, Fault> {
    each(machine, value, |machine, item| {
        let tested = match attribute {
            Some(attribute) => read(machine, item, attribute)?,
            None => item.clone(),
        };
        let holds = match test {
            [] => tested.is_true(),
            [name, arguments @ ..] => checks::holds(name.as_str()?, &tested, arguments, &mut machine.budget)?,
        };
        Ok((holds == keeps).then(|| item.clone()))
    })
}

/// Pairs each element with its attribute, or with itself if there is none.
fn keyed(machine: &mut Machine<'_>, value: &Value, attribute: Option<&Value>) -> Result<Vec<(Value, Value)>, Fault> {
    let items = value.items(&mut machine.budget)?;
    machine.budget.pay_each(items.len(), 2 * CELL)?;
    items
        .iter()
        .map(|item| {
            let key = match attribute {
                Some(attribute) => read(machine, item, attribute)?,
                None => item.clone(),
            };
            Ok((key, item.clone()))
        })
        .collect()
}

/// Reads an attribute path such as `a.b.c`. A number is an index into a list.
fn read(machine: &mut Machine<'_>, value: &Value, path: &Value) -> Result<Value, Fault> {
    let Value::Str(path) = path else { return subscript::index(value, path, &mut machine.budget) };
    machine.budget.pay_each(path.len(), CELL)?;
    let mut value = value.clone();
    for part in path.split('.') {
        value = match part.parse() {
            Ok(at) => subscript::index(&value, &Value::Int(at), &mut machine.budget)?,
            Err(_) if matches!(value, Value::Map(_)) => {
                subscript::index(&value, &Value::str(part), &mut machine.budget)?
            }
            Err(_) => machine.field(&value, part)?,
        };
    }
    Ok(value)
}

/// Returns the arguments without the first ones.
fn without(given: &Given, first: usize, machine: &mut Machine<'_>) -> Result<Given, Fault> {
    machine.budget.pay_each(given.positional.len() + given.named.len(), 2 * CELL)?;
    Ok(Given { positional: given.positional.get(first..).unwrap_or_default().to_vec(), named: given.named.clone() })
}
