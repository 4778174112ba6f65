//! What went wrong, as the exit code, the sentence and the hint that a user or a supervisor acts on.

use std::fmt;
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
    /// A peer of the swarm refused this one, or trains something else.
    Refused = 6,
    /// Local training failed.
    Training = 7,
    /// A checksum, a ledger or a forecast does not hold.
    Integrity = 8,
    /// Two plans differ. Not an error: nothing is printed for it.
    Differ = 10,
    /// The user insisted: a second interrupt.
    Forced = 130,
}

impl Kind {
    /// The word used for this kind in JSON output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unexpected => "unexpected",
            Self::Unreachable => "unreachable",
            Self::BadInput => "bad-input",
            Self::Refused => "refused",
            Self::Training => "training",
            Self::Integrity => "integrity",
            Self::Differ => "differ",
            Self::Forced => "forced",
        }
    }
}

/// A failed command: its kind, what happened with its causes, and what to do next.
#[derive(Debug)]
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

    /// An exit code without a word: what there is to say has been said.
    pub(crate) const fn silent(kind: Kind) -> Self {
        Self { kind, message: String::new(), hint: None }
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
        ExitCode::from(self.kind as u8)
    }

    /// Prints the failure for a person (stderr) or a program (one JSON object on stdout).
    pub(crate) fn print(&self, json: bool) {
        if self.message.is_empty() {
            return;
        }
        if json {
            let object = serde_json::json!({ "error": {
                "code": self.kind as u8,
                "kind": self.kind.name(),
                "message": self.message,
                "hint": self.hint,
            }});
            crate::out::line(object);
            return;
        }
        eprintln!("error: {}", self.message);
        if let Some(hint) = &self.hint {
            eprintln!("hint: {hint}");
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)
    }
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
