//! Refusals of a stage.

use super::{MAX_ROWS, Seam};

/// A step that does not fit the stage or its text. The text is as it was before. Each message is one line and names the
/// cause and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// A step elsewhere than at the end of the text.
    #[error(
        "a step at position {asked} was asked for, but this stage's text ends at {end}; send what is missing, or go back \
         first"
    )]
    Position {
        /// Where the step was to begin.
        asked: usize,
        /// Where the text ends.
        end: usize,
    },
    /// No rows, or too many.
    #[error("a step of {rows} rows was asked for, but it takes 1 to {MAX_ROWS}; cut the prompt into pieces")]
    Rows {
        /// The rows.
        rows: usize,
    },
    /// Activations of another model, seam or stage, or tokens that do not go with them.
    #[error(
        "{bytes} bytes of activations and {tokens} tokens do not go together here, where {expects}; send what the stage \
         before made, in the chain's seam"
    )]
    Input {
        /// Bytes that came.
        bytes: usize,
        /// Tokens that came.
        tokens: usize,
        /// Value that would be right.
        expects: String,
    },
    /// Numbers that are NaN or infinite, or that halves cannot hold.
    #[error(
        "activations are NaN, infinite or too large for a seam of {seam}; choose a seam of f32, or check the weights"
    )]
    NotFinite {
        /// Dtype of the activations.
        seam: Seam,
    },
    /// A token was asked of a stage without a head.
    #[error("blocks {start} to {end} have no head to choose a token with; ask the last stage of the chain")]
    NoHead {
        /// The first block.
        start: usize,
        /// The block after the last one.
        end: usize,
    },
}
