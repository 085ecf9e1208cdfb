//! Writes GGUF files.

use anyhow::{Result, bail};
use model::gguf::Value;

/// Where each tensor begins is a multiple of this.
const ALIGN: usize = 32;

/// A tensor that a file is to hold.
pub struct Tensor {
    pub name: String,
    /// The innermost dimension first, as files have them.
    pub dims: Vec<u64>,
    /// ggml's number of its format.
    pub format: u32,
    pub bytes: usize,
}

/// Everything before the data of the first tensor.
///
/// *Errors*: an array that no file of ours has.
pub fn header(pairs: &[(&str, Value)], tensors: &[Tensor]) -> Result<Vec<u8>> {
    let mut out = b"GGUF".to_vec();
    out.extend(3u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((pairs.len() as u64).to_le_bytes());
    for (key, value) in pairs {
        out.extend(text(key));
        put(&mut out, value)?;
    }
    let mut offset = 0u64;
    for tensor in tensors {
        out.extend(text(&tensor.name));
        out.extend((tensor.dims.len() as u32).to_le_bytes());
        tensor.dims.iter().for_each(|dim| out.extend(dim.to_le_bytes()));
        out.extend(tensor.format.to_le_bytes());
        out.extend(offset.to_le_bytes());
        offset += (tensor.bytes + padding(tensor.bytes).len()) as u64;
    }
    out.extend(padding(out.len()));
    Ok(out)
}

/// Returns the padding after that many bytes, so that the next tensor is aligned.
pub fn padding(bytes: usize) -> &'static [u8] {
    &[0; ALIGN][..bytes.next_multiple_of(ALIGN) - bytes]
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A value after its kind. Integers have 32 bits if they fit.
fn put(out: &mut Vec<u8>, value: &Value) -> Result<()> {
    let scalar = |kind: u32, bytes: &[u8]| [&kind.to_le_bytes()[..], bytes].concat();
    let array = |kind: u32, len: usize, bytes: Vec<u8>| {
        [&9u32.to_le_bytes()[..], &kind.to_le_bytes(), &(len as u64).to_le_bytes(), &bytes].concat()
    };
    out.extend(match value {
        Value::Uint(value) => match u32::try_from(*value) {
            Ok(value) => scalar(4, &value.to_le_bytes()),
            Err(_) => scalar(10, &value.to_le_bytes()),
        },
        Value::Int(value) => scalar(11, &value.to_le_bytes()),
        Value::Float(value) => scalar(6, &(*value as f32).to_le_bytes()),
        Value::Bool(value) => scalar(7, &[u8::from(*value)]),
        Value::String(value) => scalar(8, &text(value)),
        Value::Ints(values) => array(5, values.len(), values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Value::Floats(values) => array(6, values.len(), values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Value::Strings(values) => array(8, values.len(), values.iter().flat_map(text).collect()),
        other => bail!("{other} is not written: no file made here has such a value"),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Gguf;
    use std::sync::Arc;

    #[test]
    fn what_is_written_is_read() {
        let pairs = [
            ("general.architecture", Value::String("llama".into())),
            ("a.uint", Value::Uint(7)),
            ("a.long", Value::Uint(1 << 40)),
            ("a.int", Value::Int(-3)),
            ("a.float", Value::Float(0.5)),
            ("a.bool", Value::Bool(true)),
            ("a.ints", Value::Ints(vec![1, -2])),
            ("a.floats", Value::Floats(vec![0.25])),
            ("a.strings", Value::Strings(Arc::new(["x", "", "yz"].into_iter().collect()))),
        ];
        let tensor =
            |name: &str, dims: &[u64], bytes| Tensor { name: name.into(), dims: dims.into(), format: 0, bytes };
        let tensors = [tensor("a", &[3], 12), tensor("b", &[2, 5], 40)];
        let mut file = header(&pairs, &tensors).unwrap();
        let start = file.len();
        for tensor in &tensors {
            file.resize(file.len() + tensor.bytes, 0);
            file.extend(padding(tensor.bytes));
        }
        let gguf = Gguf::from_bytes(&file).unwrap();
        for (key, value) in &pairs {
            assert_eq!(gguf.metadata.value(key), Some(value), "{key}");
        }
        let (a, b) = (gguf.tensor("a").unwrap(), gguf.tensor("b").unwrap());
        assert_eq!((a.offset, a.shape.as_slice()), (start as u64, &[3][..]));
        assert_eq!((b.offset, b.shape.as_slice()), (start as u64 + 32, &[5, 2][..]));
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        assert!(header(&[("a", Value::Bools(vec![true]))], &[]).is_err());
    }
}
