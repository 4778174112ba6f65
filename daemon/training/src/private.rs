//! Local training whose changes are clipped and noised before anything else sees them.

use std::fs;
use std::io::ErrorKind as IoErrorKind;
use std::path::{Path, PathBuf};

use mingle_privacy::gaussian_mechanism::clip_and_noise;
use mingle_privacy::{NoiseSource, NoisedChanges, PrivacyBudget, PrivacySettings, PrivacySpending};
use serde::{Deserialize, Serialize};

use crate::{Budget, Evaluation, Facts, Layout, LocalTraining, ModelEncoder, Patience, Trained, TrainingError};
use mingle_home::Home;
use mingle_home::error::Context;
use mingle_home::home::write_file;
use mingle_home::{Error, ErrorKind, Result};

/// The version of the file that counts noised changes.
const SCHEMA: &str = "mingle.privacy/1";

/// Any training, with differential privacy: each change is clipped to a norm and gets Gaussian noise, and once all of them
/// together cost as much as they may, there are no more.
///
/// What others get of a peer is made of its changes alone, and of what others gave: mixing, clipping, scaling and encoding
/// them afterwards gives nothing more away. The home counts the changes, over all runs in it.
pub struct PrivateTraining {
    training: Box<dyn LocalTraining>,
    budget: PrivacyBudget,
    noise: NoiseSource,
    count: PathBuf,
    /// By what the last change was multiplied to clip it.
    last_scale: f64,
}

/// What the home keeps.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    schema: String,
    noised: NoisedChanges,
}

impl PrivateTraining {
    /// `training` under `settings`; what it released before is counted in `home`.
    ///
    /// # Errors
    /// The count cannot be read: nobody knows how much may still be released.
    pub fn new(training: Box<dyn LocalTraining>, settings: PrivacySettings, home: &Home) -> Result<Self> {
        let count = home.privacy();
        let budget = PrivacyBudget::new(settings, read(&count)?);
        Ok(Self { training, budget, noise: NoiseSource::default(), count, last_scale: 1.0 })
    }

    /// Takes noise from `source`, for simulations and tests.
    #[must_use]
    pub fn with_noise(mut self, source: NoiseSource) -> Self {
        self.noise = source;
        self
    }

    /// Counts another change, on disk before any of it can leave: a crash can only count too many. False where none is allowed,
    /// or it cannot be counted.
    fn count_one(&mut self) -> bool {
        let Some(next) = self.budget.next() else { return false };
        if let Err(failure) = write(&self.count, next.changes()) {
            tracing::error!("no change is released while it cannot be counted: {failure:#}");
            return false;
        }
        self.budget = next;
        true
    }
}

impl LocalTraining for PrivateTraining {
    fn layout(&self) -> &Layout {
        self.training.layout()
    }

    fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
        self.training.initial()
    }

    fn begins_with_the_founder(&self) -> bool {
        self.training.begins_with_the_founder()
    }

    fn is_absent(&self) -> bool {
        self.budget.next().is_some() && self.training.is_absent()
    }

    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
        if self.budget.next().is_none() {
            return Ok(nothing(from.len()));
        }
        let budget = Budget { last_factor: budget.last_factor * self.last_scale, ..budget.clone() };
        let Trained { mut change, steps, loss } = self.training.train(from, &budget)?;
        if steps == 0 || !self.count_one() {
            self.last_scale = 0.0;
            return Ok(nothing(from.len()));
        }
        let mut generator = self.noise.generator()?;
        // The node would multiply a change of fewer steps after it was clipped, and tell how many there were.
        let wanted = budget.local_steps.max(1);
        let pace = f64::from(wanted) / f64::from(steps);
        change.iter_mut().for_each(|value| *value = (f64::from(*value) * pace) as f32);
        let settings = self.budget.settings();
        let norm = clip_and_noise(&mut change, settings.clip(), settings.noise(), &mut generator);
        if !norm.is_finite() {
            tracing::error!(
                round = budget.round,
                "the change is not finite: it counts as zero, and only noise is released"
            );
        }
        self.last_scale = if norm.is_finite() { (settings.clip() / norm).min(1.0) } else { 0.0 };
        Ok(Trained { change, steps: wanted, loss })
    }

    fn evaluate(&mut self, parameters: &[f32], patience: &Patience) -> Result<Evaluation, TrainingError> {
        self.training.evaluate(parameters, patience)
    }

    fn state(&self) -> Vec<u8> {
        self.training.state()
    }

    fn largest_state(&self) -> usize {
        self.training.largest_state()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TrainingError> {
        self.training.restore(state)
    }

    fn facts(&self) -> Facts {
        self.training.facts()
    }

    fn model_encoder(&self) -> ModelEncoder {
        self.training.model_encoder()
    }

    fn privacy(&self) -> Option<PrivacySpending> {
        Some(self.budget.spending())
    }
}

/// A round without local steps.
fn nothing(dimension: usize) -> Trained {
    Trained { change: vec![0.0; dimension], steps: 0, loss: None }
}

fn read(path: &Path) -> Result<NoisedChanges> {
    let doing = format!("cannot read how much privacy is spent in {}", path.display());
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(NoisedChanges::default()),
        Err(error) => return Err(error).context(ErrorKind::Integrity, doing),
    };
    let count: Count = serde_json::from_str(&text).context(ErrorKind::Integrity, &doing)?;
    if count.schema != SCHEMA {
        return Err(Error::new(ErrorKind::Integrity, format!("{doing}: it is of the version {}", count.schema)));
    }
    Ok(count.noised)
}

fn write(path: &Path, noised: &NoisedChanges) -> Result {
    let count = Count { schema: SCHEMA.to_owned(), noised: noised.clone() };
    let text = serde_json::to_string(&count).context(ErrorKind::Unexpected, "cannot encode the count")?;
    write_file(path, format!("{text}\n").as_bytes())
}
