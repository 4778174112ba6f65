//! `mingle audit`: checks that the weights on the disks of stopped peers add up, to the unit, by `mingle_home::audit`.

mod report;

use std::process::ExitCode;

use mingle_peer::{ErrorKind, Result, plan};

use crate::cli::AuditArgs;
pub(super) use report::sum;

/// Reads the records, adds them up and prints the report. The exit code is 0 if the books hold.
pub(super) fn execute(arguments: &AuditArgs, json: bool) -> Result<ExitCode> {
    let plan = arguments.plan.as_ref().map(|path| plan::read(path)).transpose()?;
    let report = plan::audit_records(&arguments.folders, plan.as_ref())?;
    report::print(&report, json);
    match report.failure() {
        None => Ok(ExitCode::SUCCESS),
        // The object on standard output contains the failure already.
        Some(_) if json => Ok(ExitCode::from(ErrorKind::Integrity as u8)),
        Some(failure) => Err(failure),
    }
}
