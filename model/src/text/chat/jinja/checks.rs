//! Tests: names after `is`.

use super::Fault;
use super::ast::Comparison;
use super::budget::Budget;
use super::machine::compared;
use super::value::Value;

/// Returns whether a value passes a test.
pub(super) fn holds(name: &str, value: &Value, arguments: &[Value], budget: &mut Budget) -> Result<bool, Fault> {
    let comparison = match name {
        "eq" | "equalto" | "==" => Some(Comparison::Equal),
        "ne" | "!=" => Some(Comparison::NotEqual),
        "lt" | "lessthan" | "<" => Some(Comparison::Less),
        "le" | "<=" => Some(Comparison::LessOrEqual),
        "gt" | "greaterthan" | ">" => Some(Comparison::Greater),
        "ge" | ">=" => Some(Comparison::GreaterOrEqual),
        "in" => Some(Comparison::In),
        _ => None,
    };
    let argument = || arguments.first().ok_or_else(|| Fault::new(format!("the test \"{name}\" lacks its argument")));
    if let Some(comparison) = comparison {
        return compared(comparison, value, argument()?, budget);
    }
    Ok(match name {
        "defined" => !matches!(value, Value::Undefined),
        "undefined" => matches!(value, Value::Undefined),
        "none" => matches!(value, Value::None),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "boolean" => matches!(value, Value::Bool(_)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        // Booleans are numbers in Python.
        "number" => matches!(value, Value::Bool(_) | Value::Int(_) | Value::Float(_)),
        "string" => matches!(value, Value::Str(_)),
        "mapping" => matches!(value, Value::Map(_)),
        // Undefined values are empty sequences in Jinja2.
        "sequence" | "iterable" => {
            matches!(value, Value::Undefined | Value::Str(_) | Value::List(_) | Value::Map(_))
        }
        "callable" => matches!(value, Value::Function(_)),
        "sameas" => same(value, argument()?, budget)?,
        "odd" => value.as_int()?.rem_euclid(2) == 1,
        "even" => value.as_int()?.rem_euclid(2) == 0,
        "divisibleby" => match argument()?.as_int()? {
            0 => return Err(Fault::new("it divides by zero")),
            divisor => value.as_int()?.checked_rem(divisor).unwrap_or(0) == 0,
        },
        "startingwith" | "endingwith" => {
            let (text, part) = (value.as_str()?, argument()?.as_str()?);
            budget.pay(part.len())?;
            if name == "startingwith" { text.starts_with(&**part) } else { text.ends_with(&**part) }
        }
        "lower" | "upper" => {
            let text = value.as_str()?;
            budget.pay(text.len())?;
            let (small, large) = (text.chars().any(char::is_lowercase), text.chars().any(char::is_uppercase));
            if name == "lower" { small && !large } else { large && !small }
        }
        other => return Err(Fault::new(format!("there is no test \"{other}\""))),
    })
}

/// Approximates Python's `is`: the same type, and equal.
fn same(a: &Value, b: &Value, budget: &mut Budget) -> Result<bool, Fault> {
    Ok(a.kind() == b.kind() && compared(Comparison::Equal, a, b, budget)?)
}
