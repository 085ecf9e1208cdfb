//! Errors of an engine.

use model::{ChatError, DraftError, GgufError, ModelError, TokenizerError};

use crate::report::Report;

/// Any error of an engine. Each message is one line and names the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An error of the file or the request.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// An error of the file's tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// An error of the file's chat template, or of the conversation.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// The file cannot be opened.
    #[error("cannot open the model {path:?}: {reason}; give the path of a GGUF file")]
    File {
        /// The path.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// No backend passed the selection.
    #[error("no backend can run this: {}; choose another backend, or update the graphics driver", .0.reasons())]
    NoBackend(Report),
    /// The remote engine that computes answers ([`elsewhere`](crate::handle::elsewhere)) did not give one. A retry may
    /// succeed.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("{0}")]
    Unanswered(&'static str),
}

impl From<GgufError> for EngineError {
    fn from(error: GgufError) -> EngineError {
        ModelError::from(error).into()
    }
}

impl From<DraftError> for EngineError {
    fn from(error: DraftError) -> EngineError {
        ModelError::from(error).into()
    }
}

impl From<backend_api::Error> for EngineError {
    fn from(error: backend_api::Error) -> EngineError {
        ModelError::from(error).into()
    }
}
