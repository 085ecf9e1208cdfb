//! Parser of tensor descriptions.

use std::collections::HashSet;

use backend_api::Format;

use super::error::{GgufError, shown};
use super::metadata::Metadata;
use super::window::Window;

/// Least bytes of a description: name length, a one-byte name, dimension count, one dimension, type, offset.
pub(super) const MIN_INFO_BYTES: u64 = 8 + 1 + 4 + 8 + 4 + 8;

/// Most bytes of a name. ggml allows 64; some converters write longer ones.
const MAX_NAME: u64 = 1024;
const MAX_DIMS: u32 = 4;
const DEFAULT_ALIGNMENT: u32 = 32;
const MAX_ALIGNMENT: u32 = 1 << 20;

/// Description of a tensor: its name, format, shape and position in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// The name, such as `blk.0.attn_q.weight`.
    pub name: Box<str>,
    /// Storage format of elements.
    pub format: Format,
    /// Shape, row-major: the innermost dimension, along which blocks are, comes last.
    pub shape: Vec<usize>,
    /// First byte of the data, from the beginning of the source (for a split model, of the first file).
    ///
    /// *Units*: bytes. It is 64 bits wide on every machine.
    pub offset: u64,
    /// Size of the data in bytes, without padding.
    pub bytes: u64,
}

pub(super) async fn read_tensors(
    window: &mut Window<'_>,
    count: u64,
    metadata: &Metadata,
    file_len: u64,
) -> Result<(Vec<TensorInfo>, u64), GgufError> {
    let alignment = alignment(metadata)?;
    let mut tensors = Vec::new();
    for i in 0..count {
        tensors.push(read_info(window, i).await?);
    }
    let data_offset = window.position().next_multiple_of(alignment);
    let packed = tensors.iter().fold(0u64, |n, t| n.saturating_add(t.bytes.saturating_add(alignment - 1)));
    for tensor in &mut tensors {
        place(tensor, data_offset, alignment, packed, file_len)?;
    }
    check_names(&tensors)?;
    check_overlap(&tensors)?;
    Ok((tensors, data_offset))
}

fn alignment(metadata: &Metadata) -> Result<u64, GgufError> {
    let key = "general.alignment";
    let alignment = metadata.get::<u32>(key)?.unwrap_or(DEFAULT_ALIGNMENT);
    if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
        return Err(GgufError::WrongValue {
            key: key.into(),
            expected: "a power of two of at most 2^20",
            found: alignment.to_string(),
        });
    }
    Ok(alignment.into())
}

/// Reads one description; `offset` is still relative to the data section.
async fn read_info(window: &mut Window<'_>, index: u64) -> Result<TensorInfo, GgufError> {
    let name: Box<str> = window.string(MAX_NAME, &|| format!("the name of tensor {index}")).await?.into();
    let what = || format!("the description of tensor \"{}\"", shown(&name));
    let wrong = |reason: String| GgufError::Tensor { tensor: shown(&name), reason };
    let n_dims = window.u32(&what).await?;
    if !(1..=MAX_DIMS).contains(&n_dims) {
        return Err(wrong(format!("it has {n_dims} dimensions, but only 1 to {MAX_DIMS} are supported")));
    }
    let mut shape = Vec::new();
    for _ in 0..n_dims {
        let dim = window.u64(&what).await?;
        if dim == 0 {
            return Err(wrong("a dimension is 0".into()));
        }
        shape.push(usize::try_from(dim).map_err(|_| wrong(format!("the dimension {dim} overflows this machine")))?);
    }
    shape.reverse();
    let id = window.u32(&what).await?;
    let format = Format::from_ggml(id).ok_or_else(|| unknown_format(&name, id))?;
    let offset = window.u64(&what).await?;
    let (&k, outer) = shape.split_last().ok_or_else(|| wrong("it has no dimensions".into()))?;
    let row = format.row_bytes(k).map_err(|e| wrong(e.to_string()))?;
    let bytes = outer.iter().try_fold(row as u64, |n, &d| n.checked_mul(d as u64));
    let elements = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    let (Some(bytes), Some(_)) = (bytes, elements) else {
        return Err(wrong(format!("its shape {shape:?} overflows this machine")));
    };
    Ok(TensorInfo { name, format, shape, offset, bytes })
}

/// Makes the offset absolute and checks it against the file. `packed` bounds the size of a data section without gaps: a
/// tensor beyond it is misplaced, and one before it that exceeds the file shows that the file is truncated.
fn place(
    tensor: &mut TensorInfo,
    data_offset: u64,
    alignment: u64,
    packed: u64,
    file_len: u64,
) -> Result<(), GgufError> {
    let wrong = |reason: String| GgufError::Tensor { tensor: shown(&tensor.name), reason };
    if !tensor.offset.is_multiple_of(alignment) {
        return Err(wrong(format!("its offset {} is not a multiple of the alignment {alignment}", tensor.offset)));
    }
    let start = data_offset.checked_add(tensor.offset);
    let range = start.and_then(|s| Some((s, s.checked_add(tensor.bytes)?)));
    let Some((start, end)) = range else {
        return Err(wrong(format!("its offset {} is out of range", tensor.offset)));
    };
    if end > file_len && tensor.offset >= packed {
        return Err(wrong(format!(
            "its offset is out of range: it begins at byte {start}, but the file ends at byte {file_len}"
        )));
    }
    if end > file_len {
        return Err(GgufError::Truncated {
            len: file_len,
            what: format!("the data of tensor \"{}\"", shown(&tensor.name)),
            need: end,
        });
    }
    tensor.offset = start;
    Ok(())
}

/// Checks that no two tensors have the same name.
pub(super) fn check_names(tensors: &[TensorInfo]) -> Result<(), GgufError> {
    let mut seen = HashSet::new();
    match tensors.iter().find(|t| !seen.insert(&*t.name)) {
        Some(twice) => Err(GgufError::Duplicate { what: "tensor", name: shown(&twice.name) }),
        None => Ok(()),
    }
}

fn check_overlap(tensors: &[TensorInfo]) -> Result<(), GgufError> {
    let mut order: Vec<&TensorInfo> = tensors.iter().collect();
    backend_api::sort_by_key(&mut order, |tensor| tensor.offset);
    match order.windows(2).find_map(|w| match w {
        [a, b] if a.offset + a.bytes > b.offset => Some((a, b)),
        _ => None,
    }) {
        Some((a, b)) => Err(GgufError::Tensor {
            tensor: shown(&b.name),
            reason: format!("its data at byte {} overlaps tensor \"{}\"", b.offset, shown(&a.name)),
        }),
        None => Ok(()),
    }
}

fn unknown_format(tensor: &str, id: u32) -> GgufError {
    let found = match GGML_TYPES.iter().find(|(known, _)| *known == id) {
        Some((_, name)) => format!("{name} (ggml type {id})"),
        None => format!("{id}, which ggml does not define"),
    };
    let supported = Format::ALL.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ");
    GgufError::TensorType { tensor: shown(tensor), found, supported }
}

/// Names of ggml's tensor types, for messages about unsupported ones.
const GGML_TYPES: &[(u32, &str)] = &[
    (0, "F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (6, "Q5_0"),
    (7, "Q5_1"),
    (8, "Q8_0"),
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (12, "Q4_K"),
    (13, "Q5_K"),
    (14, "Q6_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (30, "BF16"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
    (40, "NVFP4"),
    (41, "Q1_0"),
    (42, "Q2_0"),
];
