//! Errors of a stage.

use super::{MAX_ROWS, Seam};

/// Error of a step that does not fit the stage or the sequence. The sequence does not change. Each message is one line
/// and names the cause and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// A step that is not at the end of the sequence.
    #[error(
        "a step at position {asked} was asked for, but this stage's text ends at {end}; send what is missing, or go back \
         first"
    )]
    Position {
        /// Position of the step.
        asked: usize,
        /// End of the sequence.
        end: usize,
    },
    /// A step without rows, or with too many.
    #[error("a step of {rows} rows was asked for, but it takes 1 to {MAX_ROWS}; cut the prompt into pieces")]
    Rows {
        /// Number of rows.
        rows: usize,
    },
    /// Activations of another model, seam or stage, or a wrong number of tokens.
    #[error(
        "{bytes} bytes of activations and {tokens} tokens do not go together here, where {expects}; send what the stage \
         before made, in the chain's seam"
    )]
    Input {
        /// Received bytes of activations.
        bytes: usize,
        /// Received tokens.
        tokens: usize,
        /// Description of a correct input.
        expects: String,
    },
    /// Numbers that are NaN, infinite, or too large for half precision.
    #[error(
        "activations are NaN, infinite or too large for a seam of {seam}; choose a seam of f32, or check the weights"
    )]
    NotFinite {
        /// Dtype of the activations.
        seam: Seam,
    },
    /// A token was requested from a stage without a head.
    #[error("blocks {start} to {end} have no head to choose a token with; ask the last stage of the chain")]
    NoHead {
        /// The first block.
        start: usize,
        /// The block after the last one.
        end: usize,
    },
}
