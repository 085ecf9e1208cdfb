//! Faults of GGUF files.

use super::source::SourceError;
use super::split::SplitError;

/// A name from a file as messages show it: on one line, and not too long.
pub(crate) fn shown(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}

/// A file that cannot be used. Each message is one line and names the cause and the remedy.
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
    /// A version that this reader does not know.
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
        /// The part that is cut off.
        what: String,
        /// Bytes that the part needs, from the beginning of the file.
        need: u64,
    },
    /// A length or count above what any model needs.
    #[error("{what} is {found}, above the limit of {limit}: the file is damaged or hostile; download it again")]
    TooLarge {
        /// Things that are counted.
        what: String,
        /// The value in the file.
        found: u64,
        /// The largest accepted value.
        limit: u64,
    },
    /// A string that is not UTF-8.
    #[error("{what} is not UTF-8 text: the file is damaged; download it again")]
    Utf8 {
        /// Which string.
        what: String,
    },
    /// A metadata value type that does not exist, or is not allowed there.
    #[error("metadata key \"{key}\" has {found}; convert the model again with a current converter")]
    ValueType {
        /// The metadata key.
        key: String,
        /// The type found.
        found: String,
    },
    /// A name that occurs twice.
    #[error("the {what} \"{name}\" occurs twice: the file is damaged; download or convert it again")]
    Duplicate {
        /// Metadata key or tensor.
        what: &'static str,
        /// The repeated name.
        name: String,
    },
    /// A tensor whose description makes no sense.
    #[error("tensor \"{tensor}\": {reason}; download or convert the file again")]
    Tensor {
        /// Name of the tensor.
        tensor: String,
        /// Fault of the tensor.
        reason: String,
    },
    /// A tensor type that this build cannot compute with.
    #[error(
        "tensor \"{tensor}\" has the type {found}, which this build lacks: choose a file quantised to one of {supported}"
    )]
    TensorType {
        /// Name of the tensor.
        tensor: String,
        /// The type in the file.
        found: String,
        /// All types that this build takes.
        supported: String,
    },
    /// A metadata key that is needed and absent.
    #[error("metadata key \"{key}\" ({expected}) is missing; convert the model again with a current converter")]
    MissingKey {
        /// The metadata key.
        key: String,
        /// The type wanted.
        expected: &'static str,
    },
    /// A metadata value of an unusable type or magnitude.
    #[error(
        "metadata key \"{key}\" should be {expected} but is {found}; convert the model again with a current converter"
    )]
    WrongValue {
        /// The metadata key.
        key: String,
        /// The type wanted.
        expected: &'static str,
        /// The type or value found.
        found: String,
    },
    /// Files that are not one whole split model.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// One of several files cannot be used.
    #[error("of the {given} files that are given, number {index}: {error}")]
    File {
        /// Its place among those given, from 1 on.
        index: usize,
        /// Number of files given.
        given: usize,
        /// Fault of the file.
        error: Box<GgufError>,
    },
}

impl GgufError {
    /// Names the file, if there are several. Errors of a source stay as they are: it knows its files itself.
    pub(super) fn in_file(self, index: usize, given: usize) -> GgufError {
        match self {
            GgufError::Source(_) => self,
            _ if given == 1 => self,
            error => GgufError::File { index, given, error: Box::new(error) },
        }
    }
}
