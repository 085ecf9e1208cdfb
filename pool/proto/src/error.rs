//! What may be wrong with a message.

/// A message that was not accepted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProtoError {
    /// The bytes are no Protocol Buffers message of this kind.
    #[error("{message}: not a message of this kind ({cause}); does the sender speak version {version}?", version = crate::VERSION)]
    Malformed {
        /// The message's name.
        message: &'static str,
        /// What the decoder says.
        cause: String,
    },
    /// More of something than a message may have.
    #[error("{message}: {field} is {got}, at most {limit} is allowed; send less at once")]
    TooMuch {
        /// The message's name.
        message: &'static str,
        /// The field's name.
        field: &'static str,
        /// What was sent.
        got: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A field that must be set, or whose value contradicts another.
    #[error("{message}: {field} {problem}")]
    Invalid {
        /// The message's name.
        message: &'static str,
        /// The field's name.
        field: &'static str,
        /// What is wrong with it, and what is asked for.
        problem: &'static str,
    },
}
