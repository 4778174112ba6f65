//! What went wrong, as the exit code, the sentence and the hint that a user or a supervisor acts on.

mod network;

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The kinds of failure that a caller can tell apart by the exit code. The numbers are a public contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something that the program did not foresee.
    Unexpected = 1,
    /// No peer could be reached, or an address could not be used.
    Unreachable = 3,
    /// A configuration, plan, topology or data set that cannot be used.
    BadInput = 4,
    /// What was waited for did not come in time.
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

/// The exit code of `plan diff` when the plans differ: an answer, not a failure.
pub(crate) const DIFFERENT: u8 = 10;

impl Kind {
    /// All of them, ascending by code.
    pub(crate) const ALL: [Self; 8] = [
        Self::Unexpected,
        Self::Unreachable,
        Self::BadInput,
        Self::TimedOut,
        Self::Refused,
        Self::Training,
        Self::Integrity,
        Self::Forced,
    ];

    /// The kind with this exit code.
    pub(crate) fn of_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u64 == code)
    }

    /// The word used for this kind in JSON output.
    pub(crate) fn name(self) -> &'static str {
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

/// A failed command: its kind, what happened with its causes, and what to do next.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

/// The result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure of `kind` that says `message`.
    pub(crate) fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), hint: None }
    }

    /// The same failure with a hint: the next thing to try.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether this failure is of `kind`.
    pub(crate) fn is(&self, kind: Kind) -> bool {
        self.kind == kind
    }

    /// The exit code of this failure.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    /// The exit code as a number.
    pub(crate) fn code(&self) -> u8 {
        self.kind as u8
    }

    /// The word for the kind of failure.
    pub(crate) fn kind_name(&self) -> &'static str {
        self.kind.name()
    }

    /// The failure as an object: code, kind, message, hint.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "code": self.kind as u8,
            "kind": self.kind.name(),
            "message": self.message,
            "hint": self.hint,
        })
    }

    /// Prints the failure for a person (stderr) or a program (one JSON object on stdout).
    pub(crate) fn print(&self, json: bool) {
        if json {
            crate::out::line(serde_json::json!({ "error": self.to_json() }));
            return;
        }
        crate::out::remark(format_args!("error: {}", self.message));
        if let Some(hint) = &self.hint {
            crate::out::remark(format_args!("hint: {hint}"));
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)
    }
}

/// A file that could not be written.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(Kind::BadInput, format!("cannot write {}: {error}", path.display()));
    if is_full_disk(error) {
        return failure.hint("free some room on that disk, then do the same again: a peer goes on where it was");
    }
    failure
}

/// Whether the same write may succeed once something else on the disk is deleted.
pub(crate) fn is_full_disk(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Turns any error into a [`Failure`] with a kind and the thing that was being done.
pub(crate) trait OrFail<T> {
    /// Fails with `kind`, saying what was being done and why it did not work.
    fn or_fail(self, kind: Kind, doing: impl fmt::Display) -> Outcome<T>;
}

impl<T, E: fmt::Display> OrFail<T> for Result<T, E> {
    fn or_fail(self, kind: Kind, doing: impl fmt::Display) -> Outcome<T> {
        self.map_err(|error| Failure::new(kind, format!("{doing}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_write_for_want_of_room_is_told_to_make_some() {
        let hint = |kind: io::ErrorKind| cannot_write(Path::new("model"), &kind.into()).hint;
        assert!(hint(io::ErrorKind::StorageFull).is_some_and(|hint| hint.contains("free some room")));
        assert!(hint(io::ErrorKind::QuotaExceeded).is_some());
        assert!(hint(io::ErrorKind::PermissionDenied).is_none());
    }
}
