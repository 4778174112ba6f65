//! Collects the peers' evaluations: one row a round, complete once every living peer has reported it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// One peer's evaluation after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RoundEvaluation {
    pub(crate) accuracy: f64,
    pub(crate) weight_units: u64,
    pub(crate) disagreement: Option<f64>,
}

/// The state of the whole swarm after a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SwarmRow {
    /// The round.
    pub round: u64,
    /// Mean test accuracy over the living peers.
    pub mean_accuracy: f64,
    /// The accuracy of the worst living peer.
    pub worst_accuracy: f64,
    /// Mean over the peers of their distance to the models they received.
    pub disagreement: Option<f64>,
    /// Sum of the living peers' push-sum weights, in units of 2^-40.
    pub weight_units: u64,
    /// The number of peers that reported.
    pub peers: usize,
    /// Seconds since the demo started its peers.
    pub seconds: f64,
}

/// All reports so far.
#[derive(Debug)]
pub(crate) struct ReportTally {
    living: BTreeSet<usize>,
    /// The last round that each peer has reported.
    latest: BTreeMap<usize, u64>,
    reports: BTreeMap<u64, BTreeMap<usize, RoundEvaluation>>,
    rows: Vec<SwarmRow>,
}

impl ReportTally {
    /// A tally of `peers` living peers without any report.
    pub(crate) fn new(peers: usize) -> Self {
        Self { living: (0..peers).collect(), latest: BTreeMap::new(), reports: BTreeMap::new(), rows: Vec::new() }
    }

    /// Takes a report; returns the rows that it completes, oldest first.
    pub(crate) fn report(&mut self, node: usize, round: u64, report: RoundEvaluation, seconds: f64) -> Vec<SwarmRow> {
        // A report of a lost peer means that it is back.
        self.living.insert(node);
        self.latest.insert(node, round);
        if self.rows.last().is_none_or(|row| row.round < round) {
            self.reports.entry(round).or_default().insert(node, report);
        }
        self.complete(seconds)
    }

    /// Stops waiting for a peer that is gone; returns the rows that this completes.
    pub(crate) fn lose(&mut self, node: usize, seconds: f64) -> Vec<SwarmRow> {
        self.living.remove(&node);
        self.complete(seconds)
    }

    /// The rows so far, by round.
    pub(crate) fn rows(&self) -> &[SwarmRow] {
        &self.rows
    }

    fn complete(&mut self, seconds: f64) -> Vec<SwarmRow> {
        let mut completed = Vec::new();
        while let Some(entry) = self.reports.first_entry() {
            let (&round, reports) = (entry.key(), entry.get());
            // A peer that has reported a later round has skipped this one.
            let is_settled = |node| reports.contains_key(node) || self.latest.get(node).is_some_and(|&at| at > round);
            if !self.living.iter().all(is_settled) {
                break;
            }
            let mut reports = entry.remove();
            reports.retain(|node, _| self.living.contains(node));
            if !reports.is_empty() {
                completed.push(row(round, &reports, seconds));
            }
        }
        self.rows.extend(completed.iter().cloned());
        completed
    }
}

#[allow(clippy::cast_precision_loss)] // a handful of peers
fn row(round: u64, reports: &BTreeMap<usize, RoundEvaluation>, seconds: f64) -> SwarmRow {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let accuracies: Vec<f64> = reports.values().map(|report| report.accuracy).collect();
    let distances: Vec<f64> = reports.values().filter_map(|report| report.disagreement).collect();
    SwarmRow {
        round,
        mean_accuracy: mean(&accuracies),
        worst_accuracy: accuracies.iter().copied().fold(f64::INFINITY, f64::min),
        disagreement: (!distances.is_empty()).then(|| mean(&distances)),
        weight_units: reports.values().map(|report| report.weight_units).sum(),
        peers: reports.len(),
        seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(accuracy: f64) -> RoundEvaluation {
        RoundEvaluation { accuracy, weight_units: 1 << 40, disagreement: Some(0.5) }
    }

    #[test]
    fn a_row_is_complete_when_every_living_peer_has_reported_it() {
        let mut tally = ReportTally::new(3);
        assert!(tally.report(0, 10, report(0.5), 1.0).is_empty());
        assert!(tally.report(1, 10, report(0.7), 1.0).is_empty());
        let rows = tally.report(2, 10, report(0.9), 1.0);
        assert_eq!(rows.len(), 1);
        assert!((rows[0].mean_accuracy - 0.7).abs() < 1e-12);
        assert!((rows[0].worst_accuracy - 0.5).abs() < 1e-12);
        assert_eq!(rows[0].weight_units, 3 << 40);
    }

    #[test]
    fn a_peer_that_skips_a_round_does_not_hold_up_the_others() {
        let mut tally = ReportTally::new(2);
        tally.report(0, 10, report(0.5), 1.0);
        tally.report(0, 20, report(0.6), 2.0);
        let rows = tally.report(1, 20, report(0.8), 2.0);
        assert_eq!(rows.iter().map(|row| (row.round, row.peers)).collect::<Vec<_>>(), [(10, 1), (20, 2)]);
    }

    #[test]
    fn a_peer_that_comes_back_counts_again_from_the_first_round_that_is_not_complete() {
        let mut tally = ReportTally::new(2);
        tally.lose(1, 1.0);
        tally.report(0, 10, report(0.5), 1.0);
        assert!(tally.report(1, 10, report(0.1), 2.0).is_empty(), "that row is complete");
        assert!(tally.report(0, 20, report(0.5), 3.0).is_empty(), "the other one is waited for again");
        let rows = tally.report(1, 20, report(0.7), 3.0);
        assert_eq!(rows.iter().map(|row| (row.round, row.peers)).collect::<Vec<_>>(), [(20, 2)]);
    }

    #[test]
    fn a_lost_peer_is_not_waited_for_and_not_counted() {
        let mut tally = ReportTally::new(3);
        tally.report(0, 10, report(0.5), 1.0);
        tally.report(1, 10, report(0.7), 1.0);
        tally.report(0, 20, report(0.6), 1.0);
        tally.report(1, 20, report(0.8), 1.0);
        let rows = tally.lose(2, 2.0);
        assert_eq!(rows.iter().map(|row| (row.round, row.peers)).collect::<Vec<_>>(), [(10, 2), (20, 2)]);
    }
}
