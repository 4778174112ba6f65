//! The results of the seeds of one profile.

use mingle_protocol::sim::{Profile, SeedOutcome, Variant};
use mingle_protocol::{InjectedBug, Robust, TrainingOverlap};
use serde::Serialize;

use super::failures::FailingSeed;
use super::sums::{SUMS, SumsOutcome};
use super::{Campaign, Cost};

/// The most failing seeds that are listed; all are counted.
const MOST_LISTED: usize = 100;

/// The sums over the seeds of a profile.
#[derive(Clone, Debug, Serialize)]
pub struct ProfileReport {
    schema: &'static str,
    release: &'static str,
    /// The kind of faults.
    pub profile: &'static str,
    /// The injected bug of all nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injected_bug: Option<InjectedBug>,
    /// The treatment of neighbours' ratios.
    pub robust: Robust,
    /// Training of the next round while the present one is mixed.
    pub overlap: TrainingOverlap,
    /// The first seed.
    pub first: u64,
    /// Seeds that were run.
    pub seeds: u64,
    /// Nodes of the largest swarm.
    pub nodes_at_most: u32,
    /// The sum of all their virtual seconds.
    pub virtual_s: u64,
    /// Processes killed.
    pub kills: u64,
    /// Partitions: moments at which two or more pairs of nodes lost their link together.
    pub partitions: u64,
    /// Pairs of nodes that lost their link.
    pub link_cuts: u64,
    /// Disks that became full, slow, old or empty.
    pub disk_faults: u64,
    /// Rollbacks that nodes detected.
    pub rollbacks: u64,
    /// Reports of sound nodes that name a sound neighbour as one that keeps weight.
    pub false_suspicions: u64,
    /// Starts of nodes that could not rely on the contents of their disk, and began without it.
    pub unreadable: u64,
    /// Checks of the ledger.
    pub checks: u64,
    /// The checks by what nodes gave and took.
    pub wire_checks: u64,
    /// The checks by the contents of all disks.
    pub disk_checks: u64,
    /// Events of all runs.
    pub events: u64,
    /// BLAKE3 over the digests of all seeds: equal wherever the same release runs the same seeds.
    pub digest: String,
    /// Seconds of wall-clock time.
    pub wall_s: f64,
    /// Seeds per second.
    pub seeds_per_s: f64,
    /// The largest resident memory of the process so far, where the system reports it.
    pub peak_memory_bytes: Option<u64>,
    /// Seeds that failed.
    pub failed: u64,
    /// The first of them; at most a hundred.
    pub failures: Vec<FailingSeed>,
    #[serde(skip)]
    run: Option<(Profile, Variant)>,
    #[serde(skip)]
    hasher: blake3::Hasher,
}

impl ProfileReport {
    /// The report of a campaign before its first seed.
    pub fn new(campaign: &Campaign) -> Self {
        let Campaign { profile, seeds, variant, .. } = campaign;
        let run = Some((*profile, *variant));
        let Variant { injected_bug, robust, overlap } = *variant;
        Self { run, injected_bug, robust, overlap, ..Self::before(profile.name(), seeds.start) }
    }

    /// The report of a campaign of masked sums before its first seed.
    pub fn of_sums(first: u64) -> Self {
        Self::before(SUMS, first)
    }

    fn before(profile: &'static str, first: u64) -> Self {
        Self {
            schema: "mingle.fault-test/2",
            release: env!("CARGO_PKG_VERSION"),
            profile,
            injected_bug: None,
            robust: Robust::Off,
            overlap: TrainingOverlap::Off,
            first,
            seeds: 0,
            nodes_at_most: 0,
            virtual_s: 0,
            kills: 0,
            partitions: 0,
            link_cuts: 0,
            disk_faults: 0,
            rollbacks: 0,
            false_suspicions: 0,
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
            run: None,
            hasher: blake3::Hasher::new(),
        }
    }

    /// Adds the outcome of the next seed.
    pub fn add(&mut self, outcome: &SeedOutcome) {
        self.seeds += 1;
        self.nodes_at_most = self.nodes_at_most.max(outcome.nodes);
        self.virtual_s += outcome.ended.micros() / 1_000_000;
        self.kills += outcome.kills;
        self.partitions += outcome.partitions;
        self.link_cuts += outcome.link_cuts;
        self.disk_faults += outcome.disk_faults;
        self.rollbacks += outcome.rollbacks;
        self.false_suspicions += outcome.false_suspicions;
        self.unreadable += outcome.unreadable;
        self.checks += outcome.checks();
        self.wire_checks += outcome.wire_checks;
        self.disk_checks += outcome.disk_checks;
        self.events += outcome.events;
        self.hasher.update(&outcome.digest);
        if let Some(failing) = self.run.and_then(|(profile, variant)| FailingSeed::of(outcome, profile, variant)) {
            self.list(failing);
        }
    }

    /// Adds the outcome of the next seed of masked sums.
    pub fn add_sums(&mut self, outcome: &SumsOutcome) {
        self.seeds += 1;
        self.nodes_at_most = self.nodes_at_most.max(outcome.nodes);
        self.virtual_s += outcome.ended_ms / 1_000;
        self.kills += outcome.kills;
        self.link_cuts += outcome.link_cuts;
        self.disk_faults += outcome.disk_faults;
        self.rollbacks += outcome.rollbacks;
        self.checks += outcome.checks;
        self.events += outcome.messages;
        self.hasher.update(&outcome.digest);
        if let Some(failing) = FailingSeed::of_sums(outcome) {
            self.list(failing);
        }
    }

    fn list(&mut self, failing: FailingSeed) {
        self.failed += 1;
        if self.failures.len() < MOST_LISTED {
            self.failures.push(failing);
        }
    }

    /// Adds the cost of all seeds, and computes their digest.
    pub fn finish(&mut self, cost: Cost) {
        self.digest = self.hasher.finalize().to_hex().to_string();
        self.wall_s = cost.wall.as_secs_f64();
        self.seeds_per_s = self.seeds as f64 / self.wall_s.max(f64::MIN_POSITIVE);
        self.peak_memory_bytes = cost.peak_memory_bytes;
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use mingle_protocol::Time;
    use mingle_protocol::sim::{Scenario, SimError, run_scenario};

    use super::*;

    #[test]
    fn failing_seeds_are_counted_and_the_first_of_them_listed() {
        let threads = NonZeroUsize::MIN;
        let campaign = Campaign { profile: Profile::Loss, seeds: 3..4, variant: Variant::default(), threads };
        let mut report = ProfileReport::new(&campaign);
        let mut outcome = run_scenario(Profile::Loss, 3, Scenario::new(Profile::Loss, 3));
        report.add(&outcome);
        assert_eq!((report.seeds, report.failed), (1, 0));
        outcome.failure = Some(SimError::TotalMass { now: Time::from_millis(5), total: 1, expected: 2 });
        for _ in 0..MOST_LISTED + 5 {
            report.add(&outcome);
        }
        assert_eq!((report.failed, report.failures.len()), (MOST_LISTED as u64 + 5, MOST_LISTED));
        let replay = &report.failures[0].replay;
        assert_eq!(replay, "mingle fault-test --profile loss --first 3 --seeds 1");
        assert_eq!(report.failures[0].file_name().as_deref(), Some("loss-3.json"));
    }
}
