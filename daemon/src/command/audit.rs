//! `mingle audit`: whether the weights that stopped peers have on disk add up, to the unit.
//!
//! Reads the newest record of every peer, and nothing else; no peer has to run or to agree. The weights, plus the parcels
//! in outboxes that their receivers have not applied, are as many wholes as nodes entered, or mass was lost or doubled.

mod ledger;
mod peers;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use mingle_peer::{ErrorKind, Result, plan};
use mingle_planner::Plan;

use crate::cli::AuditArgs;
use ledger::Ledger;
use peers::PeerRecords;
pub(super) use report::{Report, weight_or_unknown};

/// Reads the records, adds them up and prints what comes out. The exit code says whether the books hold.
pub(super) fn execute(arguments: &AuditArgs, json: bool) -> Result<ExitCode> {
    let plan = arguments.plan.as_ref().map(|path| plan::read(path)).transpose()?;
    let report = examine(&arguments.folders, plan)?;
    report.print(json);
    match report.failure() {
        None => Ok(ExitCode::SUCCESS),
        // The one object on standard output says it already.
        Some(_) if json => Ok(ExitCode::from(ErrorKind::Integrity as u8)),
        Some(failure) => Err(failure),
    }
}

/// Adds up what is in the records below these folders. Without a plan, the one in the homes says how many nodes there are.
pub(super) fn examine(folders: &[PathBuf], plan: Option<Plan>) -> Result<Report> {
    let peers = PeerRecords::read_all(folders)?;
    let ledger = Ledger::of(&peers, plan)?;
    Ok(Report::new(&peers, &ledger))
}
