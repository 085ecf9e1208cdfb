//! Errors of the engine as JavaScript sees them.

use anygpu::{EngineError, GgufError, ModelError};
use wasm_bindgen::JsValue;

pub use crate::error::options;
use crate::error::{backend, coded, set};

/// Any error of the engine.
pub fn engine(error: &EngineError) -> JsValue {
    let coded = |code| coded(code, &error.to_string());
    let error = match error {
        EngineError::Model(error) => return model(error),
        EngineError::Tokenizer(_) | EngineError::File { .. } => coded("file"),
        EngineError::Chat(_) => coded("template"),
        EngineError::NoBackend(report) => {
            let error = coded("no_backend");
            set(&error, "report", &serde_json::to_string(report).unwrap_or_default().into());
            error
        }
    };
    error.into()
}

fn model(error: &ModelError) -> JsValue {
    let code = match error {
        ModelError::Source(_) | ModelError::Gguf(GgufError::Source(_)) => "source",
        ModelError::Gguf(_)
        | ModelError::Architecture { .. }
        | ModelError::Hyper { .. }
        | ModelError::MissingTensor { .. }
        | ModelError::Tensor { .. } => "file",
        ModelError::NotANumber { .. } | ModelError::NoEmbedding => "not_a_number",
        ModelError::ContextFull { .. } | ModelError::Overflow { .. } => "context",
        ModelError::Context { .. }
        | ModelError::EmptyPrompt
        | ModelError::Token { .. }
        | ModelError::NoPooling { .. }
        | ModelError::NoClassifier { .. }
        | ModelError::OnlyScores { .. }
        | ModelError::NoText { .. }
        | ModelError::Diffusion { .. }
        | ModelError::Snapshot(_)
        | ModelError::Draft(_)
        | ModelError::Stage(_)
        | ModelError::Constraint(_)
        | ModelError::Options(_) => "options",
        ModelError::Experts { .. } | ModelError::Memory { .. } => "memory",
        ModelError::Backend(error) => return backend(error),
    };
    coded(code, &error.to_string()).into()
}
