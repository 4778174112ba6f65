//! What a trainer is told when it cannot have what it asks for.

use std::fmt;

use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use mingle_peer::{Error, ErrorKind, api};

/// A refusal: what is wrong with a request, and what to do.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: Error,
    reason: Option<Reason>,
}

/// Why a trainer is told `409`, in a word for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Another trainer is attached, and its process runs.
    Busy,
    /// Another trainer is attached that may be gone: its process cannot be seen.
    Unseen,
    /// The peer trains another model.
    Task,
    /// The session is over.
    Session,
    /// The order is not the present one.
    Order,
    /// The run is over.
    Over,
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Unseen => "unseen",
            Self::Task => "task",
            Self::Session => "session",
            Self::Order => "order",
            Self::Over => "over",
        }
    }
}

impl Refusal {
    /// What was sent cannot be used.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorKind::BadInput, message)
    }

    /// Not now, or not by this trainer.
    pub(crate) fn conflict(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason: Some(reason), ..Self::new(StatusCode::CONFLICT, ErrorKind::Refused, message) }
    }

    /// Nothing is there.
    pub(crate) fn nothing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorKind::BadInput, message)
    }

    /// A refusal with this status.
    pub(crate) fn new(status: StatusCode, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { status, error: Error::new(kind, message.into()), reason: None }
    }

    /// The peer has failed.
    pub(crate) fn gone(error: Error) -> Self {
        Self { status: StatusCode::GONE, error, reason: None }
    }

    /// With what to try next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.error = self.error.hint(hint);
        self
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> u16 {
        self.status.as_u16()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = api::fail(self.status, &self.error);
        if let Some(reason) = self.reason {
            response.headers_mut().insert("mingle-reason", HeaderValue::from_static(reason.name()));
        }
        response
    }
}
