//! Subscripts and slices.

use super::Fault;
use super::budget::{Budget, CELL};
use super::numbers::count;
use super::value::Value;

/// Evaluates `value[index]`. A missing element is undefined.
pub(super) fn index(value: &Value, index: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    Ok(match (value, index) {
        (Value::Undefined, _) => return Err(Fault::new("an undefined value has no elements")),
        // A value that cannot be a key is missing, too.
        (Value::Map(map), key) if key.is_key() => map.get(key, budget)?.cloned().unwrap_or_default(),
        (Value::List(list), Value::Int(_) | Value::Bool(_)) => {
            place(index.as_int()?, list.len()).and_then(|at| list.get(at)).cloned().unwrap_or_default()
        }
        (Value::Str(text), Value::Int(_) | Value::Bool(_)) => {
            budget.pay(text.len())?;
            let character = match index.as_int()? {
                at @ 0.. => text.chars().nth(count(at)),
                at => text.chars().rev().nth(count(-(at + 1))),
            };
            character.map_or(Value::Undefined, |c| Value::str(c.encode_utf8(&mut [0; 4])))
        }
        _ => Value::Undefined,
    })
}

/// Resolves an index, which may count from the end.
fn place(at: i64, len: usize) -> Option<usize> {
    let at = if at < 0 { at.checked_add(len as i64)? } else { at };
    usize::try_from(at).ok().filter(|at| *at < len)
}

/// Evaluates `value[from:to:step]`, as in Python.
pub(super) fn slice(value: &Value, bounds: [Option<i64>; 3], budget: &mut Budget) -> Result<Value, Fault> {
    match value {
        Value::Undefined | Value::None => Value::list(Vec::new()),
        Value::List(list) => {
            let places = Places::new(bounds, list.len())?;
            budget.pay_each(places.count(), CELL)?;
            let items = places.filter_map(|at| list.get(at)).cloned().collect();
            if list.is_tuple { Value::tuple(items) } else { Value::list(items) }
        }
        Value::Str(text) => {
            // The text is expanded to characters.
            budget.pay_each(text.len(), 4)?;
            let chars: Vec<char> = text.chars().collect();
            let places = Places::new(bounds, chars.len())?;
            Ok(Value::Str(places.filter_map(|at| chars.get(at)).collect::<String>().into()))
        }
        other => Err(Fault::new(format!("{} cannot be sliced", other.kind()))),
    }
}

/// Iterator over the indices of a slice.
#[derive(Clone, Copy)]
struct Places {
    at: i64,
    end: i64,
    step: i64,
}

impl Places {
    fn new([from, to, step]: [Option<i64>; 3], len: usize) -> Result<Places, Fault> {
        let (step, len) = (step.unwrap_or(1), len as i64);
        if step == 0 {
            return Err(Fault::new("the step of a slice is zero"));
        }
        // A slice can end one position before the first element or after the last one.
        let (least, most) = if step > 0 { (0, len) } else { (-1, len - 1) };
        let bound = |bound: i64| (if bound < 0 { bound.saturating_add(len) } else { bound }).clamp(least, most);
        let (first, last) = if step > 0 { (least, most) } else { (most, least) };
        Ok(Places { at: from.map_or(first, bound), end: to.map_or(last, bound), step })
    }
}

impl Iterator for Places {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let within = if self.step > 0 { self.at < self.end } else { self.at > self.end };
        if !within {
            return None;
        }
        let at = self.at;
        self.at = at.saturating_add(self.step);
        usize::try_from(at).ok()
    }
}
