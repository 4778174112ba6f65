//! Refusals of a trainer's requests.

use std::fmt;

use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use mingle_peer::{Error, ErrorKind, api};

/// A refusal of a request: status, error and hint, and for `409` a reason.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: Error,
    reason: Option<Reason>,
}

/// The reason for a `409`, for programs: the value of the header `mingle-reason`.
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
    /// The number of rounds is not known yet.
    Rounds,
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
            Self::Rounds => "rounds",
        }
    }
}

impl Refusal {
    /// A refusal with `400`: the request cannot be used.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorKind::BadInput, message)
    }

    /// A refusal with `409`: not now, or not by this trainer.
    pub(crate) fn conflict(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason: Some(reason), ..Self::new(StatusCode::CONFLICT, ErrorKind::Refused, message) }
    }

    /// A refusal with `404`: nothing is there.
    pub(crate) fn nothing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorKind::BadInput, message)
    }

    /// A refusal with this status.
    pub(crate) fn new(status: StatusCode, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { status, error: Error::new(kind, message.into()), reason: None }
    }

    /// A refusal with `410`: the peer has failed.
    pub(crate) fn gone(error: Error) -> Self {
        Self { status: StatusCode::GONE, error, reason: None }
    }

    /// Adds a hint on what to do next.
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
