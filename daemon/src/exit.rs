//! Error output and exit codes of the program.

use std::io::Write;
use std::process::ExitCode;

use mingle_peer::Error;

use crate::config::former;
use crate::out;

/// The exit code of `plan diff` when the plans differ: an answer, not a failure.
pub(crate) const DIFFERENT: u8 = 10;

/// The exit code that belongs to an error: the number of its kind.
pub(crate) fn code(error: &Error) -> ExitCode {
    ExitCode::from(error.kind().code())
}

/// Prints clap's error, or the requested help; for renamed options and problems given as tasks, advice instead.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    match former::of_option(error).or_else(|| former::of_task(error)) {
        Some(advice) => remark!("error: {advice}"),
        None => {
            let written = error.print().and_then(|()| std::io::stdout().flush());
            // Help and the version were requested; an error of the command line keeps its code even if it cannot be
            // printed.
            if let Some(code) = out::code_if_not_written(written).filter(|_| error.exit_code() == 0) {
                return ExitCode::from(code);
            }
        }
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Prints an error for a person (stderr) or a program (one JSON object on stdout, or else as for a person).
pub(crate) fn print(error: &Error, json: bool) {
    if json && out::try_line(serde_json::json!({ "error": error.to_json() })).is_ok() {
        return;
    }
    out::remark(format_args!("error: {error:#}"));
    if let Some(hint) = error.next_step() {
        out::remark(format_args!("hint: {hint}"));
    }
}
