//! Answers of the interface: JSON objects, and errors worded as on the command line.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::{Error, ErrorKind};

/// A response with a JSON object, which must not be cached.
pub(super) fn json(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => typed("application/json", text),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, ErrorKind::Unexpected, &error.to_string()),
    }
}

/// A response with text of this type, which must not be cached.
pub(super) fn typed(kind: &'static str, text: impl Into<axum::body::Body>) -> Response {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A response with an error of this kind and message.
pub(super) fn refuse(status: StatusCode, kind: ErrorKind, message: &str) -> Response {
    fail(status, &Error::new(kind, message))
}

/// A response with an error, as the object that commands print with `--json`.
pub fn fail(status: StatusCode, failure: &Error) -> Response {
    let error = serde_json::json!({ "error": failure.to_json() });
    let mut response = typed("application/json", error.to_string());
    *response.status_mut() = status;
    response.into_response()
}
