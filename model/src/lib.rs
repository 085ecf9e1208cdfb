//! From a GGUF file to text: reader, tokenizers, chat templates, architectures, generation. Knows no GPU.
//!
//! A file is read ([`Gguf`]), understood ([`Recipe`]), loaded onto a backend ([`Model`]) and run ([`Session`]).
#![forbid(unsafe_code)]

pub mod arch;
pub mod chat;
mod error;
pub mod fuzz;
mod generate;
pub mod gguf;
mod host;
mod load;
mod session;
mod stop;
pub mod tokenizer;

pub use arch::{Head, KvCache, Recipe, Sizes};
pub use chat::{ChatError, ChatTemplate, Message};
pub use error::ModelError;
pub use generate::{Finish, GenerateOptions, Generation, Piece, Sampling};
pub use gguf::{ByteSource, BytesSource, Gguf, GgufError, Metadata, SourceError, TensorInfo};
pub use host::{Host, Turn, finish_read, read_rows};
pub use load::Model;
pub use session::Session;
pub use tokenizer::{StreamDecoder, Tokenizer, TokenizerError};
