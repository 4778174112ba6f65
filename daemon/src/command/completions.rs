//! `mingle completions`: the script by which a shell completes commands and options.

use crate::cli::CompletionsArgs;
use crate::config;
use crate::failure::{Kind, OrFail, Outcome};
use crate::out;

/// Prints the script; there is no other output, also with `--json`: the reader is a shell.
pub(super) fn execute(arguments: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut config::command_line(), "mingle", &mut script);
    let script = String::from_utf8(script).or_fail(Kind::Unexpected, "the completions are not text")?;
    out::line(script.trim_end());
    Ok(())
}
