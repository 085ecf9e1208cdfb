//! Equality, order and membership.

use std::cmp::Ordering;

use super::Fault;
use super::budget::Budget;
use super::value::Value;

/// Cost of looking at a value.
const LOOK: usize = 4;

/// Implements Python's `==`: numbers are equal by value, and other values only to those of their own type.
pub(super) fn equal(a: &Value, b: &Value, budget: &mut Budget) -> Result<bool, Fault> {
    budget.pay(LOOK)?;
    Ok(match (a, b) {
        (Value::Undefined, Value::Undefined) | (Value::None, Value::None) => true,
        (Value::Str(a), Value::Str(b)) => {
            if a.len() == b.len() {
                budget.pay(a.len())?;
            }
            a == b
        }
        (Value::List(a), Value::List(b)) => {
            if a.len() != b.len() || a.is_tuple != b.is_tuple {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal(a, b, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(a), Value::Map(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (key, value) in a.pairs() {
                match b.get(key, budget)? {
                    Some(other) if equal(value, other, budget)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (Value::Namespace(a), Value::Namespace(b)) => a == b,
        (Value::Function(a), Value::Function(b)) => a == b,
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => a.partial_cmp(&b) == Some(Ordering::Equal),
            _ => false,
        },
    })
}

/// A number to compare: as a float and, for integers, exactly.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
struct Number(f64, i64);

fn number(value: &Value) -> Option<Number> {
    match *value {
        Value::Int(value) => Some(Number(value as f64, value)),
        Value::Bool(value) => Some(Number(f64::from(u8::from(value)), i64::from(value))),
        Value::Float(value) => Some(Number(value, value as i64)),
        _ => None,
    }
}

/// Implements Python's `<`: numbers with numbers, and strings with strings. NaN is not ordered.
pub(super) fn order(a: &Value, b: &Value, budget: &mut Budget) -> Result<Option<Ordering>, Fault> {
    budget.pay(LOOK)?;
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => {
            budget.pay(a.len().min(b.len()))?;
            Ok(Some(a.cmp(b)))
        }
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => Ok(a.partial_cmp(&b)),
            _ => Err(Fault::new(format!("{} and {} have no order", a.kind(), b.kind()))),
        },
    }
}

/// Implements Python's `in`.
pub(super) fn contains(whole: &Value, part: &Value, budget: &mut Budget) -> Result<bool, Fault> {
    match whole {
        Value::Undefined => Ok(false),
        Value::Str(text) => {
            let part = part.as_str()?;
            budget.pay(text.len() + part.len())?;
            Ok(text.contains(&**part))
        }
        Value::List(list) => {
            for item in list.iter() {
                if equal(item, part, budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) => Ok(map.get(part, budget)?.is_some()),
        other => Err(Fault::new(format!("{} has no elements", other.kind()))),
    }
}

/// Sort key: a total order of numbers and strings, so that sorting cannot fail halfway.
#[derive(Debug, Clone)]
pub(super) enum SortKey {
    Number(f64, i64),
    Text(String),
}

impl SortKey {
    pub fn new(value: &Value, case_sensitive: bool, budget: &mut Budget) -> Result<SortKey, Fault> {
        match value {
            Value::Str(text) => {
                // The lower-case text may be longer.
                budget.pay_each(text.len(), 2)?;
                Ok(SortKey::Text(if case_sensitive { text.to_string() } else { text.to_lowercase() }))
            }
            _ => match number(value) {
                Some(Number(float, exact)) => Ok(SortKey::Number(float, exact)),
                None => Err(Fault::new(format!("{} has no order", value.kind()))),
            },
        }
    }

    fn len(&self) -> usize {
        match self {
            SortKey::Number(..) => 0,
            SortKey::Text(text) => text.len(),
        }
    }

    fn compare(&self, other: &SortKey) -> Ordering {
        match (self, other) {
            (SortKey::Number(a, x), SortKey::Number(b, y)) => a.total_cmp(b).then(x.cmp(y)),
            (SortKey::Text(a), SortKey::Text(b)) => a.cmp(b),
            (SortKey::Number(..), SortKey::Text(_)) => Ordering::Less,
            (SortKey::Text(_), SortKey::Number(..)) => Ordering::Greater,
        }
    }
}

/// Sorts by keys, stably. All comparisons are paid in advance.
pub(super) fn sort<T>(items: &mut [(SortKey, T)], reverse: bool, budget: &mut Budget) -> Result<(), Fault> {
    let rounds = (items.len().max(1).ilog2() + 1) as usize;
    let longest = items.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    budget.pay_each(items.len(), rounds.saturating_mul(LOOK + longest))?;
    items.sort_by(|(a, _), (b, _)| if reverse { b.compare(a) } else { a.compare(b) });
    Ok(())
}
