//! The planner's plan for the protocol and the network: nodes become peers, steps become a schedule.

use std::io::Read;
use std::path::{Path, PathBuf};

use mingle_plaintext::InputFile;
use mingle_planner::Plan;
use mingle_protocol::{MomentumAcrossRounds, Schedule};

use crate::audit::{self, AuditOutcome, PlanNodes};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::home;

pub use mingle_membership::plan_peers::{node_of, peers};
pub use mingle_membership::plan_without::{bind_as_in, without};

/// Largest plan file that is read, in bytes: a million links in JSON.
const MAX_PLAN_FILE_BYTES: u64 = 64 << 20;

/// Reads a plan file and checks all of it.
pub fn read(path: &Path) -> Result<Plan> {
    let text = read_text(path, "plan")?;
    Plan::from_json(&text).context(ErrorKind::BadInput, format!("the plan {} does not hold", path.display()))
}

/// Writes a plan file, whole or not at all.
pub fn write(plan: &Plan, path: &Path) -> Result {
    home::write_file(path, plan.to_json().as_bytes())
}

/// Reads a text file of bounded length, gzipped or not, in UTF-8 or UTF-16, with or without a byte order mark.
///
/// # Errors
/// The file cannot be read, is no text, or is too long.
pub fn read_text(path: &Path, what: &str) -> Result<String> {
    let doing = format!("cannot read the {what} {}", path.display());
    let file = InputFile::open(path).context(ErrorKind::BadInput, &doing)?;
    let text = mingle_plaintext::open(file).context(ErrorKind::BadInput, &doing)?;
    let mut content = Vec::new();
    let length = text.take(MAX_PLAN_FILE_BYTES + 1).read_to_end(&mut content).context(ErrorKind::BadInput, &doing)?;
    if length as u64 > MAX_PLAN_FILE_BYTES {
        let message = format!("{doing}: it has more than {MAX_PLAN_FILE_BYTES} bytes");
        return Err(Error::new(ErrorKind::BadInput, message));
    }
    String::from_utf8(content).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let message = format!("{doing}: line {line}: it is no text in UTF-8");
        Error::new(ErrorKind::BadInput, message).hint("save the file as UTF-8")
    })
}

/// Audits the records below these folders: adds up what they hold. Without a plan, the number of nodes is that of the
/// plan in the homes.
///
/// # Errors
/// There are no records, they cannot be read, or they are of several plans.
pub fn audit_records(folders: &[PathBuf], plan: Option<&Plan>) -> Result<AuditOutcome> {
    let nodes = |plan: &Plan| PlanNodes {
        plan_hash: *plan.hash().as_bytes(),
        names: plan.nodes().map(|(name, _)| name.to_owned()).collect(),
    };
    audit::examine(folders, plan.map(nodes), |path| read(path).ok().map(|plan| nodes(&plan)))
}

/// The momentum across rounds of this choice under this plan.
///
/// # Errors
/// The plan does not bear it; the hint says what to do.
pub fn momentum(choice: MomentumAcrossRounds, plan: &Plan) -> Result<f64> {
    let doing = format!("--momentum-across-rounds {choice}");
    choice.under(|| plan.largest_momentum()).context(ErrorKind::BadInput, doing).map_err(|failure| {
        failure.hint(
            "give less, or auto, or take a plan that bears more: `mingle plan compare` shows what each bears, in the \
             column `momentum`",
        )
    })
}

/// The schedule that the protocol runs for this plan.
pub fn schedule(plan: &Plan) -> Result<Schedule> {
    mingle_solving::schedule(plan).context(ErrorKind::BadInput, "the plan cannot be run")
}
