//! `mingle ckpt`: what is in model files and records, and whether they are sound.

mod inspect;
mod list;
mod verify;

use std::process::ExitCode;

use crate::cli::CkptCommand;
use crate::failure::Outcome;

pub(super) use list::report;

/// Does one of the three.
pub(super) fn execute(command: &CkptCommand, json: bool) -> Outcome<ExitCode> {
    match command {
        CkptCommand::List(arguments) => list::execute(arguments, json)?,
        CkptCommand::Inspect(arguments) => inspect::execute(arguments, json)?,
        CkptCommand::Verify(arguments) => return verify::execute(arguments, json),
    }
    Ok(ExitCode::SUCCESS)
}
