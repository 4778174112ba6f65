//! Failing seeds, and their shortened runs.

use std::path::PathBuf;

use mingle_protocol::sim::{Journal, Profile, SeedOutcome, Variant, shrink};
use mingle_protocol::{Robust, TrainingOverlap};
use serde::Serialize;

use super::sums::{SUMS, SumsOutcome};

/// A seed that failed.
#[derive(Clone, Debug, Serialize)]
pub struct FailingSeed {
    /// The seed.
    pub seed: u64,
    /// Nodes in its swarm.
    pub nodes: u32,
    /// The virtual time of the failure, in seconds.
    pub failed_after_s: f64,
    /// The error.
    pub message: String,
    /// The command that runs the seed again.
    pub replay: String,
    /// Its short run, once that is written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shrunk: Option<ShrunkRun>,
    /// The profile and the variant, by which the run can be shortened and written down.
    #[serde(skip)]
    run: Option<(Profile, Variant)>,
}

/// The shortened run of a failing seed, as it was written.
#[derive(Clone, Debug, Serialize)]
pub struct ShrunkRun {
    /// The file of the short run.
    pub journal: PathBuf,
    /// Faults in the whole run.
    pub faults_before: usize,
    /// Faults in the short run.
    pub faults: usize,
    /// Runs that were tried.
    pub runs: u32,
    /// The error of the short run.
    pub message: String,
}

/// The run of a failing seed, with the fewest faults that were found to make it fail.
#[derive(Clone, Debug)]
pub struct ShortRun {
    /// The run, for a file.
    pub journal: Journal,
    faults_before: usize,
    runs: u32,
}

impl FailingSeed {
    /// The seed of a failed run; `None` for one without failure.
    pub(super) fn of(outcome: &SeedOutcome, profile: Profile, variant: Variant) -> Option<Self> {
        let failure = outcome.failure.as_ref()?;
        let seed = outcome.seed;
        let mut options = variant.injected_bug.map_or_else(String::new, |bug| format!(" --inject {bug}"));
        if variant.robust != Robust::Off {
            options += &format!(" --robust {}", variant.robust);
        }
        if variant.overlap != TrainingOverlap::Off {
            options += &format!(" --overlap {}", variant.overlap);
        }
        Some(Self {
            seed,
            nodes: outcome.nodes,
            failed_after_s: outcome.ended.micros() as f64 / 1e6,
            message: failure.to_string(),
            replay: format!("mingle fault-test --profile {profile} --first {seed} --seeds 1{options}"),
            shrunk: None,
            run: Some((profile, variant)),
        })
    }

    /// The seed of a failed run of masked sums, which has no journal; `None` for one without failure.
    pub(super) fn of_sums(outcome: &SumsOutcome) -> Option<Self> {
        let seed = outcome.seed;
        Some(Self {
            seed,
            nodes: outcome.nodes,
            failed_after_s: outcome.ended_ms as f64 / 1e3,
            message: outcome.failure.clone()?,
            replay: format!("mingle fault-test --profile {SUMS} --first {seed} --seeds 1"),
            shrunk: None,
            run: None,
        })
    }

    /// Runs the seed again, and looks for fewer faults that make it fail as well, in at most `most_runs` runs. `None` for runs
    /// that have no journal.
    pub fn shorten(&self, most_runs: u32) -> Option<ShortRun> {
        let (profile, variant) = self.run?;
        let (whole, _) = Journal::record(profile, self.seed, variant);
        let faults_before = whole.faults().len();
        let shrunk = shrink(&whole, most_runs);
        let runs = shrunk.as_ref().map_or(0, |shrunk| shrunk.runs);
        Some(ShortRun { journal: shrunk.map_or(whole, |shrunk| shrunk.journal), faults_before, runs })
    }

    /// The name of a file for its journal: distinct for each profile, seed, injected bug, clipping of neighbours' ratios
    /// and overlap. `None` for runs that have no journal.
    pub fn file_name(&self) -> Option<String> {
        let (profile, Variant { injected_bug, robust, overlap }) = self.run?;
        let inject = injected_bug.map_or_else(String::new, |bug| format!("-{bug}"));
        let robust = if robust == Robust::Off { String::new() } else { format!("-{robust}") };
        let overlap = if overlap == TrainingOverlap::Off { String::new() } else { format!("-overlap-{overlap}") };
        Some(format!("{profile}-{}{inject}{robust}{overlap}.json", self.seed))
    }

    /// Records that its short run is in this file now.
    pub fn written(&mut self, path: PathBuf, short: &ShortRun) {
        let ShortRun { journal, faults_before, runs } = short;
        self.replay = format!("mingle replay {} --trace", path.display());
        self.shrunk = Some(ShrunkRun {
            journal: path,
            faults_before: *faults_before,
            faults: journal.faults().len(),
            runs: *runs,
            message: journal.failure().unwrap_or_default().to_owned(),
        });
    }
}
