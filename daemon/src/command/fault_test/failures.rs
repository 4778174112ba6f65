//! Failing seeds, and their runs made short and written down.

use std::path::{Path, PathBuf};

use mingle_peer::ErrorKind;
use mingle_peer::error::Context;
use mingle_peer::output_file;
use mingle_protocol::InjectedBug;
use mingle_protocol::sim::{Journal, Outcome, Profile, shrink};
use serde::Serialize;

/// A seed that failed.
#[derive(Debug, Serialize)]
pub(super) struct FailingSeed {
    seed: u64,
    nodes: u32,
    /// Virtual time.
    failed_after_s: f64,
    message: String,
    /// What runs it again.
    replay: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    shrunk: Option<Shrunk>,
}

/// What became of the run of a failing seed.
#[derive(Debug, Serialize)]
struct Shrunk {
    journal: PathBuf,
    faults_before: usize,
    faults: usize,
    runs: u32,
    message: String,
}

impl FailingSeed {
    /// The seed of a failed run; `None` for one that went well.
    pub(super) fn of(outcome: &Outcome, profile: Profile, injected_bug: Option<InjectedBug>) -> Option<Self> {
        let failure = outcome.failure.as_ref()?;
        let (seed, nodes) = (outcome.seed, outcome.nodes);
        let inject = injected_bug.map_or_else(String::new, |bug| format!(" --inject {bug}"));
        Some(Self {
            seed,
            nodes,
            failed_after_s: outcome.ended.micros() as f64 / 1e6,
            message: failure.to_string(),
            replay: format!("mingle fault-test --profile {profile} --first {seed} --seeds 1{inject}"),
            shrunk: None,
        })
    }

    /// Runs it again, looks for fewer faults that make it fail as well, and writes that run into a folder.
    pub(super) fn write(
        &mut self,
        profile: Profile,
        injected_bug: Option<InjectedBug>,
        folder: &Path,
        most_runs: u32,
    ) -> mingle_peer::Result {
        let (whole, _) = Journal::record(profile, self.seed, injected_bug);
        let faults_before = whole.faults().len();
        let shrunk = shrink(&whole, most_runs);
        let runs = shrunk.as_ref().map_or(0, |shrunk| shrunk.runs);
        let short = shrunk.map_or(whole, |shrunk| shrunk.journal);
        let inject = injected_bug.map_or_else(String::new, |bug| format!("-{bug}"));
        let path = folder.join(format!("{profile}-{}{inject}.json", self.seed));
        let text = serde_json::to_string_pretty(&short).context(ErrorKind::Unexpected, "cannot encode the journal")?;
        output_file::make_folder(folder)?;
        output_file::write(&path, format!("{text}\n").as_bytes())?;
        self.replay = format!("mingle replay {} --trace", path.display());
        let message = short.failure().unwrap_or_default().to_owned();
        self.shrunk = Some(Shrunk { journal: path, faults_before, faults: short.faults().len(), runs, message });
        Ok(())
    }

    /// It, for a person.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("  seed {}, {} nodes: {}", self.seed, self.nodes, self.message)];
        if let Some(Shrunk { faults_before, faults, runs, message, .. }) = &self.shrunk {
            lines.push(format!("    with {faults} of its {faults_before} faults, found in {runs} runs: {message}"));
        }
        lines.push(format!("    {}", self.replay));
        lines
    }
}
