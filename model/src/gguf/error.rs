//! Errors of GGUF files.

use super::source::SourceError;
use super::split::SplitError;

/// Formats a name from a file for messages: on one line, and not too long.
pub(crate) fn shown(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}

/// Error of a file that cannot be used. Each message is one line and names the cause and the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GgufError {
    /// The bytes could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The first four bytes are not `GGUF`.
    #[error("this is not a GGUF file: it begins with {found:02x?} instead of \"GGUF\"; choose a .gguf model file")]
    Magic {
        /// The first bytes of the file, at most four.
        found: Vec<u8>,
    },
    /// The version is not supported.
    #[error("GGUF version {version} is not supported: {remedy}")]
    Version {
        /// The version of the file.
        version: u32,
        /// Advice to the user.
        remedy: &'static str,
    },
    /// The file is shorter than its own description.
    #[error("the file is truncated: it ends at byte {len} inside {what}, which needs {need}; download it again")]
    Truncated {
        /// Size of the file in bytes.
        len: u64,
        /// Part of the file that is cut off.
        what: String,
        /// Bytes that the part needs, from the beginning of the file.
        need: u64,
    },
    /// A length or count above what any model needs.
    #[error("{what} is {found}, above the limit of {limit}: the file is damaged or hostile; download it again")]
    TooLarge {
        /// Name of the count.
        what: String,
        /// Value in the file.
        found: u64,
        /// Largest accepted value.
        limit: u64,
    },
    /// A string that is not UTF-8.
    #[error("{what} is not UTF-8 text: the file is damaged; download it again")]
    Utf8 {
        /// Name of the string.
        what: String,
    },
    /// A metadata value has an unknown type, or one that is not allowed there.
    #[error("metadata key \"{key}\" has {found}; convert the model again with a current converter")]
    ValueType {
        /// The metadata key.
        key: String,
        /// Type in the file.
        found: String,
    },
    /// A name occurs twice.
    #[error("the {what} \"{name}\" occurs twice: the file is damaged; download or convert it again")]
    Duplicate {
        /// Metadata key or tensor.
        what: &'static str,
        /// The repeated name.
        name: String,
    },
    /// A tensor's description is invalid.
    #[error("tensor \"{tensor}\": {reason}; download or convert the file again")]
    Tensor {
        /// Name of the tensor.
        tensor: String,
        /// Reason why it is refused.
        reason: String,
    },
    /// A tensor's type is not supported.
    #[error(
        "tensor \"{tensor}\" has the type {found}, which this build lacks: choose a file quantised to one of {supported}"
    )]
    TensorType {
        /// Name of the tensor.
        tensor: String,
        /// Type in the file.
        found: String,
        /// Supported types.
        supported: String,
    },
    /// A required metadata key is missing.
    #[error("metadata key \"{key}\" ({expected}) is missing; convert the model again with a current converter")]
    MissingKey {
        /// The metadata key.
        key: String,
        /// Expected type.
        expected: &'static str,
    },
    /// A metadata value has an unusable type or magnitude.
    #[error(
        "metadata key \"{key}\" should be {expected} but is {found}; convert the model again with a current converter"
    )]
    WrongValue {
        /// The metadata key.
        key: String,
        /// Expected type.
        expected: &'static str,
        /// Type or value in the file.
        found: String,
    },
    /// The files are not a complete split model.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// One of several files cannot be used.
    #[error("of the {given} files that are given, number {index}: {error}")]
    File {
        /// Position among the given files, from 1.
        index: usize,
        /// Number of files given.
        given: usize,
        /// Error of the file.
        error: Box<GgufError>,
    },
}

impl GgufError {
    /// Names the file, if there are several. Errors of a source stay as they are, since they name the file already.
    pub(super) fn in_file(self, index: usize, given: usize) -> GgufError {
        match self {
            GgufError::Source(_) => self,
            _ if given == 1 => self,
            error => GgufError::File { index, given, error: Box::new(error) },
        }
    }
}
