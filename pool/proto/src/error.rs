//! Faults of a message.

/// A message that was not accepted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProtoError {
    /// The bytes are no Protocol Buffers message of this kind.
    #[error("{message}: not a message of this kind ({cause}); does the sender speak version {version}?", version = crate::VERSION)]
    Malformed {
        /// The message's name.
        message: &'static str,
        /// Message of the decoder.
        cause: String,
    },
    /// More of something than a message may have.
    #[error("{message}: {field} is {got}, at most {limit} is allowed; send less at once")]
    TooMuch {
        /// The message's name.
        message: &'static str,
        /// The field's name.
        field: &'static str,
        /// Size or count that was sent.
        got: u64,
        /// Largest that is allowed.
        limit: u64,
    },
    /// A field that must be set, or whose value contradicts another.
    #[error("{message}: {field} {problem}")]
    Invalid {
        /// The message's name.
        message: &'static str,
        /// The field's name.
        field: &'static str,
        /// The fault, and the expected form.
        problem: &'static str,
    },
}
