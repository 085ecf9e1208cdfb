//! Arithmetic operators, and numeric filters.

use super::Fault;
use super::ast::Operator;
use super::budget::{Budget, CELL};
use super::value::Value;
use super::{format, text};

pub(super) fn apply(operator: Operator, left: &Value, right: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    match (operator, left, right) {
        (Operator::Concatenate, ..) => {
            let mut text = text::Text::new(budget);
            text.show(left)?;
            text.show(right)?;
            Ok(Value::Str(text.out.into()))
        }
        (Operator::Add, Value::Str(a), Value::Str(b)) => {
            budget.pay(a.len() + b.len())?;
            Ok(Value::Str([&**a, &**b].concat().into()))
        }
        (Operator::Add, Value::List(a), Value::List(b)) => {
            budget.pay_each(a.len() + b.len(), CELL)?;
            let items = [&***a, &***b].concat();
            if a.is_tuple && b.is_tuple { Value::tuple(items) } else { Value::list(items) }
        }
        (Operator::Remainder, Value::Str(text), value) => format::percent(text, value, budget),
        (Operator::Multiply, Value::Str(text), Value::Int(count))
        | (Operator::Multiply, Value::Int(count), Value::Str(text)) => {
            budget.pay_each(self::count(*count), text.len().max(1))?;
            Ok(Value::Str(text.repeat(self::count(*count)).into()))
        }
        (Operator::Multiply, Value::List(items), Value::Int(count))
        | (Operator::Multiply, Value::Int(count), Value::List(items)) => {
            budget.pay_each(self::count(*count), items.len().max(1).saturating_mul(CELL))?;
            Value::list(std::iter::repeat_n(items.iter(), self::count(*count)).flatten().cloned().collect())
        }
        _ => match (int(left), int(right)) {
            (Some(a), Some(b)) => integers(operator, a, b),
            _ => match (float(left), float(right)) {
                (Some(a), Some(b)) => floats(operator, a, b),
                _ => {
                    let (left, right) = (left.kind(), right.kind());
                    Err(Fault::new(format!("\"{}\" does not take {left} and {right}", sign(operator))))
                }
            },
        },
    }
}

/// Converts to a count; negative numbers become 0.
pub(super) fn count(number: i64) -> usize {
    if number < 0 { 0 } else { usize::try_from(number).unwrap_or(usize::MAX) }
}

fn sign(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::DivideDown => "//",
        Operator::Remainder => "%",
        Operator::Power => "**",
        Operator::Concatenate => "~",
    }
}

fn int(value: &Value) -> Option<i64> {
    value.as_int().ok()
}

/// Converts a number to a float.
pub(super) fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(value) => Some(*value),
        other => int(other).map(|value| value as f64),
    }
}

fn integers(operator: Operator, a: i64, b: i64) -> Result<Value, Fault> {
    let zero = || Fault::new("it divides by zero");
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide | Operator::Power if operator == Operator::Divide || b < 0 => {
            return floats(operator, a as f64, b as f64);
        }
        Operator::Power => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        Operator::DivideDown | Operator::Remainder if b == 0 => return Err(zero()),
        // Python rounds down, and remainders have the sign of the divisor.
        Operator::DivideDown => {
            let down = a.checked_rem(b).map(|rest| i64::from(rest != 0 && (rest < 0) != (b < 0)));
            a.checked_div(b).zip(down).map(|(quotient, down)| quotient - down)
        }
        _ => a.checked_rem(b).map(|rest| if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }),
    };
    result.map(Value::Int).ok_or_else(|| Fault::new("an integer is too large"))
}

fn floats(operator: Operator, a: f64, b: f64) -> Result<Value, Fault> {
    if b == 0.0 && matches!(operator, Operator::Divide | Operator::DivideDown | Operator::Remainder) {
        return Err(Fault::new("it divides by zero"));
    }
    Ok(Value::Float(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::DivideDown => (a / b).floor(),
        Operator::Power => a.powf(b),
        Operator::Remainder | Operator::Concatenate => a - b * (a / b).floor(),
    }))
}

pub(super) fn negative(value: &Value) -> Result<Value, Fault> {
    match value {
        Value::Float(value) => Ok(Value::Float(-value)),
        other => other.as_int()?.checked_neg().map(Value::Int).ok_or_else(|| Fault::new("an integer is too large")),
    }
}

/// Implements `abs`.
pub(super) fn magnitude(value: &Value) -> Result<Value, Fault> {
    let below = float(value).is_some_and(|value| value < 0.0);
    if below { negative(value) } else { Ok(value.clone()) }
}

/// Implements `int`: an unreadable value becomes the default.
pub(super) fn to_int(value: &Value, default: Value, budget: &mut Budget) -> Result<Value, Fault> {
    let whole = |value: f64| (value.abs() < i64::MAX as f64).then_some(value as i64);
    let found = match value {
        Value::Float(value) => whole(*value),
        Value::Str(text) => {
            budget.pay(text.len())?;
            let text = text.trim();
            text.parse().ok().or_else(|| text.parse().ok().and_then(whole))
        }
        other => int(other),
    };
    Ok(found.map_or(default, Value::Int))
}

/// Implements `float`: an unreadable value becomes the default.
pub(super) fn to_float(value: &Value, default: Value, budget: &mut Budget) -> Result<Value, Fault> {
    let found = match value {
        Value::Str(text) => {
            budget.pay(text.len())?;
            text.trim().parse().ok()
        }
        other => float(other),
    };
    Ok(found.map_or(default, Value::Float))
}

/// Implements `round`, to `places` after the decimal point.
pub(super) fn round(value: &Value, places: i64, method: &str) -> Result<Value, Fault> {
    let Some(number) = float(value) else { return Err(Fault::new(format!("{} is not a number", value.kind()))) };
    let scale = 10f64.powi(places.clamp(-300, 300) as i32);
    let scaled = number * scale;
    let rounded = match method {
        "common" => scaled.round_ties_even(),
        "ceil" => scaled.ceil(),
        "floor" => scaled.floor(),
        other => return Err(Fault::new(format!("\"{other}\" is no way of rounding"))),
    };
    Ok(Value::Float(rounded / scale))
}
