//! `mingle audit`: whether the weights that stopped peers have on disk add up, to the unit, by `mingle_home::audit`.

mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mingle_peer::audit::{PlanNodes, Report};
use mingle_peer::{ErrorKind, Result, plan};
use mingle_planner::Plan;

use crate::cli::AuditArgs;
pub(super) use report::sum;

/// Reads the records, adds them up and prints what comes out. The exit code says whether the books hold.
pub(super) fn execute(arguments: &AuditArgs, json: bool) -> Result<ExitCode> {
    let plan = arguments.plan.as_ref().map(|path| plan::read(path)).transpose()?;
    let report = examine(&arguments.folders, plan.as_ref())?;
    report::print(&report, json);
    match report.failure() {
        None => Ok(ExitCode::SUCCESS),
        // The one object on standard output says it already.
        Some(_) if json => Ok(ExitCode::from(ErrorKind::Integrity as u8)),
        Some(failure) => Err(failure),
    }
}

/// Adds up what is in the records below these folders. Without a plan, the one in the homes says how many nodes there are.
pub(super) fn examine(folders: &[PathBuf], plan: Option<&Plan>) -> Result<Report> {
    let read = |path: &Path| plan::read(path).ok().map(|plan| nodes(&plan));
    mingle_peer::audit::examine(folders, plan.map(nodes), read)
}

fn nodes(plan: &Plan) -> PlanNodes {
    let names = plan.nodes().map(|(name, _)| name.to_owned()).collect();
    PlanNodes { plan_hash: *plan.hash().as_bytes(), names }
}
