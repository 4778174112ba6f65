//! One swarm for many virtual days.

use mingle_protocol::sim::{Profile, SeedOutcome, SimError, Soak};
use serde::Serialize;

use super::Cost;

/// The swarm of one seed, run day after day.
#[derive(Debug)]
pub struct Days {
    profile: Profile,
    soak: Soak,
}

/// The counts since the start, after a day or at the end.
#[derive(Clone, Debug, Serialize)]
pub struct DaysReport {
    schema: &'static str,
    release: &'static str,
    profile: Profile,
    seed: u64,
    nodes: u32,
    virtual_s: u64,
    /// Processes killed.
    pub kills: u64,
    /// Partitions: moments at which two or more pairs of nodes lost their link together.
    pub partitions: u64,
    link_cuts: u64,
    rollbacks: u64,
    false_suspicions: u64,
    /// Checks of the ledger.
    pub checks: u64,
    wire_checks: u64,
    disk_checks: u64,
    events: u64,
    /// A hash of all events: equal wherever the same release runs the same seed.
    pub digest: String,
    /// Seconds of wall-clock time.
    pub wall_s: f64,
    /// The largest resident memory of the process so far, where the system reports it.
    pub peak_memory_bytes: Option<u64>,
    /// The moment in the run.
    #[serde(flatten)]
    pub at: Moment,
}

/// A moment in a run of many days.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Moment {
    /// The end of a day.
    Day {
        /// The day, counted from 1.
        day: u64,
        /// Rounds that the slowest node has done since the start.
        rounds: u64,
    },
    /// The end of the run: every node has drained.
    End {
        /// Always `true`.
        drained: bool,
        /// The rounding error of the sum of all nodes' numerators.
        numerators_off_by: f64,
    },
}

impl Days {
    /// The swarm of a seed. `None` for profiles in which plans change or disks lose their contents.
    pub fn new(profile: Profile, seed: u64) -> Option<Self> {
        Soak::new(profile, seed).map(|soak| Self { profile, soak })
    }

    /// Nodes in the swarm.
    pub fn nodes(&self) -> u32 {
        self.soak.nodes()
    }

    /// Runs one more day. `cost` is called once it is over.
    ///
    /// # Errors
    /// [`SimError`]: a broken invariant, or a node that makes no progress.
    pub fn next_day(&mut self, cost: impl FnOnce() -> Cost) -> Result<DaysReport, SimError> {
        let day = self.soak.next_day()?;
        Ok(self.report(&day.so_far, cost(), Moment::Day { day: day.day, rounds: day.rounds }))
    }

    /// Lets every node drain. `cost` is called once they have.
    ///
    /// # Errors
    /// [`SimError`]: a broken invariant, or a node that does not finish.
    pub fn finish(mut self, cost: impl FnOnce() -> Cost) -> Result<DaysReport, SimError> {
        let mut outcome = self.soak.finish();
        if let Some(error) = outcome.failure.take() {
            return Err(error);
        }
        let at = Moment::End { drained: true, numerators_off_by: self.soak.drift() };
        Ok(self.report(&outcome, cost(), at))
    }

    fn report(&self, outcome: &SeedOutcome, cost: Cost, at: Moment) -> DaysReport {
        DaysReport {
            schema: "mingle.fault-test-days/1",
            release: env!("CARGO_PKG_VERSION"),
            profile: self.profile,
            seed: outcome.seed,
            nodes: outcome.nodes,
            virtual_s: outcome.ended.micros() / 1_000_000,
            kills: outcome.kills,
            partitions: outcome.partitions,
            link_cuts: outcome.link_cuts,
            rollbacks: outcome.rollbacks,
            false_suspicions: outcome.false_suspicions,
            checks: outcome.checks(),
            wire_checks: outcome.wire_checks,
            disk_checks: outcome.disk_checks,
            events: outcome.events,
            digest: blake3::Hash::from_bytes(outcome.digest).to_hex().to_string(),
            wall_s: cost.wall.as_secs_f64(),
            peak_memory_bytes: cost.peak_memory_bytes,
            at,
        }
    }
}
