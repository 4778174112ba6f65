//! Differentially private local training: changes are clipped and noised before any other code receives them.

use std::fs;
use std::io::ErrorKind as IoErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_privacy::gaussian_mechanism::clip_and_noise;
use mingle_privacy::{
    CountFile, NoiseNotUsable, NoiseSource, PrivacyBudget, PrivacySettings, PrivacySpending, ProtectedUnit,
};

use crate::{
    Budget, Evaluation, Facts, Layout, LocalTraining, ModelEncoder, NoiseOfRound, Patience, Trained, TrainingError,
};
use mingle_home::Home;
use mingle_home::error::Context;
use mingle_home::home::write_file;
use mingle_home::{ErrorKind, Result};

/// Any training, with differential privacy. Each change is clipped to a norm and gets Gaussian noise. Once all changes
/// together have spent the privacy budget, no more are released.
///
/// The data that others receive from a peer derive from its changes alone, and from the data of others. Mixing,
/// clipping, scaling and encoding are post-processing, which reveals nothing more. The home counts the changes over all
/// its runs.
pub struct PrivateTraining {
    training: Box<dyn LocalTraining>,
    budget: PrivacyBudget,
    noise: NoiseSource,
    path: PathBuf,
    count: CountFile,
    /// Factor by which the last change was multiplied to clip it.
    last_scale: f64,
    /// The plan under which the user was last warned of noise that cannot be shared.
    warned_under: Option<[u8; 32]>,
}

impl PrivateTraining {
    /// `training` under `settings`; earlier releases are counted in `home`.
    ///
    /// # Errors
    /// The count cannot be read: the remaining budget is unknown. Or the home has released what protects single samples alone.
    pub fn new(training: Box<dyn LocalTraining>, settings: PrivacySettings, home: &Home) -> Result<Self> {
        let path = home.privacy();
        let doing = "the changes of this peer cannot be private";
        let count = read(&path)?;
        let before =
            count.releases_of(ProtectedUnit::Member, settings.colluders()).context(ErrorKind::BadInput, doing)?;
        let budget = PrivacyBudget::new(settings, before);
        Ok(Self { training, budget, noise: NoiseSource::default(), path, count, last_scale: 1.0, warned_under: None })
    }

    /// Draws noise from `source`, for simulations and tests.
    #[must_use]
    pub fn with_noise(mut self, source: NoiseSource) -> Self {
        self.noise = source;
        self
    }

    /// Counts another change, on disk before any of it can leave: a crash can only count too many. Returns the noise that
    /// it is to have, or `None` if no change is allowed, or it cannot be counted.
    fn count_one(&mut self, shared: Option<&NoiseOfRound>) -> Option<ChangeNoise> {
        let budget = self.budget.next()?;
        let noise = budget.settings().noise();
        let correlated = shared.zip(budget.settings().colluders()).and_then(|(shared, colluders)| {
            let counted = self.count.correlated.with(&shared.noise, shared.round, noise, colluders);
            let counted = counted.map_err(|reason| self.warn_of_own_noise(shared.noise.plan(), reason)).ok()?;
            Some((counted, ChangeNoise::Correlated(shared.clone())))
        });
        let (count, kind) = match correlated {
            Some((correlated, kind)) => (CountFile { correlated, ..self.count.clone() }, kind),
            None => (CountFile { noised: self.count.noised.with(noise, 1), ..self.count.clone() }, ChangeNoise::Own),
        };
        if let Err(failure) = write(&self.path, &count) {
            tracing::error!("no change is released while it cannot be counted: {failure:#}");
            return None;
        }
        self.budget = budget;
        self.count = count;
        Some(kind)
    }

    /// Warns, once a plan, that changes have all of their noise from this peer.
    fn warn_of_own_noise(&mut self, plan: &[u8; 32], reason: NoiseNotUsable) {
        if self.warned_under.replace(*plan) != Some(*plan) {
            tracing::error!(
                "all noise on a change is this peer's own, and that which others share with it stays: {reason}"
            );
        }
    }

    /// A change of so many coordinates by `train`, made private.
    fn release(
        &mut self,
        dimension: usize,
        budget: &Budget,
        train: impl FnOnce(&mut dyn LocalTraining, &Budget) -> Result<Trained, TrainingError>,
    ) -> Result<Trained, TrainingError> {
        if self.budget.next().is_none() {
            return Ok(nothing(dimension));
        }
        let budget = Budget { last_factor: budget.last_factor * self.last_scale, ..budget.clone() };
        let Trained { mut change, steps, loss } = train(&mut *self.training, &budget)?;
        let noise = if steps == 0 { None } else { self.count_one(budget.noise.as_ref()) };
        let Some(noise) = noise else {
            self.last_scale = 0.0;
            return Ok(nothing(dimension));
        };
        // The node would scale a change of fewer steps after clipping, and so reveal their number.
        let wanted = budget.local_steps.max(1);
        let pace = f64::from(wanted) / f64::from(steps);
        change.iter_mut().for_each(|value| *value = (f64::from(*value) * pace) as f32);
        let clip = self.budget.settings().clip();
        let norm = self.add_noise(&mut change, &noise)?;
        if !norm.is_finite() {
            tracing::error!(
                round = budget.round,
                "the change is not finite: it counts as zero, and only noise is released"
            );
        }
        self.last_scale = if norm.is_finite() { (clip / norm).min(1.0) } else { 0.0 };
        Ok(Trained { change, steps: wanted, loss })
    }

    /// Clips a change and adds its noise; returns the norm before.
    fn add_noise(&mut self, change: &mut [f32], noise: &ChangeNoise) -> Result<f64, TrainingError> {
        let mut own = self.noise.generator()?;
        let settings = self.budget.settings();
        Ok(match noise {
            ChangeNoise::Own => clip_and_noise(change, settings.clip(), settings.noise(), &mut own),
            ChangeNoise::Correlated(NoiseOfRound { round, noise }) => {
                noise.clip_and_noise(change, settings.clip(), *round, &mut own)
            }
        })
    }
}

/// The noise of a change.
enum ChangeNoise {
    /// All of it from this peer.
    Own,
    /// A part of it shared with other members.
    Correlated(NoiseOfRound),
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
        self.release(from.len(), budget, |training, budget| training.train(from, budget))
    }

    fn train_shared(&mut self, from: &Arc<[f32]>, budget: &Budget) -> Result<Trained, TrainingError> {
        self.release(from.len(), budget, |training, budget| training.train_shared(from, budget))
    }

    fn evaluate(&mut self, parameters: &[f32], patience: &Patience) -> Result<Evaluation, TrainingError> {
        self.training.evaluate(parameters, patience)
    }

    fn evaluate_shared(&mut self, parameters: &Arc<[f32]>, patience: &Patience) -> Result<Evaluation, TrainingError> {
        self.training.evaluate_shared(parameters, patience)
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

    fn shared_model_encoder(&self) -> ModelEncoder {
        self.training.shared_model_encoder()
    }

    fn privacy(&self) -> Option<PrivacySpending> {
        Some(self.budget.spending())
    }
}

/// The result of a round without local steps.
fn nothing(dimension: usize) -> Trained {
    Trained { change: vec![0.0; dimension], steps: 0, loss: None }
}

fn read(path: &Path) -> Result<CountFile> {
    let doing = format!("cannot read how much privacy is spent in {}", path.display());
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(CountFile::default()),
        Err(error) => return Err(error).context(ErrorKind::Integrity, doing),
    };
    CountFile::parse(&text).context(ErrorKind::Integrity, doing)
}

/// Writes the count.
fn write(path: &Path, count: &CountFile) -> Result {
    let text = count.text().context(ErrorKind::Unexpected, "cannot encode the count")?;
    write_file(path, text.as_bytes())
}
