//! Places in a document, as JSON pointers.

use serde_json::Value;

/// Returns the JSON pointer in a reference to the same document, after removing URI escapes.
pub(crate) fn of_reference(reference: &str) -> Option<String> {
    let pointer = unescaped(reference.strip_prefix('#')?)?;
    (pointer.is_empty() || pointer.starts_with('/')).then_some(pointer)
}

/// Decodes URI escapes.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (hex, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Splits a pointer into keys and indices.
pub(crate) fn parts(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
}

/// Joins keys and indices to a pointer.
pub(crate) fn written(parts: &[String]) -> String {
    parts.iter().flat_map(|part| ["/".to_owned(), part.replace('~', "~0").replace('/', "~1")]).collect()
}

/// Returns the value at a place in a document.
pub(crate) fn find<'d>(document: &'d Value, parts: &[String]) -> Option<&'d Value> {
    parts.iter().try_fold(document, |at, part| match at {
        Value::Object(map) => map.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}
