//! The report of an audit, for people or programs.

use mingle_peer::audit::{AuditOutcome, AuditRow, AuditVerdict, weight_or_unknown};
use mingle_peer::units::exact_weight;
use mingle_protocol::AbsentPeer;

use crate::out;

/// Prints the table and the verdict, or one object.
pub(super) fn print(report: &AuditOutcome, json: bool) {
    if !json {
        out::line(text(report));
    } else if let Ok(text) = serde_json::to_string(report) {
        out::line(text);
    }
}

fn text(report: &AuditOutcome) -> String {
    let mut lines = vec![format!(
        "generation {}  plan {}  {} nodes{}\n",
        report.generation,
        &report.plan[..8],
        report.nodes,
        if report.nodes_known_from == "plan" { "" } else { ", as far as the records know" },
    )];
    lines.extend(table(report));
    lines.push(String::new());
    lines.extend(report.remarks.iter().cloned());
    lines.push(sum(report));
    lines.join("\n")
}

fn table(report: &AuditOutcome) -> impl Iterator<Item = String> {
    let name = |row: &AuditRow| row.name.clone().unwrap_or_else(|| row.node.to_string());
    let width = report.peers.iter().map(|row| name(row).chars().count()).max().unwrap_or(0).max(4);
    let head = format!(
        "{:<width$}  {:>4}  {:>9}  {:>9}  {:>14}  {:>14}  records in",
        "node", "life", "record", "step", "weight", "in flight"
    );
    let rows = report.peers.iter().map(move |row| {
        format!(
            "{:<width$}  {:>4}  {:>9}  {:>9}  {:>14}  {:>14}  {}",
            name(row),
            row.incarnation,
            row.record,
            row.step,
            exact_weight(u128::from(row.units)),
            exact_weight(row.in_flight_units),
            row.folder
        )
    });
    std::iter::once(head).chain(rows)
}

/// The ledger as a sum that a person can check.
pub(in crate::command) fn sum(report: &AuditOutcome) -> String {
    let audit = &report.audit;
    let mut parts = vec![format!("{} held", exact_weight(audit.held))];
    if audit.in_flight > 0 {
        parts.push(format!("{} in flight", exact_weight(audit.in_flight)));
    }
    if audit.in_doubt > 0 {
        parts.push(format!("{} in doubt", exact_weight(audit.in_doubt)));
    }
    for AbsentPeer { id, held, .. } in &audit.absent {
        parts.push(format!("{} with node {id}", weight_or_unknown(*held, report.nodes)));
    }
    if audit.written_off > 0 {
        parts.push(format!("{} written off", exact_weight(audit.written_off)));
    }
    let parts = parts.join(" + ");
    let (sum, expected) = (report.sum_units, report.expected_units);
    match report.verdict {
        AuditVerdict::Exact => {
            format!("sum of weights: exactly {} = {parts}  ({sum} units of 2^-40)", report.nodes)
        }
        AuditVerdict::Incomplete => format!(
            "sum of weights: {} = {parts}; the books agree, but the records here account for {sum} of {expected} units \
             of 2^-40",
            report.nodes
        ),
        AuditVerdict::Broken => format!(
            "sum of weights: NOT {} = {parts}  ({}, or books that contradict each other)",
            report.nodes,
            match report.total() {
                Some(total) => format!("{total} units of 2^-40 instead of {expected}"),
                None => format!("an unknown number of units of 2^-40 instead of {expected}"),
            }
        ),
    }
}
