//! `mingle plan check`: checks all claims of a plan: its structure, its forecast, which is computed again, and the
//! properties of its matrices that the method's name promises.

use libp2p::PeerId;
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result, plan};
use mingle_planner::Plan;
use mingle_planner::design::MethodCheck;

use crate::cli::PlanFileArgs;
use crate::out;

const MADE_AGAIN: &str = "the file was edited, or made by another version: make it again with `mingle plan make`";

/// Reads the plan, which checks its structure, and checks the rest.
pub(super) fn execute(arguments: &PlanFileArgs, json: bool) -> Result {
    let path = &arguments.plan;
    let name = path.display().to_string();
    let plan = plan::read(path)?;
    check_peers(&plan, &name)?;
    check_forecast(&plan, &name)?;
    let method = plan
        .check_method()
        .context(ErrorKind::Integrity, format!("{name} says that it is a {} plan, and is none", plan.method()))
        .map_err(|failure| failure.hint(MADE_AGAIN))?;
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.plan-check/1",
            "hash": plan.hash().to_string(),
            "nodes": plan.node_count(),
            "ok": true,
            "method": {
                "name": plan.method(), "verified": method.verified, "not_verified": method.not_verified,
            },
        }));
    } else {
        out::line(format!("{name}: the plan holds, and its forecast too  blake3:{}", plan.hash()));
        tell_method(plan.method(), method);
    }
    Ok(())
}

/// Checks that each bound name is a PeerId, which can be dialled.
fn check_peers(plan: &Plan, name: &str) -> Result {
    for (node, bound) in plan.nodes() {
        let Some(peer) = bound else { continue };
        let doing = format!("{name}: node {node} is bound to `{peer}`, which is not a PeerId");
        peer.parse::<PeerId>().context(ErrorKind::Integrity, doing).map_err(|failure| {
            failure.hint(format!(
                "mingle plan bind PLAN --peer {node}=PEERID, with the PEERID that `mingle id` prints there"
            ))
        })?;
    }
    Ok(())
}

fn check_forecast(plan: &Plan, name: &str) -> Result {
    let differences = plan
        .forecast_differences()
        .context(ErrorKind::Unexpected, format!("the forecast of {name} cannot be computed"))?;
    if differences.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = differences.iter().map(ToString::to_string).collect();
    let message = format!("the forecast in {name} is not what the plan does: {}", list.join("; "));
    Err(Error::new(ErrorKind::Integrity, message).hint(MADE_AGAIN))
}

fn tell_method(method: &str, check: MethodCheck) {
    if let Some(verified) = check.verified {
        out::line(format!("method {method}: {verified}"));
    }
    if let Some(not_verified) = check.not_verified {
        out::line(format!("not checked, method {method}: {not_verified}"));
    }
}
