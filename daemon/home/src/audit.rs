//! Whether the weights that stopped peers have on disk add up, to the unit.
//!
//! Reads the newest record of every peer, and nothing else; no peer has to run or to agree. The weights, plus the parcels
//! in outboxes that their receivers have not applied, are as many wholes as nodes entered, or mass was lost or doubled.
//!
//! What is public in `mingle_protocol::audit` adds up what peers say; here it is asked of their disks.

mod ledger;
mod peers;
mod report;

use std::path::{Path, PathBuf};

use crate::error::Result;
use ledger::Ledger;
use peers::PeerRecords;
pub use report::{Damage, Missing, Report, Row, Verdict, weight_or_unknown};

/// What an audit has to know of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanNodes {
    /// The hash of the plan.
    pub plan_hash: [u8; 32],
    /// The names of its nodes, as many as there are.
    pub names: Vec<String>,
}

/// Adds up what is in the records below these folders: homes, folders of records, or folders of homes.
///
/// How many nodes there are and what they are called says `plan`; without one, the plan file of the first home in which
/// `read_plan` finds that of the records; else the links of the records.
///
/// # Errors
/// Folders without peers, a peer that runs, records that cannot be read, that are of several swarms or generations, or of
/// another plan than `plan`, and two records of one node. Books that do not hold are no error but a
/// [`failure`](Report::failure) of the report.
pub fn examine(
    folders: &[PathBuf],
    plan: Option<PlanNodes>,
    read_plan: impl Fn(&Path) -> Option<PlanNodes>,
) -> Result<Report> {
    let peers = PeerRecords::read_all(folders)?;
    let ledger = Ledger::of(&peers, plan, read_plan)?;
    Ok(Report::new(&peers, &ledger))
}
