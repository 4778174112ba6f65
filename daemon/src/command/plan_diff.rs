//! `mingle plan diff`: the differences between two plans.

use std::process::ExitCode;

use mingle_peer::{Result, plan};
use mingle_planner::plan::{Change, NamedLink, PlanDifference, Sets, StepDifference};

use crate::cli::PlanDiffArgs;
use crate::exit::DIFFERENT;
use crate::out;

/// Most lines for one kind of difference in a step; `--json` has all.
const MOST_LINES: usize = 8;

/// Compares two plans; the exit code is 10 if they differ.
pub(super) fn execute(arguments: &PlanDiffArgs, json: bool) -> Result<ExitCode> {
    let [before, after] = [plan::read(&arguments.before)?, plan::read(&arguments.after)?];
    let difference = before.difference(&after);
    let same = before.hash() == after.hash();
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.plan-diff/1",
            "same": same,
            "hashes": [before.hash().to_string(), after.hash().to_string()],
            "difference": difference,
        }));
    } else if same {
        out::line(format!("the plans are the same  blake3:{}", before.hash()));
    } else {
        out::line(format!("plan       {} -> {}", before.hash().short(), after.hash().short()));
        lines(&difference).iter().for_each(out::line);
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}

fn lines(difference: &PlanDifference) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(difference.settings.iter().map(|change| field(change, "")));
    sets(&mut lines, "nodes", &difference.nodes, Clone::clone);
    sets(&mut lines, "base", &difference.base, |[u, v]| format!("{u} - {v}"));
    if difference.interference != difference.base {
        sets(&mut lines, "disturbs", &difference.interference, |[u, v]| format!("{u} - {v}"));
    }
    lines.extend(difference.peers.iter().map(|change| field(change, "peer of ")));
    listed(&mut lines, difference.network.iter().map(|change| field(change, "network: ")));
    for step in &difference.steps {
        step_lines(&mut lines, step);
    }
    lines.extend(difference.forecast.iter().map(|change| field(change, "forecast.")));
    lines
}

fn field(change: &Change, prefix: &str) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    format!("{prefix}{}  {} -> {}", change.field, value(&change.before), value(&change.after))
}

fn sets<T>(lines: &mut Vec<String>, what: &str, sets: &Sets<T>, name: impl Fn(&T) -> String) {
    if sets.is_empty() {
        return;
    }
    lines.push(format!("{what:10} {} added, {} removed", sets.added.len(), sets.removed.len()));
    listed(lines, sets.added.iter().map(|item| format!("+ {}", name(item))));
    listed(lines, sets.removed.iter().map(|item| format!("- {}", name(item))));
}

fn step_lines(lines: &mut Vec<String>, step: &StepDifference) {
    let link = |link: &NamedLink| format!("{} -> {}", link.from, link.to);
    lines.push(format!(
        "step {:<5} {} links added, {} removed, {} with another weight, {} in another slot; {} -> {} slots",
        step.step,
        step.links.added.len(),
        step.links.removed.len(),
        step.reweighted.len(),
        step.moved.len(),
        step.slots[0],
        step.slots[1]
    ));
    listed(lines, step.links.added.iter().map(|added| format!("+ {}", link(added))));
    listed(lines, step.links.removed.iter().map(|removed| format!("- {}", link(removed))));
    let reweighted = step.reweighted.iter();
    listed(lines, reweighted.map(|change| format!("~ {}  {} -> {}", link(&change.link), change.before, change.after)));
    let kept = step.keep.iter();
    listed(lines, kept.map(|change| format!("~ {} keeps  {} -> {}", change.node, change.before, change.after)));
}

/// Lists the first few items, indented, and counts the rest.
fn listed(lines: &mut Vec<String>, items: impl ExactSizeIterator<Item = String>) {
    let more = items.len().saturating_sub(MOST_LINES);
    lines.extend(items.take(MOST_LINES).map(|item| format!("           {item}")));
    if more > 0 {
        lines.push(format!("           ... and {more} more (--json lists all)"));
    }
}
