//! What came out of the seeds of one profile.

use std::time::Duration;

use mingle_protocol::InjectedBug;
use mingle_protocol::sim::{Outcome, Profile};
use serde::Serialize;

use super::failures::FailingSeed;
use super::hunt::Hunt;
use crate::cli::FaultTestArgs;

/// Failing seeds of a profile whose runs are made short and written down: that takes hundreds of runs each.
const MOST_JOURNALS: usize = 5;
/// No more failing seeds than this are listed; all are counted.
const MOST_LISTED: usize = 100;

/// The sums over the seeds of a profile.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    schema: &'static str,
    release: &'static str,
    profile: Profile,
    #[serde(skip_serializing_if = "Option::is_none")]
    injected_bug: Option<InjectedBug>,
    first: u64,
    seeds: u64,
    nodes_at_most: u32,
    virtual_s: u64,
    kills: u64,
    partitions: u64,
    link_cuts: u64,
    disk_faults: u64,
    rollbacks: u64,
    unreadable: u64,
    checks: u64,
    wire_checks: u64,
    disk_checks: u64,
    events: u64,
    /// BLAKE3 over the digests of all seeds: equal wherever the same release runs the same seeds.
    digest: String,
    wall_s: f64,
    seeds_per_s: f64,
    peak_memory_bytes: Option<u64>,
    failed: u64,
    failures: Vec<FailingSeed>,
    #[serde(skip)]
    hasher: blake3::Hasher,
}

const COLUMNS: [&str; 9] =
    ["seeds", "kills", "partitions", "link cuts", "disk faults", "rollbacks", "checks", "failures", "seeds/s"];

impl Report {
    pub(super) fn new(hunt: &Hunt) -> Self {
        Self {
            schema: "mingle.fault-test/2",
            release: env!("CARGO_PKG_VERSION"),
            profile: hunt.profile,
            injected_bug: hunt.injected_bug,
            first: hunt.seeds.start,
            seeds: 0,
            nodes_at_most: 0,
            virtual_s: 0,
            kills: 0,
            partitions: 0,
            link_cuts: 0,
            disk_faults: 0,
            rollbacks: 0,
            unreadable: 0,
            checks: 0,
            wire_checks: 0,
            disk_checks: 0,
            events: 0,
            digest: String::new(),
            wall_s: 0.0,
            seeds_per_s: 0.0,
            peak_memory_bytes: None,
            failed: 0,
            failures: Vec::new(),
            hasher: blake3::Hasher::new(),
        }
    }

    /// Adds the outcome of the next seed.
    pub(super) fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.nodes_at_most = self.nodes_at_most.max(outcome.nodes);
        self.virtual_s += outcome.ended.micros() / 1_000_000;
        self.kills += outcome.kills;
        self.partitions += outcome.partitions;
        self.link_cuts += outcome.link_cuts;
        self.disk_faults += outcome.disk_faults;
        self.rollbacks += outcome.rollbacks;
        self.unreadable += outcome.unreadable;
        self.checks += outcome.checks();
        self.wire_checks += outcome.wire_checks;
        self.disk_checks += outcome.disk_checks;
        self.events += outcome.events;
        self.hasher.update(&outcome.digest);
        if let Some(failing) = FailingSeed::of(outcome, self.profile, self.injected_bug) {
            self.failed += 1;
            if self.failures.len() < MOST_LISTED {
                self.failures.push(failing);
            }
        }
    }

    pub(super) fn finish(&mut self, took: Duration) {
        self.digest = self.hasher.finalize().to_hex().to_string();
        self.wall_s = took.as_secs_f64();
        self.seeds_per_s = self.seeds as f64 / self.wall_s.max(f64::MIN_POSITIVE);
        self.peak_memory_bytes = mingle_peer::results::peak_resident_bytes();
    }

    /// Writes the runs of the first failing seeds down.
    pub(super) fn write_journals(&mut self, arguments: &FaultTestArgs) -> mingle_peer::Result {
        for failing in self.failures.iter_mut().take(MOST_JOURNALS) {
            failing.write(self.profile, self.injected_bug, &arguments.journals, arguments.shrink_runs)?;
        }
        Ok(())
    }

    pub(super) fn failing(&self) -> u64 {
        self.failed
    }

    pub(super) fn progress(&self) -> String {
        let failed = if self.failed > 0 { format!(", {} FAILED", self.failed) } else { String::new() };
        format!("{} kills, {} checks{failed}", grouped(self.kills), grouped(self.checks))
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    /// The names of the columns.
    pub(super) fn heading() -> String {
        row("profile", &COLUMNS.map(ToOwned::to_owned))
    }

    /// A row of the table, and the failing seeds.
    pub(super) fn lines(&self) -> Vec<String> {
        let counts = [
            self.seeds,
            self.kills,
            self.partitions,
            self.link_cuts,
            self.disk_faults,
            self.rollbacks,
            self.checks,
            self.failed,
        ];
        let mut cells = counts.map(grouped).to_vec();
        cells.push(format!("{:.1}", self.seeds_per_s));
        let mut lines = vec![row(self.profile.name(), &cells)];
        lines.extend(self.failures.iter().flat_map(FailingSeed::lines));
        let unlisted = self.failed - self.failures.len() as u64;
        if unlisted > 0 {
            lines.push(format!("  and {unlisted} more"));
        }
        lines
    }
}

fn row(name: &str, cells: &[String]) -> String {
    let cell = |(cell, heading): (&String, &&str)| format!("  {cell:>0$}", heading.len().max(9));
    format!("{name:10}{}", cells.iter().zip(&COLUMNS).map(cell).collect::<String>())
}

/// A number with its thousands apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let numbers = [0, 999, 1_000, 65_536, 1_234_567];
        assert_eq!(numbers.map(grouped), ["0", "999", "1,000", "65,536", "1,234,567"]);
    }
}
