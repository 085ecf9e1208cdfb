//! Errors as JavaScript sees them: an `Error` with a `code`.

use js_sys::Reflect;
use wasm_bindgen::JsValue;

/// An `Error` with a `code`.
pub fn coded(code: &str, message: &str) -> js_sys::Error {
    let error = js_sys::Error::new(message);
    set(&error, "code", &code.into());
    error
}

/// Sets a property. That fails for frozen objects only, which these are not.
pub fn set(object: &js_sys::Error, key: &str, value: &JsValue) {
    let _ = Reflect::set(object, &key.into(), value);
}

/// An option that makes no sense.
pub fn options(message: impl std::fmt::Display) -> JsValue {
    coded("options", &message.to_string()).into()
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
    coded(code, &error.to_string()).into()
}
