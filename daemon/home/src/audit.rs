//! Audit: checks that the weights on the disks of stopped peers add up, to the unit.
//!
//! Reads the newest record of every peer, and nothing else; no peer has to run or to agree. The weights, plus the
//! parcels in outboxes that their receivers have not applied, must equal the number of nodes that entered. Otherwise
//! mass was lost or doubled.
//!
//! `mingle_protocol::audit` adds up the reports of peers; this module reads them from their disks.

mod ledger;
mod peers;
mod report;

use std::path::{Path, PathBuf};

use crate::error::Result;
use ledger::Ledger;
use peers::PeerRecords;
pub use report::{AuditOutcome, AuditRow, AuditVerdict, Damage, Missing, weight_or_unknown};

/// The part of a plan that an audit needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanNodes {
    /// The hash of the plan.
    pub plan_hash: [u8; 32],
    /// The names of all nodes.
    pub names: Vec<String>,
}

/// Adds up the records below these folders: homes, folders of records, or folders of homes.
///
/// The number and the names of the nodes come from `plan`. Without one, they come from the plan file of the first home
/// in which `read_plan` finds that of the records; otherwise from the links of the records.
///
/// # Errors
/// Folders without peers, a running peer, records that cannot be read, that belong to several swarms or generations or
/// to another plan than `plan`, and two records of one node. Books that do not hold are no error but a
/// [`failure`](AuditOutcome::failure) of the report.
pub fn examine(
    folders: &[PathBuf],
    plan: Option<PlanNodes>,
    read_plan: impl Fn(&Path) -> Option<PlanNodes>,
) -> Result<AuditOutcome> {
    let peers = PeerRecords::read_all(folders)?;
    let ledger = Ledger::of(&peers, plan, read_plan)?;
    Ok(AuditOutcome::new(&peers, &ledger))
}
