//! Errors of a peer: their kind, the failed operation, the cause, and a hint.

mod network;

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The kinds of error that callers distinguish.
///
/// Each has a number ([`code`](Self::code)) and a word ([`name`](Self::name)) that stay the same between releases:
/// events and answers of the local interface carry them, and `mingle` exits with the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// An error that the program did not foresee.
    Unexpected = 1,
    /// No peer could be reached, or an address could not be used.
    Unreachable = 3,
    /// A configuration, plan, topology or data set that cannot be used.
    BadInput = 4,
    /// An awaited event did not come in time.
    TimedOut = 5,
    /// A peer of the swarm refused this one, or trains something else.
    Refused = 6,
    /// Local training failed.
    Training = 7,
    /// A checksum, a ledger or a forecast does not hold.
    Integrity = 8,
    /// The user insisted: a second interrupt.
    Forced = 130,
}

impl ErrorKind {
    /// All kinds, ascending by number.
    pub const ALL: [Self; 8] = [
        Self::Unexpected,
        Self::Unreachable,
        Self::BadInput,
        Self::TimedOut,
        Self::Refused,
        Self::Training,
        Self::Integrity,
        Self::Forced,
    ];

    /// Number of the kind.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The kind with this number.
    pub fn of_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| u64::from(kind.code()) == code)
    }

    /// Word for the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unexpected => "unexpected",
            Self::Unreachable => "unreachable",
            Self::BadInput => "bad-input",
            Self::TimedOut => "timed-out",
            Self::Refused => "refused",
            Self::Training => "training",
            Self::Integrity => "integrity",
            Self::Forced => "forced",
        }
    }
}

/// The error of an operation of a peer.
///
/// It prints as the failed operation or the fault; [`source`](StdError::source) is the cause. `{error:#}` prints both
/// in one line.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    source: Option<ErrorSource>,
}

/// The cause of an error.
#[derive(Clone, Debug)]
enum ErrorSource {
    Cause(Arc<dyn StdError + Send + Sync>),
    /// The cause already printed as this error's message: only its own source is shown.
    Itself(Arc<dyn StdError + Send + Sync>),
}

/// The result type of this crate.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` with this message.
    pub fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), hint: None, source: None }
    }

    /// An error of `kind` with the message of `error`.
    pub fn of(kind: ErrorKind, error: impl StdError + Send + Sync + 'static) -> Self {
        let message = error.to_string();
        Self { kind, message, hint: None, source: Some(ErrorSource::Itself(Arc::new(error))) }
    }

    /// Adds a hint on what to try next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint, if there is one.
    #[must_use]
    pub fn hint_if_any(self, hint: Option<impl Into<String>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(ErrorSource::Cause(Arc::from(source.into())));
        self
    }

    /// Kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns `true` if the error is of `kind`.
    pub fn is(&self, kind: ErrorKind) -> bool {
        self.kind == kind
    }

    /// The hint on what to try next, if there is one.
    pub fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The error as an object: code, kind, message, hint.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "code": self.kind.code(),
            "kind": self.kind.name(),
            "message": format!("{self:#}"),
            "hint": self.hint,
        })
    }

    /// The error of a file that could not be written.
    pub fn cannot_write(path: &Path, error: &io::Error) -> Self {
        let failure = Self::new(ErrorKind::BadInput, format!("cannot write {}: {error}", path.display()));
        if is_full_disk(error) {
            return failure.hint("free some room on that disk, then do the same again: a peer goes on where it was");
        }
        failure.hint_if_any(write_hint(error))
    }
}

/// The hint to one who may not write somewhere.
pub(crate) fn write_hint(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => {
            Some("that disk can only be read: name a folder on another one, or mount it to be written")
        }
        io::ErrorKind::PermissionDenied => {
            Some("this user may not write there: name a folder of this user, or start as the user to whom it belongs")
        }
        _ => None,
    }
}

/// The message; with `{:#}` also its causes, in the same line.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() { f.write_str(&with_causes(self)) } else { f.write_str(&self.message) }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self.source.as_ref()? {
            ErrorSource::Cause(cause) => Some(&**cause),
            ErrorSource::Itself(error) => error.source(),
        }
    }
}

/// The message of an error and its causes, in one line.
pub fn with_causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// Returns `true` if the same write may succeed once other files on the disk are deleted.
pub fn is_full_disk(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Conversion of any error into an [`Error`] with a kind and the failed operation.
pub trait Context<T> {
    /// Fails with `kind` and the operation as the message; the error itself becomes the source.
    fn context(self, kind: ErrorKind, doing: impl fmt::Display) -> Result<T>;
}

impl<T, E: Into<Box<dyn StdError + Send + Sync>>> Context<T> for std::result::Result<T, E> {
    fn context(self, kind: ErrorKind, doing: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Error::new(kind, doing).caused_by(error))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_error_keeps_what_caused_it() {
        let caused: Result = Err(io::Error::other("no luck")).context(ErrorKind::BadInput, "cannot read plan.json");
        let error = caused.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.kind()), ("cannot read plan.json", ErrorKind::BadInput));
        assert_eq!(format!("{error:#}"), "cannot read plan.json: no luck");
        assert!(error.source().unwrap().downcast_ref::<io::Error>().is_some());
    }

    #[test]
    fn who_cannot_write_for_want_of_room_is_told_to_make_some() {
        let hint = |kind: io::ErrorKind| Error::cannot_write(Path::new("model"), &kind.into()).hint;
        assert!(hint(io::ErrorKind::StorageFull).is_some_and(|hint| hint.contains("free some room")));
        assert!(hint(io::ErrorKind::QuotaExceeded).is_some());
        assert!(hint(io::ErrorKind::InvalidInput).is_none());
    }

    #[test]
    fn who_may_not_write_somewhere_is_told_why() {
        let hint = |kind: io::ErrorKind| Error::cannot_write(Path::new("model"), &kind.into()).hint.unwrap_or_default();
        assert!(hint(io::ErrorKind::ReadOnlyFilesystem).contains("only be read"));
        assert!(hint(io::ErrorKind::PermissionDenied).contains("this user may not write"));
    }
}
