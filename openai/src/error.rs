//! Reasons why a request is refused.

/// A request that cannot be answered as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Cause and remedy.
    pub message: String,
    /// The field that caused it.
    pub param: Option<String>,
    /// A code for programs.
    pub code: Option<&'static str>,
}

impl Refusal {
    /// Creates a refusal of the whole request.
    pub fn new(message: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), param: None, code: None }
    }

    /// Names the field that caused it.
    #[must_use]
    pub fn about(self, param: &str) -> Refusal {
        Refusal { param: Some(param.into()), ..self }
    }

    /// Adds a code for programs.
    #[must_use]
    pub fn with_code(self, code: &'static str) -> Refusal {
        Refusal { code: Some(code), ..self }
    }
}
