//! What a peer leaves behind: the de-biased model in PyTorch's names, and a summary with its side of the ledger.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mingle_models::{Checkpoint, Task};
use mingle_net::traffic::Encoding;
use mingle_protocol::LedgerSummary;
use serde::{Deserialize, Serialize};

use crate::failure::{Kind, OrFail, Outcome};
use crate::home::{self, Home};
use crate::model_files;

/// The version of the summary file.
const SCHEMA: &str = "mingle.summary/1";

/// How a run went for one peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// [`SCHEMA`].
    pub(crate) schema: String,
    /// This peer.
    pub(crate) peer: String,
    /// Its node in the plan.
    pub(crate) node: u32,
    /// The plan's hash.
    pub(crate) plan: String,
    /// What was trained.
    pub(crate) task: String,
    /// Rounds done, of those that were wanted.
    pub(crate) rounds: u64,
    /// Rounds wanted.
    pub(crate) rounds_wanted: u64,
    /// Test accuracy of the final de-biased model.
    pub(crate) accuracy: f64,
    /// Its mean cross-entropy on the test set, in nats.
    pub(crate) loss: f64,
    /// Seconds from the start of the process.
    pub(crate) seconds: f64,
    /// Bytes written to all links.
    pub(crate) sent_bytes: u64,
    /// Bytes read from all links.
    #[serde(default)]
    pub(crate) received_bytes: u64,
    /// How parameters were encoded on them.
    #[serde(default)]
    pub(crate) encoding: Encoding,
    /// The largest resident memory of the process, where the system tells.
    pub(crate) peak_resident_bytes: Option<u64>,
    /// BLAKE3 of the model file.
    #[serde(default)]
    pub(crate) model_blake3: Option<String>,
    /// This peer's side of the mass ledger.
    pub(crate) ledger: LedgerSummary,
}

impl Summary {
    /// The schema of a new summary.
    pub(crate) fn schema() -> String {
        SCHEMA.to_owned()
    }

    /// Writes the summary into the home.
    pub(crate) fn write(&self, home: &Home) -> Outcome {
        let path = home.summary();
        let text = serde_json::to_string_pretty(self).or_fail(Kind::Unexpected, "cannot encode the summary")?;
        home::write_file(&path, format!("{text}\n").as_bytes())
    }

    /// Reads a summary.
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let doing = format!("cannot read the summary {}", path.display());
        let text = fs::read_to_string(path).or_fail(Kind::Integrity, &doing)?;
        serde_json::from_str(&text).or_fail(Kind::Integrity, doing)
    }
}

/// Writes the de-biased model into the home; returns the BLAKE3 of the file.
pub(crate) fn write_model(
    home: &Home,
    task: &Task,
    parameters: &[f32],
    metadata: BTreeMap<String, String>,
) -> Outcome<String> {
    let checkpoint = Checkpoint { parameters: parameters.to_vec(), metadata };
    model_files::write(&checkpoint, &home.model(), task)?;
    model_files::hash(&home.model())
}

/// The largest resident memory of this process so far, where the system tells.
pub(crate) fn peak_resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}
