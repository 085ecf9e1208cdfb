//! Errors of formats that cannot be enforced.

/// Error of a refused format. Each message is one line that names the cause and the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FormatError {
    /// The text is not JSON.
    #[error("the schema is not JSON ({0}); give an object such as {{\"type\": \"object\"}}")]
    NotJson(String),
    /// The format is larger than a limit.
    #[error("the format has {found} {what}, and may have {most}; use a simpler one")]
    TooLarge {
        /// Unit of the limit, such as bytes.
        what: &'static str,
        /// Size of the format.
        found: usize,
        /// Largest size.
        most: usize,
    },
    /// A keyword of a schema is not supported.
    #[error(
        "unsupported schema keyword {keyword:?} at {place}; remove it and validate that part of the answer yourself"
    )]
    Keyword {
        /// The keyword.
        keyword: String,
        /// JSON pointer of the schema that has it.
        place: String,
    },
    /// A part of a schema is invalid.
    #[error("the schema at {place} {why}")]
    Schema {
        /// JSON pointer of the part.
        place: String,
        /// The problem and its remedy.
        why: String,
    },
    /// The grammar library has refused a format that looked valid.
    #[error("answers cannot be held to this format ({0}); use a simpler one")]
    Grammar(String),
    /// The tokenizer is not one for text.
    #[error("answers of this model cannot be held to a format, since {0}; use another model")]
    Vocabulary(String),
}
