//! `mingle ckpt`: lists, inspects and verifies model files and records.

mod inspect;
mod list;
mod verify;

use std::process::ExitCode;

use mingle_peer::Result;

use crate::cli::CkptCommand;

pub(super) use list::report;

/// Executes the subcommand.
pub(super) fn execute(command: &CkptCommand, json: bool) -> Result<ExitCode> {
    match command {
        CkptCommand::List(arguments) => list::execute(arguments, json)?,
        CkptCommand::Inspect(arguments) => inspect::execute(arguments, json)?,
        CkptCommand::Verify(arguments) => return verify::execute(arguments, json),
    }
    Ok(ExitCode::SUCCESS)
}
