//! Structured output: answers that are JSON, follow a JSON schema, or match a regular expression.
//!
//! ```
//! use anygpu_constrain::{Format, Vocabulary};
//! use model::{BytesSource, Gguf, GenerateOptions, Tokenizer};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   let file = std::fs::read("../models/gab-q4_0.gguf")?;
//! #   let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! #   let source = BytesSource(&file);
//! #   let reading = std::pin::pin!(Gguf::read(&source)).poll(&mut context);
//! #   let std::task::Poll::Ready(gguf) = reading else { unreachable!() };
//! #   let tokenizer = Tokenizer::from_metadata(&gguf?.metadata)?;
//!     let vocabulary = Vocabulary::new(&tokenizer)?; // once for a model
//!     let schema = serde_json::json!({ "type": "object", "properties": { "age": { "type": "integer" } } });
//!     let grammar = vocabulary.grammar(&Format::Schema(schema))?;
//!     let options = GenerateOptions { constraint: Some(grammar.constraint()), ..GenerateOptions::default() };
//! #   drop(options);
//! #   use std::future::Future;
//!     Ok(())
//! }
//! ```
//!
//! Formats are untrusted input. Their size, their depth and the work that they cause are bounded, and formats that
//! cannot be enforced are refused. [`schema`] lists what a schema may have.
#![forbid(unsafe_code)]

mod before;
mod calls;
mod dead_ends;
mod error;
mod format;
mod grammar;
mod one_of;
mod pattern;
mod pointer;
pub mod schema;
mod vocabulary;

pub use error::FormatError;
pub use format::Format;
pub use grammar::Grammar;
pub use vocabulary::Vocabulary;
