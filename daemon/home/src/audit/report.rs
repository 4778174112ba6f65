//! The report of an audit.

use mingle_protocol::record::LinkBreak;
use mingle_protocol::{AbsentPeer, AuditReport, NodeId};
use serde::Serialize;

use super::ledger::Ledger;
use super::peers::PeerRecords;
use crate::error::{Error, ErrorKind};
use crate::units::{exact_weight, signed_weight};

/// The result of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditVerdict {
    /// The weights and the parcels in flight equal the mass that the nodes brought, to the unit.
    Exact,
    /// No books contradict each other, but some mass is at nodes without books, or was given up.
    Incomplete,
    /// Books contradict each other, or records are damaged.
    Broken,
}

/// The outcome of an audit. Masses are in units of 2^-40.
#[derive(Debug, Serialize)]
pub struct AuditOutcome {
    schema: &'static str,
    /// The result.
    pub verdict: AuditVerdict,
    /// The counter of the generation of all records.
    pub generation: u64,
    /// The hash of its plan, in hexadecimal.
    pub plan: String,
    /// Number of nodes that entered.
    pub nodes: usize,
    /// Source of that number: `plan` or `records`.
    pub nodes_known_from: &'static str,
    /// Weights and parcels in flight; has to equal `expected_units`.
    pub sum_units: u128,
    /// Mass that the nodes brought.
    pub expected_units: u128,
    /// Nodes with books.
    pub peers: Vec<AuditRow>,
    /// Nodes without books.
    pub missing: Vec<Missing>,
    /// Records that cannot be relied on.
    pub damage: Vec<Damage>,
    /// Links whose two ends contradict each other.
    pub breaks: Vec<LinkBreak>,
    /// Distribution of the mass.
    pub audit: AuditReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<serde_json::Value>,
    /// Further remarks for people, in sentences.
    #[serde(skip)]
    pub remarks: Vec<String>,
}

/// The newest record of one peer.
#[derive(Debug, Serialize)]
pub struct AuditRow {
    /// The node.
    pub node: NodeId,
    /// Its name, if the plan is known.
    pub name: Option<String>,
    /// Folder of its records.
    pub folder: String,
    /// Its incarnation.
    pub incarnation: u64,
    /// The number of the record.
    pub record: u64,
    /// Steps done.
    pub step: u64,
    /// Its weight.
    pub units: u64,
    /// Mass that it sent and its receivers have not applied, as far as their books show.
    pub in_flight_units: u128,
    /// The slot that a crash left unreadable; its contents were never sent to another peer.
    pub torn_slot: Option<usize>,
}

/// A node without books, as its neighbours' books show it.
#[derive(Debug, Serialize)]
pub struct Missing {
    /// The node.
    pub node: NodeId,
    /// Its name, if the plan is known.
    pub name: Option<String>,
    /// Mass that it holds; `null` if the neighbours' books, after rollbacks, amount to more than a node can hold.
    pub held_units: Option<i128>,
    /// Mass on the way to it, or already applied by it.
    pub in_doubt_units: u128,
}

/// Records that cannot be relied on.
#[derive(Debug, Serialize)]
pub struct Damage {
    /// Folder of the records.
    pub folder: String,
    /// Their fault.
    pub message: String,
}

impl AuditOutcome {
    /// Builds the report of an audit.
    pub(super) fn new(peers: &[PeerRecords], ledger: &Ledger) -> Self {
        let audit = ledger.audit.clone();
        let shown = |peer: &PeerRecords| peer.folder.display().to_string();
        let damage: Vec<Damage> = peers
            .iter()
            .filter_map(|peer| Some(Damage { folder: shown(peer), message: peer.damage.clone()? }))
            .collect();
        let is_sound = audit.is_exact() && ledger.breaks.is_empty() && damage.is_empty();
        let verdict = match is_sound {
            false => AuditVerdict::Broken,
            true if audit.is_complete() => AuditVerdict::Exact,
            true => AuditVerdict::Incomplete,
        };
        let mut report = Self {
            schema: "mingle.audit/1",
            verdict,
            generation: ledger.generation.counter,
            plan: hex::encode(ledger.generation.plan_hash),
            nodes: ledger.nodes,
            nodes_known_from: if ledger.names.is_some() { "plan" } else { "records" },
            sum_units: audit.held + audit.in_flight,
            expected_units: audit.expected,
            peers: rows(peers, ledger),
            missing: missing(ledger),
            damage,
            breaks: ledger.breaks.clone(),
            audit,
            error: None,
            remarks: remarks(peers, ledger),
        };
        report.error = report.failure().map(|failure| failure.to_json());
        report
    }

    /// The contradictions and faults as an error, if the books do not hold.
    pub fn failure(&self) -> Option<Error> {
        let findings = self.findings();
        (self.verdict == AuditVerdict::Broken).then(|| {
            Error::new(ErrorKind::Integrity, format!("the books do not hold: {}", findings.join("; ")))
                .hint("keep the folders: a new generation starts exact again, but only these say where the mass went")
        })
    }

    fn findings(&self) -> Vec<String> {
        let damage = self.damage.iter().map(|damage| format!("{}: {}", damage.folder, damage.message));
        let disputes = self.audit.disputes.iter().map(ToString::to_string);
        damage.chain(disputes).chain(self.breaks.iter().map(ToString::to_string)).collect()
    }

    /// All mass that was held, given up or is on the way, in units; `None` if the books of neighbours, after rollbacks,
    /// amount to more than the nodes can hold.
    pub fn total(&self) -> Option<i128> {
        possible(self.audit.total(), self.nodes)
    }
}

fn rows(peers: &[PeerRecords], ledger: &Ledger) -> Vec<AuditRow> {
    let mut rows: Vec<AuditRow> = peers
        .iter()
        .filter_map(|peer| {
            let books = peer.books.as_ref()?;
            Some(AuditRow {
                node: books.id,
                name: name(ledger, books.id),
                folder: peer.folder.display().to_string(),
                incarnation: books.incarnation,
                record: books.number,
                step: books.step,
                units: books.mass.units(),
                in_flight_units: ledger.in_flight_from(books.id),
                torn_slot: peer.torn,
            })
        })
        .collect();
    rows.sort_by_key(|row| row.node);
    rows
}

fn missing(ledger: &Ledger) -> Vec<Missing> {
    let absent = ledger.audit.absent.iter().filter(|peer| !ledger.books.contains_key(&peer.id));
    absent
        .map(|&AbsentPeer { id, held, .. }| Missing {
            node: id,
            name: name(ledger, id),
            held_units: possible(held, ledger.nodes),
            in_doubt_units: ledger.in_doubt_to(id),
        })
        .collect()
}

/// Passes on an amount that a node, or all of them, can hold. Neighbours' books do not determine the weight of a node
/// that was rolled back repeatedly: they have applied twice what it sent twice, and each counts from another of its
/// incarnations.
fn possible(units: i128, nodes: usize) -> Option<i128> {
    let all = i128::try_from(nodes as u128 * (1 << 40)).unwrap_or(i128::MAX);
    (0..=all).contains(&units).then_some(units)
}

/// A weight in units for people, or "an unknown weight" if this many nodes together cannot hold it.
pub fn weight_or_unknown(units: i128, nodes: usize) -> String {
    possible(units, nodes).map_or_else(|| "an unknown weight".to_owned(), signed_weight)
}

fn name(ledger: &Ledger, id: NodeId) -> Option<String> {
    ledger.names.as_ref().and_then(|names| names.get(id.index()).cloned())
}

/// Remarks for people beside the table.
fn remarks(peers: &[PeerRecords], ledger: &Ledger) -> Vec<String> {
    let mut remarks = Vec::new();
    for peer in peers {
        let folder = peer.folder.display();
        if let Some(damage) = &peer.damage {
            remarks.push(format!("{folder}: {damage}"));
        } else if peer.books.is_none() {
            remarks.push(format!("{folder}: no record was ever completed there"));
        } else if let Some(slot) = peer.torn {
            remarks.push(format!(
                "{folder}: slot {slot} holds a write that was cut off; nobody was told of it, and it does not count"
            ));
        }
    }
    for &AbsentPeer { id, held, .. } in &ledger.audit.absent {
        let name = ledger.name(id);
        let held = weight_or_unknown(held, ledger.nodes);
        if ledger.books.contains_key(&id) {
            remarks.push(format!("{name} lost its state once: by its neighbours' books it held {held} then"));
            continue;
        }
        let doubt = match ledger.in_doubt_to(id) {
            0 => String::new(),
            units => format!(", and {} more is on the way to it or already applied there", exact_weight(units)),
        };
        remarks.push(format!("{name}: its records are missing. By its neighbours' books it holds {held}{doubt}"));
    }
    if missing(ledger).len() > 1 {
        remarks.push("where two missing nodes have a link, only what they hold together is certain".to_owned());
    }
    let findings = ledger.audit.disputes.iter().map(ToString::to_string);
    remarks.extend(findings.chain(ledger.breaks.iter().map(ToString::to_string)));
    if !remarks.is_empty() {
        remarks.push(String::new());
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_node_can_hold_is_unknown_and_not_a_number() {
        let one = 1_i128 << 40;
        assert_eq!(weight_or_unknown(one / 2, 4), "0.500000000");
        assert_eq!(weight_or_unknown(4 * one, 4), "4");
        for impossible in [4 * one + 1, 495 * one + one / 2, -1, -1328 * one, i128::MAX, i128::MIN] {
            assert_eq!(weight_or_unknown(impossible, 4), "an unknown weight", "{impossible}");
        }
    }
}
