//! From a GGUF file to text: reader, tokenizers and chat templates. Knows no GPU.
#![forbid(unsafe_code)]

pub mod gguf;

pub use gguf::{ByteSource, BytesSource, Gguf, GgufError, Metadata, SourceError, TensorInfo};
