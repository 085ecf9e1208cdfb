//! Errors as JavaScript sees them: an `Error` with a `code`.

use ::engine::EngineError;
use js_sys::Reflect;
use model::{GgufError, ModelError};
use wasm_bindgen::JsValue;

/// An `Error` with a `code`.
pub fn coded(code: &str, message: &str) -> JsValue {
    let error = js_sys::Error::new(message);
    set(&error, "code", &code.into());
    error.into()
}

/// Sets a property. That fails for frozen objects only, which these are not.
fn set(object: &js_sys::Error, key: &str, value: &JsValue) {
    let _ = Reflect::set(object, &key.into(), value);
}

/// An option that makes no sense.
pub fn options(message: impl std::fmt::Display) -> JsValue {
    coded("options", &message.to_string())
}

/// Any error of the engine.
pub fn engine(error: &EngineError) -> JsValue {
    let coded = |code| coded(code, &error.to_string());
    match error {
        EngineError::Model(error) => model(error),
        EngineError::Tokenizer(_) => coded("file"),
        EngineError::Chat(_) => coded("template"),
        EngineError::NoBackend(report) => {
            let js = js_sys::Error::new(&error.to_string());
            set(&js, "code", &"no_backend".into());
            set(&js, "report", &serde_json::to_string(report).unwrap_or_default().into());
            js.into()
        }
    }
}

fn model(error: &ModelError) -> JsValue {
    let code = match error {
        ModelError::Source(_) | ModelError::Gguf(GgufError::Source(_)) => "source",
        ModelError::Gguf(_)
        | ModelError::Architecture { .. }
        | ModelError::Hyper { .. }
        | ModelError::MissingTensor { .. }
        | ModelError::Tensor { .. } => "file",
        ModelError::ContextFull { .. } => "context",
        ModelError::Context { .. } | ModelError::EmptyPrompt | ModelError::Token { .. } | ModelError::Options(_) => {
            "options"
        }
        ModelError::Backend(error) => return backend(error),
    };
    coded(code, &error.to_string())
}

/// Any error of a backend.
pub fn backend(error: &backend_api::Error) -> JsValue {
    use backend_api::Error;
    let code = match error {
        Error::Invalid(_) => "options",
        Error::Unsupported(_) => "unsupported",
        Error::Limit { .. } => "limit",
        Error::OutOfMemory { .. } => "memory",
        Error::Absent { .. } => "absent",
        Error::Lost(_) => "lost",
        Error::Driver(_) => "driver",
    };
    coded(code, &error.to_string())
}
