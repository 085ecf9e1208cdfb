//! String operations of filters and methods.

use super::Fault;
use super::budget::{Budget, CELL};
use super::value::Value;

/// Replaces at most the first `count` occurrences; all if `count` is negative.
pub(super) fn replace(text: &str, from: &str, to: &str, count: i64, budget: &mut Budget) -> Result<Value, Fault> {
    let count = if count < 0 { usize::MAX } else { super::numbers::count(count) };
    budget.pay(text.len() + from.len())?;
    let found = text.matches(from).take(count).count();
    budget.pay(text.len())?;
    budget.pay_each(found, to.len() + 1)?;
    Ok(Value::Str(text.replacen(from, to, found).into()))
}

/// Splits at a separator, or at white space, at most `most` times.
pub(super) fn split(
    text: &str,
    separator: Option<&str>,
    most: i64,
    from_end: bool,
    budget: &mut Budget,
) -> Result<Value, Fault> {
    let most = if most < 0 { usize::MAX } else { super::numbers::count(most).saturating_add(1) };
    let parts: Vec<&str> = match separator {
        Some("") => return Err(Fault::new("the separator is empty")),
        Some(separator) => {
            budget.pay(text.len())?;
            let found = text.matches(separator).count().min(most) + 1;
            budget.pay_each(found, 2 * CELL)?;
            if from_end {
                let mut parts: Vec<&str> = text.rsplitn(most, separator).collect();
                parts.reverse();
                parts
            } else {
                text.splitn(most, separator).collect()
            }
        }
        None => {
            budget.pay_each(text.len(), CELL)?;
            words(text, most, from_end)
        }
    };
    pieces(parts, budget)
}

/// Splits at white space at most `most` times. The last word (or the first, from the end) keeps the rest.
fn words(text: &str, most: usize, from_end: bool) -> Vec<&str> {
    let mut rest = text.trim();
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let cut = if from_end {
            rest.char_indices().rev().find(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8())
        } else {
            rest.find(char::is_whitespace)
        };
        match cut {
            Some(cut) if parts.len() + 1 < most => {
                let (left, right) = rest.split_at(cut);
                let (part, others) = if from_end { (right, left.trim_end()) } else { (left, right.trim_start()) };
                parts.push(part);
                rest = others;
            }
            _ => {
                parts.push(rest);
                break;
            }
        }
    }
    if from_end {
        parts.reverse();
    }
    parts
}

pub(super) fn lines(text: &str, budget: &mut Budget) -> Result<Value, Fault> {
    budget.pay_each(text.len(), CELL)?;
    pieces(text.lines().collect(), budget)
}

fn pieces(parts: Vec<&str>, budget: &mut Budget) -> Result<Value, Fault> {
    budget.pay(parts.iter().map(|part| part.len() + CELL).sum())?;
    Value::list(parts.into_iter().map(Value::str).collect())
}

/// Indents lines. The first line is indented if `first` is set, and empty lines if `blank` is set.
pub(super) fn indent(text: &str, prefix: &str, first: bool, blank: bool, budget: &mut Budget) -> Result<Value, Fault> {
    budget.pay(text.len())?;
    budget.pay_each(text.matches('\n').count() + 1, prefix.len() + 1)?;
    let mut out = String::new();
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push('\n');
        }
        if (i > 0 || first) && (blank || i == 0 || !line.is_empty()) {
            out.push_str(prefix);
        }
        out.push_str(line);
    }
    Ok(Value::Str(out.into()))
}

/// Makes the prefix of [`indent`] from a number of spaces or a string.
pub(super) fn prefix(width: Option<&Value>, budget: &mut Budget) -> Result<String, Fault> {
    match width {
        None => Ok("    ".into()),
        Some(Value::Str(text)) => {
            budget.pay(text.len())?;
            Ok(text.to_string())
        }
        Some(width) => {
            let width = super::numbers::count(width.as_int()?);
            budget.pay(width)?;
            Ok(" ".repeat(width))
        }
    }
}

/// Removes characters at the ends: white space, or those of a string.
pub(super) fn strip(
    text: &str,
    chars: Option<&Value>,
    (start, end): (bool, bool),
    budget: &mut Budget,
) -> Result<Value, Fault> {
    let chars = match chars {
        None | Some(Value::None | Value::Undefined) => None,
        Some(chars) => Some(chars.as_str()?),
    };
    // Each character is searched in `chars`.
    budget.pay_each(text.len(), chars.map_or(1, |chars| chars.len() + 1))?;
    let drops = |c: char| chars.map_or(c.is_whitespace(), |chars| chars.contains(c));
    let text = if start { text.trim_start_matches(drops) } else { text };
    Ok(Value::str(if end { text.trim_end_matches(drops) } else { text }))
}

/// Capitalises a text, or each of its words; all other letters become lower-case.
pub(super) fn capitalized(text: &str, each_word: bool, budget: &mut Budget) -> Result<Value, Fault> {
    budget.pay_each(text.len(), 3)?;
    let mut out = String::with_capacity(text.len());
    let mut begins = true;
    for c in text.chars() {
        if begins {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        begins = each_word && !c.is_alphanumeric() && c != '\'';
    }
    Ok(Value::Str(out.into()))
}

/// Converts a text to one case. A letter may take up to three times its bytes.
pub(super) fn cased(text: &str, upper: bool, budget: &mut Budget) -> Result<Value, Fault> {
    budget.pay_each(text.len(), 3)?;
    Ok(Value::Str(if upper { text.to_uppercase() } else { text.to_lowercase() }.into()))
}

/// Escapes a text for HTML.
pub(super) fn escape(text: &str, budget: &mut Budget) -> Result<Value, Fault> {
    budget.pay_each(text.len(), 6)?;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    Ok(Value::Str(out.into()))
}
