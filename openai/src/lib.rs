//! Requests and answers of OpenAI's API as data: the fields of requests and what their values may be, conversations and
//! tools, formats, choices and their chunks, usage. The server and the module for JavaScript use it.
//!
//! Each field is a row of a table ([`FIELDS`]), which the documentation lists too.

mod answer;
mod choice;
mod error;
mod fields;
mod format;
mod messages;
mod request;
mod rerank;

pub use answer::{Head, Shape, timings, usage};
pub use choice::{Choice, Ended};
pub use error::Refusal;
pub use fields::{Kind, Notes, Rule, Table};
pub use format::{Asked, Format};
pub use messages::{conversation, unread_name};
pub use request::{AnswerOptions, EmbedRequest, FIELDS, Prompt, TextRequest, random};
pub use rerank::{RerankRequest, ranked};
