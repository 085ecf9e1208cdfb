//! From a GGUF file to text: reader, tokenizers and chat templates. Knows no GPU.
#![forbid(unsafe_code)]

pub mod chat;
pub mod fuzz;
pub mod gguf;
pub mod tokenizer;

pub use chat::{ChatError, ChatTemplate, Message};
pub use gguf::{ByteSource, BytesSource, Gguf, GgufError, Metadata, SourceError, TensorInfo};
pub use tokenizer::{StreamDecoder, Tokenizer, TokenizerError};
