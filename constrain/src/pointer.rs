//! Places in a document, as JSON pointers.

use serde_json::Value;

/// The pointer of a reference to a place in the same document, which may have escapes of URIs.
pub(crate) fn of_reference(reference: &str) -> Option<String> {
    let pointer = unescaped(reference.strip_prefix('#')?)?;
    (pointer.is_empty() || pointer.starts_with('/')).then_some(pointer)
}

/// A text without the escapes of URIs.
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

/// The keys and indices of a pointer.
pub(crate) fn parts(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
}

/// A pointer of keys and indices.
pub(crate) fn written(parts: &[String]) -> String {
    parts.iter().flat_map(|part| ["/".to_owned(), part.replace('~', "~0").replace('/', "~1")]).collect()
}

/// What a document has at a place.
pub(crate) fn find<'d>(document: &'d Value, parts: &[String]) -> Option<&'d Value> {
    parts.iter().try_fold(document, |at, part| match at {
        Value::Object(map) => map.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}
