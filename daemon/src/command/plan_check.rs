//! `mingle plan check`: everything a plan claims, its forecast included, computed again.

use crate::cli::PlanFileArgs;
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::{out, plan};

/// Reads the plan, which checks its structure, and compares its forecast with a new one.
pub(super) fn execute(arguments: &PlanFileArgs, json: bool) -> Outcome {
    let path = &arguments.plan;
    let plan = plan::read(path)?;
    let differences = plan
        .forecast_differences()
        .or_fail(Kind::Unexpected, format!("the forecast of {} cannot be computed", path.display()))?;
    if !differences.is_empty() {
        let list: Vec<String> = differences.iter().map(ToString::to_string).collect();
        return Err(Failure::new(
            Kind::Integrity,
            format!("the forecast in {} is not what the plan does: {}", path.display(), list.join("; ")),
        )
        .hint("the file was edited, or made by another version: make it again with `mingle plan make`"));
    }
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.plan-check/1",
            "hash": plan.hash().to_string(),
            "nodes": plan.node_count(),
            "ok": true,
        }));
    } else {
        out::line(format!("{}: the plan holds, and its forecast too  blake3:{}", path.display(), plan.hash()));
    }
    Ok(())
}
