//! Formats that answers cannot be held to.

/// A format that is refused. Each message is one line and names the cause and the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FormatError {
    /// A text that is no JSON.
    #[error("the schema is no JSON ({0}); give an object such as {{\"type\": \"object\"}}")]
    NotJson(String),
    /// More than is taken on.
    #[error("the format has {found} {what}, and may have {most}; use a simpler one")]
    TooLarge {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// A keyword that answers cannot be held to.
    #[error("{keyword:?} at {place} is not supported in schemas; leave it out, and check that of the answer yourself")]
    Keyword {
        /// The keyword.
        keyword: String,
        /// The JSON pointer of the schema that has it.
        place: String,
    },
    /// A part of a schema that is not as it must be.
    #[error("the schema at {place} {why}")]
    Schema {
        /// The JSON pointer of the part.
        place: String,
        /// What is wrong with it, and the remedy.
        why: String,
    },
    /// What the library that makes grammars says of a format that looked sound.
    #[error("answers cannot be held to this format ({0}); use a simpler one")]
    Grammar(String),
    /// A tokenizer that is not made for text.
    #[error("answers of this model cannot be held to a format, since {0}; use another model")]
    Vocabulary(String),
}
