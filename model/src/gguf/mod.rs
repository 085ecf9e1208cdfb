//! GGUF files, versions 2 and 3. They are read by byte ranges: first the header, later tensors, never the whole file. A
//! split model is read like a single file: the source knows where its files begin.
//!
//! Each count and length is checked against the rest of the file, and against fixed limits, before memory is allocated
//! for it.
//!
//! *Source*: the GGUF specification (`docs/gguf.md` of the ggml project).

mod error;
mod metadata;
mod source;
mod split;
mod tensors;
#[cfg(test)]
mod tests;
mod values;
mod window;
pub(crate) mod writer;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

pub use error::GgufError;
pub(crate) use error::shown;
pub use metadata::{FromValue, Metadata, StringArray, Value};
pub use source::{ByteSource, BytesSource, Files, ReadFuture, SourceError};
pub use split::{SplitError, split_names};
pub use tensors::TensorInfo;

use source::Section;
use window::Window;

/// Most metadata pairs of a file; real ones have fewer than 100.
const MAX_PAIRS: u64 = 1 << 16;
/// Most tensors of a file; the largest known models have a few thousand.
const MAX_TENSORS: u64 = 1 << 17;

/// Header of a GGUF file, or of all files of a split model: everything except the tensor data.
#[derive(Debug, Clone, PartialEq)]
pub struct Gguf {
    /// The version: 2 or 3.
    pub version: u32,
    /// The key-value pairs.
    pub metadata: Metadata,
    /// The tensors, in the order of the file or files.
    pub tensors: Vec<TensorInfo>,
    /// Beginning of the tensor data; for a split model, in the file with the metadata.
    ///
    /// *Units*: bytes from the beginning of the source.
    pub data_offset: u64,
}

impl Gguf {
    /// Reads and checks the header of a file, or those of all files of a split model.
    ///
    /// *Errors*: a file is not a usable GGUF file, the files are not one model, or reading failed.
    pub async fn read(source: &dyn ByteSource) -> Result<Gguf, GgufError> {
        let lengths = source.files();
        let given = lengths.len();
        let (mut files, mut start) = (Vec::new(), 0u64);
        for (index, len) in lengths.into_iter().enumerate() {
            let end = start.checked_add(len).ok_or_else(|| GgufError::TooLarge {
                what: "the size of all files".into(),
                found: len,
                limit: u64::MAX - start,
            })?;
            let file = Gguf::read_file(&Section { source, start, len }).await;
            let mut file = file.map_err(|error| error.in_file(index + 1, given))?;
            file.data_offset = file.data_offset.saturating_add(start);
            file.tensors.iter_mut().for_each(|tensor| tensor.offset += start);
            files.push(file);
            start = end;
        }
        split::join(files)
    }

    /// Reads one file.
    async fn read_file(source: &dyn ByteSource) -> Result<Gguf, GgufError> {
        let mut window = Window::new(source);
        let version = prologue(&mut window, source.len()).await?;
        let tensor_count = window.u64(&|| "the header".into()).await?;
        let pair_count = window.u64(&|| "the header".into()).await?;
        check_count(&window, "the tensor count", tensor_count, MAX_TENSORS, tensors::MIN_INFO_BYTES)?;
        check_count(&window, "the metadata count", pair_count, MAX_PAIRS, values::MIN_PAIR_BYTES)?;

        let metadata = values::read_metadata(&mut window, pair_count).await?;
        let (tensors, data_offset) = tensors::read_tensors(&mut window, tensor_count, &metadata, source.len()).await?;
        Ok(Gguf { version, metadata, tensors, data_offset })
    }

    /// Reads a header that lies in memory.
    ///
    /// *Errors*: as [`Gguf::read`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Gguf, GgufError> {
        let source = BytesSource(bytes);
        let read = pin!(Gguf::read(&source));
        match read.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => {
                let reason = "a read from memory did not finish at once; report this as a bug".into();
                Err(SourceError { offset: 0, len: bytes.len() as u64, reason }.into())
            }
        }
    }

    /// The tensor of that name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.iter().find(|t| &*t.name == name)
    }
}

/// Magic and version.
async fn prologue(window: &mut Window<'_>, len: u64) -> Result<u32, GgufError> {
    let start = window.take(len.min(4) as usize, &|| "the header".into()).await?;
    if start != &b"GGUF"[..start.len()] || start.is_empty() {
        return Err(GgufError::Magic { found: start.to_vec() });
    }
    if start.len() < 4 {
        return Err(GgufError::Truncated { len, what: "the header".into(), need: 4 });
    }
    let version = window.u32(&|| "the header".into()).await?;
    let remedy = match version {
        2 | 3 => return Ok(version),
        1 => "that first layout is obsolete; convert the original model again with a current converter",
        v if v.swap_bytes() <= 3 => "the file is big-endian; convert the original model for little-endian machines",
        _ => "this build reads versions 2 and 3; update it, or download the file again",
    };
    Err(GgufError::Version { version, remedy })
}

fn check_count(window: &Window<'_>, what: &str, count: u64, limit: u64, each: u64) -> Result<(), GgufError> {
    if count > limit {
        return Err(GgufError::TooLarge { what: what.into(), found: count, limit });
    }
    window.check(count, each, &|| format!("the {count} items of {what}"))
}
