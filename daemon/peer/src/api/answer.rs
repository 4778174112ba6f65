//! What is answered: JSON objects, and errors in the words of the command line.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::{Error, ErrorKind};

/// A JSON object; it is old at once.
pub(super) fn json(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => typed("application/json", text),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, ErrorKind::Unexpected, &error.to_string()),
    }
}

/// A text of this type; it is old at once.
pub(super) fn typed(kind: &'static str, text: impl Into<axum::body::Body>) -> Response {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// An error with this message.
pub(super) fn refuse(status: StatusCode, kind: ErrorKind, message: &str) -> Response {
    fail(status, &Error::new(kind, message))
}

/// An error: the same object that commands print with `--json`.
pub fn fail(status: StatusCode, failure: &Error) -> Response {
    let error = serde_json::json!({ "error": failure.to_json() });
    let mut response = typed("application/json", error.to_string());
    *response.status_mut() = status;
    response.into_response()
}
