//! Parser of key-value pairs.

use std::borrow::Cow;
use std::sync::Arc;

use super::error::{GgufError, shown};
use super::metadata::{Metadata, StringArray, Value};
use super::window::{MAX_HEADER, Window};

/// Least bytes of a pair: key length, a one-byte key, type, a one-byte value.
pub(super) const MIN_PAIR_BYTES: u64 = 8 + 1 + 4 + 1;

/// Most bytes of a key: the specification allows 2^16 - 1.
const MAX_KEY: u64 = (1 << 16) - 1;

/// Value types without a fixed size.
const STRING: u32 = 8;
const ARRAY: u32 = 9;

pub(super) async fn read_metadata(window: &mut Window<'_>, count: u64) -> Result<Metadata, GgufError> {
    let mut metadata = Metadata::default();
    for i in 0..count {
        let key: Box<str> = window.string(MAX_KEY, &|| format!("metadata key {i}")).await?.into();
        let value = read_value(window, &shown(&key)).await?;
        if !metadata.insert(&key, value) {
            return Err(GgufError::Duplicate { what: "metadata key", name: shown(&key) });
        }
    }
    Ok(metadata)
}

/// A string. Descriptions for people (`general.*`) may be in any encoding: bytes that are not UTF-8 become U+FFFD there.
async fn read_string<'w>(
    window: &'w mut Window<'_>,
    key: &str,
    what: &dyn Fn() -> String,
) -> Result<Cow<'w, str>, GgufError> {
    match key.starts_with("general.") {
        true => Ok(String::from_utf8_lossy(window.bytes(MAX_HEADER, what).await?)),
        false => Ok(window.string(MAX_HEADER, what).await?.into()),
    }
}

/// Reads a value. `key` is the key as messages show it.
async fn read_value(window: &mut Window<'_>, key: &str) -> Result<Value, GgufError> {
    let what = || format!("the value of metadata key \"{key}\"");
    match window.u32(&what).await? {
        STRING => Ok(Value::String(read_string(window, key, &what).await?.into())),
        ARRAY => read_array(window, key, &what).await,
        kind => {
            let size = size_of_scalar(kind).ok_or_else(|| unknown_type(key, kind))?;
            scalar(kind, window.take(size, &what).await?)
                .ok_or_else(|| GgufError::ValueType { key: key.into(), found: "a bool that is neither 0 nor 1".into() })
        }
    }
}

fn unknown_type(key: &str, kind: u32) -> GgufError {
    GgufError::ValueType { key: key.into(), found: format!("the unknown value type {kind}") }
}

const fn size_of_scalar(kind: u32) -> Option<usize> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// Converts the bytes of a scalar, which must have its type's size.
fn scalar(kind: u32, bytes: &[u8]) -> Option<Value> {
    let mut wide = [0u8; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    Some(match kind {
        0 | 2 | 4 | 10 => Value::Uint(bits),
        1 => Value::Int((bits as i8).into()),
        3 => Value::Int((bits as i16).into()),
        5 => Value::Int((bits as i32).into()),
        11 => Value::Int(bits as i64),
        6 => Value::Float(f32::from_bits(bits as u32).into()),
        12 => Value::Float(f64::from_bits(bits)),
        7 if bits <= 1 => Value::Bool(bits == 1),
        _ => return None,
    })
}

async fn read_array(window: &mut Window<'_>, key: &str, what: &dyn Fn() -> String) -> Result<Value, GgufError> {
    let kind = window.u32(what).await?;
    let count = window.u64(what).await?;
    if kind == STRING {
        return read_strings(window, key, count, what).await;
    }
    if kind == ARRAY {
        return Err(GgufError::ValueType { key: key.into(), found: "an array of arrays, which no model needs".into() });
    }
    let size = size_of_scalar(kind).ok_or_else(|| unknown_type(key, kind))?;
    window.check(count, size as u64, what)?;
    let bytes = count * size as u64;
    // One closure for each type, so that arrays are stored at the width of their elements.
    macro_rules! collect {
        ($value:ident, |$b:ident| $element:expr) => {{
            let mut out = Vec::new();
            window
                .pieces(bytes, size, what, &mut |piece| out.extend(piece.chunks_exact(size).map(|$b| $element)))
                .await?;
            Value::$value(out)
        }};
    }
    let wide = |b: &[u8]| b.iter().rev().fold(0u64, |acc, &byte| acc << 8 | u64::from(byte));
    Ok(match kind {
        0 | 2 | 4 | 10 => collect!(Uints, |b| wide(b)),
        1 => collect!(Ints, |b| i32::from(wide(b) as i8)),
        3 => collect!(Ints, |b| i32::from(wide(b) as i16)),
        5 => collect!(Ints, |b| wide(b) as i32),
        11 => collect!(Longs, |b| wide(b) as i64),
        6 => collect!(Floats, |b| f32::from_bits(wide(b) as u32)),
        12 => collect!(Doubles, |b| f64::from_bits(wide(b))),
        _ => collect!(Bools, |b| wide(b) != 0),
    })
}

async fn read_strings(
    window: &mut Window<'_>,
    key: &str,
    count: u64,
    what: &dyn Fn() -> String,
) -> Result<Value, GgufError> {
    window.check(count, 8, what)?;
    let mut strings = StringArray::default();
    for i in 0..count {
        let string = read_string(window, key, &|| format!("element {i} of metadata key \"{key}\"")).await?;
        strings.push(&string).map_err(|found| GgufError::TooLarge { what: what(), found, limit: u32::MAX.into() })?;
    }
    Ok(Value::Strings(Arc::new(strings)))
}
