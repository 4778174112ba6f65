//! `mingle completions`: the script by which a shell completes commands and options.

use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};

use crate::cli::CompletionsArgs;
use crate::config;
use crate::out;

/// Prints the script. There is no other output, also with `--json`: the reader is a shell.
pub(super) fn execute(arguments: &CompletionsArgs) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut config::command_line(), "mingle", &mut script);
    let script = String::from_utf8(script).context(ErrorKind::Unexpected, "the completions are not text")?;
    out::line(script.trim_end());
    Ok(())
}
