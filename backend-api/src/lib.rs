//! The contract between models and backends.
#![forbid(unsafe_code)]

mod error;
pub mod format;

pub use error::{Error, Unsupported};
pub use format::Format;
