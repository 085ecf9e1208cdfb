//! Errors in the format of OpenAI's API.

use anygpu::handle::HandleError;
use anygpu::{ChatError, EngineError, ModelError};
use anygpu_openai::Refusal;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Seconds after which clients should retry.
const RETRY_AFTER: &str = "2";

/// An error response.
#[derive(Debug)]
pub struct ApiError {
    pub status: StatusCode,
    pub message: String,
    /// The field of the request that caused the error.
    pub param: Option<String>,
    pub code: Option<&'static str>,
}

impl ApiError {
    pub fn new(status: StatusCode, message: impl Into<String>) -> ApiError {
        ApiError { status, message: message.into(), param: None, code: None }
    }

    /// Creates an error for an invalid request (400).
    pub fn request(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, message)
    }

    /// Names the field that caused the error.
    #[must_use]
    pub fn about(self, param: &str) -> ApiError {
        ApiError { param: Some(param.into()), ..self }
    }

    /// Adds a code for programs.
    #[must_use]
    pub fn with_code(self, code: &'static str) -> ApiError {
        ApiError { code: Some(code), ..self }
    }

    /// Creates the error for answers that the server's stop has cut off (503).
    pub fn stopping() -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping; ask again when it is back")
            .with_code("stopping")
    }

    fn kind(&self) -> &'static str {
        match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        }
    }

    pub fn json(&self) -> Value {
        let ApiError { message, param, code, .. } = self;
        json!({ "error": { "message": message, "type": self.kind(), "param": param, "code": code } })
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> ApiError {
        let Refusal { message, param, code } = refusal;
        ApiError { param, code, ..ApiError::request(message) }
    }
}

/// Returns the error for a parameter that the model's template does not support.
fn unsupported(error: &ChatError, param: &str) -> ApiError {
    ApiError::request(error.to_string()).about(param).with_code("unsupported_parameter")
}

impl From<HandleError> for ApiError {
    fn from(error: HandleError) -> ApiError {
        let message = error.to_string();
        let error = match error {
            HandleError::Busy { .. } => {
                return ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message).with_code("overloaded");
            }
            HandleError::Stopped => return ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, message),
            HandleError::Engine(error) => error,
        };
        match error {
            EngineError::Unanswered(_) => {
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message).with_code("unanswered")
            }
            EngineError::Model(ModelError::ContextFull { .. } | ModelError::Overflow { .. }) => {
                ApiError::request(message).with_code("context_length_exceeded")
            }
            EngineError::Model(
                ModelError::Options(_)
                | ModelError::Constraint(_)
                | ModelError::Token { .. }
                | ModelError::EmptyPrompt
                | ModelError::NoPooling { .. }
                | ModelError::NoClassifier { .. }
                | ModelError::OnlyScores { .. }
                | ModelError::NoText { .. }
                | ModelError::Diffusion { .. },
            )
            | EngineError::Tokenizer(_)
            | EngineError::Chat(ChatError::Render(_)) => ApiError::request(message),
            EngineError::Chat(ChatError::Role(_)) => ApiError::request(message).about("messages"),
            EngineError::Chat(ChatError::NothingToCall) => ApiError::request(message).about("tool_choice"),
            EngineError::Chat(error @ ChatError::Demanded) => unsupported(&error, "tool_choice"),
            EngineError::Chat(error @ ChatError::Variable(_)) => {
                let effort = ChatError::Variable("reasoning_effort".into());
                unsupported(&error, if error == effort { "reasoning_effort" } else { "chat_template_kwargs" })
            }
            _ => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, message),
        }
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> ApiError {
        HandleError::from(error).into()
    }
}

/// Returns a response with JSON.
pub fn respond(status: StatusCode, value: &Value) -> Response {
    const JSON: (HeaderName, HeaderValue) = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (status, [JSON], value.to_string()).into_response()
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = respond(self.status, &self.json());
        let header = match self.status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, RETRY_AFTER)),
            _ => None,
        };
        let headers = header.map(|(name, value)| (name, HeaderValue::from_static(value)));
        response.headers_mut().extend(headers);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pool_does_not_answer_may_be_asked_again_and_what_is_wrong_may_not() {
        let response = ApiError::from(EngineError::Unanswered("a machine is gone; ask again")).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], RETRY_AFTER);
        let response = ApiError::from(EngineError::from(ModelError::EmptyPrompt)).into_response();
        assert_eq!((response.status(), response.headers().get(header::RETRY_AFTER)), (StatusCode::BAD_REQUEST, None));
    }
}
