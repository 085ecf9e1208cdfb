//! List and map operations of filters and methods.

use std::sync::Arc;

use super::Fault;
use super::budget::{Budget, CELL};
use super::compare::{self, SortKey};
use super::numbers;
use super::text::Text;
use super::value::{List, Map, Value};

/// Returns the pairs of a map, as tuples.
pub(super) fn pairs(map: &Map, budget: &mut Budget) -> Result<Value, Fault> {
    budget.pay_each(map.len(), 4 * CELL)?;
    let pairs: Result<Vec<Value>, Fault> =
        map.pairs().iter().map(|(key, value)| Value::tuple(vec![key.clone(), value.clone()])).collect();
    Value::list(pairs?)
}

pub(super) fn join(items: &Value, separator: &str, budget: &mut Budget) -> Result<Value, Fault> {
    let items = items.items(budget)?;
    let mut text = Text::new(budget);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            text.push(separator)?;
        }
        text.show(item)?;
    }
    Ok(Value::Str(text.out.into()))
}

pub(super) fn reversed(value: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    if let Value::Str(text) = value {
        budget.pay(text.len())?;
        return Ok(Value::Str(text.chars().rev().collect::<String>().into()));
    }
    let items = value.items(budget)?;
    budget.pay_each(items.len(), CELL)?;
    Value::list(items.iter().rev().cloned().collect())
}

/// Returns the number of elements, or of characters.
pub(super) fn length(value: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    Ok(Value::Int(match value {
        Value::Str(text) => {
            budget.pay(text.len())?;
            text.chars().count() as i64
        }
        Value::Map(map) => map.len() as i64,
        other => other.items(budget)?.len() as i64,
    }))
}

/// Sorts elements by their keys.
pub(super) fn sorted(
    keyed: Vec<(Value, Value)>,
    case_sensitive: bool,
    reverse: bool,
    budget: &mut Budget,
) -> Result<Vec<(Value, Value)>, Fault> {
    let mut items = Vec::with_capacity(keyed.len());
    for (key, item) in keyed {
        budget.pay(2 * CELL)?;
        items.push((SortKey::new(&key, case_sensitive, budget)?, (key, item)));
    }
    compare::sort(&mut items, reverse, budget)?;
    Ok(items.into_iter().map(|(_, item)| item).collect())
}

/// Keeps the first element of each group with equal keys.
pub(super) fn unique(keyed: Vec<(Value, Value)>, budget: &mut Budget) -> Result<Value, Fault> {
    let mut kept: Vec<(Value, Value)> = Vec::new();
    for (key, item) in keyed {
        let mut is_new = true;
        for (other, _) in &kept {
            is_new &= !compare::equal(other, &key, budget)?;
        }
        if is_new {
            budget.pay(CELL)?;
            kept.push((key, item));
        }
    }
    Value::list(kept.into_iter().map(|(_, item)| item).collect())
}

/// Returns the first element with the smallest (or largest) key.
pub(super) fn extreme(keyed: Vec<(Value, Value)>, largest: bool, budget: &mut Budget) -> Result<Value, Fault> {
    let mut best: Option<(Value, Value)> = None;
    for (key, item) in keyed {
        let better = match &best {
            None => true,
            Some((other, _)) => {
                let order = compare::order(&key, other, budget)?;
                order.is_some_and(|order| if largest { order.is_gt() } else { order.is_lt() })
            }
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or(Value::Undefined, |(_, item)| item))
}

pub(super) fn sum(items: &[Value], start: Value, budget: &mut Budget) -> Result<Value, Fault> {
    let mut total = start;
    for item in items {
        total = numbers::apply(super::ast::Operator::Add, &total, item, budget)?;
    }
    Ok(total)
}

/// Splits a list: into pieces of `size` elements (`batch`), or into `size` pieces (`slice`).
pub(super) fn pieces(
    items: &Arc<List>,
    size: i64,
    fill: Option<&Value>,
    batches: bool,
    budget: &mut Budget,
) -> Result<Value, Fault> {
    let size = match numbers::count(size) {
        0 => return Err(Fault::new("pieces of a list need a size above zero")),
        size => size,
    };
    let mut out = Vec::new();
    budget.pay_each(items.len(), CELL)?;
    let mut add = |part: &[Value], missing: usize, budget: &mut Budget| {
        budget.pay_each(missing, CELL)?;
        budget.pay(2 * CELL)?;
        let mut piece = part.to_vec();
        piece.extend(fill.into_iter().flat_map(|fill| std::iter::repeat_n(fill.clone(), missing)));
        out.push(Value::list(piece)?);
        Ok(())
    };
    if batches {
        for part in items.chunks(size) {
            add(part, if fill.is_some() { size - part.len() } else { 0 }, budget)?;
        }
    } else {
        let (each, longer) = (items.len() / size, items.len() % size);
        let mut rest = &items[..];
        for i in 0..size {
            let (part, others) = rest.split_at(each + usize::from(i < longer));
            rest = others;
            add(part, usize::from(fill.is_some() && longer > 0 && i >= longer), budget)?;
        }
    }
    Value::list(out)
}
