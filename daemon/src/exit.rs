//! How the program says that it failed, and the code that it exits with.

use std::process::ExitCode;

use mingle_peer::Error;

use crate::out;

/// The exit code of `plan diff` when the plans differ: an answer, not a failure.
pub(crate) const DIFFERENT: u8 = 10;

/// The exit code that belongs to an error: the number of its kind.
pub(crate) fn code(error: &Error) -> ExitCode {
    ExitCode::from(error.kind().code())
}

/// Prints an error for a person (stderr) or a program (one JSON object on stdout).
pub(crate) fn print(error: &Error, json: bool) {
    if json {
        out::line(serde_json::json!({ "error": error.to_json() }));
        return;
    }
    out::remark(format_args!("error: {error:#}"));
    if let Some(hint) = error.next_step() {
        out::remark(format_args!("hint: {hint}"));
    }
}
