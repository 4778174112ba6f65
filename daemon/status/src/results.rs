//! The results of a peer: the de-biased model, and a summary with its side of the ledger.

use std::fmt;
use std::fs;
use std::path::Path;

use mingle_net::traffic::{MulticastTraffic, ParameterEncoding};
use mingle_privacy::PrivacySpending;
use mingle_protocol::LedgerSummary;
use mingle_training::{Best, Metrics, MomentumTaken};
use serde::{Deserialize, Serialize};

pub use mingle_training::model_file::MODEL_CHECKSUM;

use crate::overlap::OverlapTaken;
use crate::status::RobustReceiving;
use mingle_home::error::{Context, ErrorKind, Result};
use mingle_home::home::Home;
use mingle_home::small_file;

/// The version of the summary file.
const SCHEMA: &str = "mingle.summary/2";

/// The summary of a run at one peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The version of the format.
    pub schema: String,
    /// This peer.
    pub peer: String,
    /// Its node in the plan.
    pub node: u32,
    /// The plan's hash.
    pub plan: String,
    /// A description of the model and its training.
    pub task: String,
    /// Rounds done, of those that were wanted.
    pub rounds: u64,
    /// Rounds wanted.
    pub rounds_wanted: u64,
    /// Rounds of those done that this peer skipped, since its neighbours were too far ahead.
    #[serde(default)]
    pub skipped: u64,
    /// The metrics of the final de-biased model on held-out samples, unless `metrics_of` names another.
    pub metrics: Metrics,
    /// Subject of the metrics, where it was not the final model on all samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics_of: Option<MetricsOf>,
    /// The metric, value and round of the model in `best.safetensors`, where the best one was to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Best>,
    /// The privacy spent, where changes are private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<PrivacySpending>,
    /// The clipping of other peers' models, where models are clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robust: Option<RobustReceiving>,
    /// Seconds from the start of the process.
    pub seconds: f64,
    /// Bytes written to all links.
    pub sent_bytes: u64,
    /// Bytes read from all links.
    #[serde(default)]
    pub received_bytes: u64,
    /// The encoding of parameters on the links.
    #[serde(default)]
    pub encoding: ParameterEncoding,
    /// Payloads by multicast, where that is the medium.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multicast: Option<MulticastTraffic>,
    /// The momentum across rounds under the last plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub momentum_across_rounds: Option<MomentumTaken>,
    /// Training of the next round while the present one was mixed; `None` where that was off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapTaken>,
    /// The largest resident memory of the process, where the system reports it.
    pub peak_resident_bytes: Option<u64>,
    /// BLAKE3 of the model file.
    #[serde(default)]
    pub model_blake3: Option<String>,
    /// This peer's side of the mass ledger.
    pub ledger: LedgerSummary,
    /// The result of training on its own data alone, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<LocalBaseline>,
}

/// The subject of the last metrics of a run whose final model was not evaluated on all held-out samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricsOf {
    /// The model after this round.
    Round(u64),
    /// The final model, on this many of the samples.
    Samples(usize),
    /// Models in training: the script reported these values with its changes.
    Training,
    /// Nothing: no evaluation was answered.
    Nothing,
}

impl fmt::Display for MetricsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Round(round) => write!(f, " (measured after round {round}, not of the final model)"),
            Self::Samples(samples) => write!(f, " (on {samples} samples only)"),
            Self::Training => f.write_str(" (reported in training, not measured of the final model)"),
            Self::Nothing => f.write_str(" (the final model was not evaluated)"),
        }
    }
}

/// A model that a peer trained on its own data alone, to compare the swarm's with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalBaseline {
    /// Rounds of training.
    pub rounds: u64,
    /// Gradient steps in each.
    pub local_steps: u32,
    /// Held-out samples on which it was evaluated.
    pub held_out_samples: usize,
    /// Its metrics on these.
    pub metrics: Metrics,
}

/// Returns `true` if this peer skipped more than half of the rounds of its run: its data have little part in the model.
pub fn skipped_most(rounds: u64, skipped: u64) -> bool {
    skipped > rounds / 2
}

impl Summary {
    /// The schema of a new summary.
    pub fn schema() -> String {
        SCHEMA.to_owned()
    }

    /// Writes the summary into the home.
    pub fn write(&self, home: &Home) -> Result {
        small_file::write_json(&home.summary(), self, "the summary")
    }

    /// Reads a summary.
    pub fn read(path: &Path) -> Result<Self> {
        let doing = format!("cannot read the summary {}", path.display());
        let text = fs::read_to_string(path).context(ErrorKind::Integrity, &doing)?;
        serde_json::from_str(&text).context(ErrorKind::Integrity, doing)
    }
}

/// The largest resident memory of this process so far, where the system reports it.
pub fn peak_resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}
