//! The best model of a run by a metric, kept in a file beside the last one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use mingle_home::error::Context;
use mingle_home::home::write_file;
use mingle_home::{ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::model_file::{describe, read_metadata};
use crate::{Criterion, Metrics, ModelEncoder};

/// Metadata keys by which the file is recognised.
const CRITERION: &str = "best_by";
const VALUE: &str = "best_value";
const ROUND: &str = "rounds";

/// The best model of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The metric.
    pub metric: String,
    /// Its value on the held-out samples.
    pub value: f64,
    /// Number of rounds after which it was reached.
    pub round: u64,
}

impl fmt::Display for Best {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:.4} after round {}", self.metric, self.value, self.round)
    }
}

/// The file for the best model of a run.
pub struct BestFile {
    /// The file.
    pub path: PathBuf,
    /// Encodes the model.
    pub encoder: ModelEncoder,
    /// Metadata beside the metrics.
    pub metadata: BTreeMap<String, String>,
}

/// Keeps the best model. Files are written on a dedicated thread; at most one model waits while another is written.
pub struct BestModel {
    criterion: Criterion,
    best: Option<Best>,
    waiting: Arc<PendingWrites>,
    writer: Option<JoinHandle<()>>,
}

/// Pending work of the writer.
#[derive(Default)]
struct PendingWrites {
    state: Mutex<Next>,
    changed: Condvar,
}

#[derive(Default)]
struct Next {
    candidate: Option<CandidateModel>,
    is_over: bool,
}

struct CandidateModel {
    best: Best,
    metrics: Metrics,
    model: Arc<[f32]>,
}

impl BestModel {
    /// Begins anew, or continues from the file of the same run: one by another metric stays until there is a model by
    /// this one. `tell` is called for each model that is written, or with the error.
    ///
    /// # Errors
    /// The file of an earlier run cannot be removed, or no thread can be started.
    pub fn open(
        criterion: Criterion,
        file: BestFile,
        goes_on: bool,
        tell: impl Fn(Result<Best>) + Send + 'static,
    ) -> Result<Self> {
        let best = if goes_on { recall(&file.path, &criterion) } else { None };
        if !goes_on {
            remove(&file.path)?;
        }
        let waiting = Arc::<PendingWrites>::default();
        let words = criterion.to_string();
        let candidates = Arc::clone(&waiting);
        let writer = std::thread::Builder::new()
            .name("best-model".to_owned())
            .spawn(move || write_all(&candidates, &file, &words, tell))
            .context(ErrorKind::Unexpected, "cannot start a thread that writes the best model")?;
        Ok(Self { criterion, best, waiting, writer: Some(writer) })
    }

    /// Keeps a model if it is better than all before.
    pub fn consider(&mut self, round: u64, metrics: &Metrics, model: Arc<[f32]>) {
        let Some(value) = self.criterion.value_in(metrics) else { return };
        if self.best.as_ref().is_some_and(|best| !self.criterion.direction.is_better(value, best.value)) {
            return;
        }
        let best = Best { metric: self.criterion.metric.clone(), value, round };
        self.best = Some(best.clone());
        self.waiting.change(|next| next.candidate = Some(CandidateModel { best, metrics: metrics.clone(), model }));
    }

    /// Waits until the file is written, and returns which model is in it.
    pub fn finish(mut self) -> Option<Best> {
        self.waiting.change(|next| next.is_over = true);
        if let Some(writer) = self.writer.take() {
            // A panic there must not be one here.
            let _ = writer.join();
        }
        self.best.take()
    }
}

/// Ends the writer after its present work.
impl Drop for BestModel {
    fn drop(&mut self) {
        self.waiting.change(|next| next.is_over = true);
    }
}

impl PendingWrites {
    fn change(&self, change: impl FnOnce(&mut Next)) {
        change(&mut self.lock());
        self.changed.notify_one();
    }

    /// Waits for a model; `None` once there will be no more.
    fn next(&self) -> Option<CandidateModel> {
        let is_idle = |next: &mut Next| next.candidate.is_none() && !next.is_over;
        let mut next = self.changed.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        next.candidate.take()
    }

    fn lock(&self) -> MutexGuard<'_, Next> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write_all(waiting: &PendingWrites, file: &BestFile, criterion: &str, tell: impl Fn(Result<Best>)) {
    while let Some(CandidateModel { best, metrics, model }) = waiting.next() {
        tell(write(file, criterion, &best, &metrics, &model).map(|()| best));
    }
}

fn write(file: &BestFile, criterion: &str, best: &Best, metrics: &Metrics, model: &[f32]) -> Result {
    let encoded = (file.encoder)(model).context(ErrorKind::Training, "its training cannot encode it")?;
    let measured = metrics.iter().map(|(name, value)| (name.to_owned(), value.to_string()));
    let known = [(CRITERION, criterion.to_owned()), (VALUE, best.value.to_string()), (ROUND, best.round.to_string())];
    let mut metadata = file.metadata.clone();
    metadata.extend(measured.chain(known.map(|(key, value)| (key.to_owned(), value))));
    let mut encoded = encoded;
    describe(&mut encoded, &metadata).context(ErrorKind::Unexpected, "cannot encode the model")?;
    write_file(&file.path, &encoded)
}

/// The best model recorded in the file of this run; `None` if there is no such file by this criterion.
fn recall(path: &Path, criterion: &Criterion) -> Option<Best> {
    let metadata = read_metadata(path).ok()?;
    if *metadata.get(CRITERION)? != criterion.to_string() {
        return None;
    }
    let value = metadata.get(VALUE)?.parse().ok()?;
    let round = metadata.get(ROUND)?.parse().ok()?;
    Some(Best { metric: criterion.metric.clone(), value, round })
}

fn remove(path: &Path) -> Result {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context(ErrorKind::BadInput, format!("cannot remove {}, of an earlier run", path.display()))
        }
        _ => Ok(()),
    }
}
