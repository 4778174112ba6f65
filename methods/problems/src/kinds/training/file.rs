//! The problem file of training: the data, the model, and how it learns.

use mingle_models::{Augmentation, ModelKind, ObjectiveKind, OptimizerKind, OptimizerOptions, Split};
use mingle_privacy::{DEFAULT_DELTA, PrivacySettings};
use serde::{Deserialize, Serialize};

use crate::ProblemFileError;
use crate::file::RoundFile;

/// The use of what the peers train.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TrainingMethod {
    /// All go on from the mean of their changes (McMahan et al. 2017).
    #[default]
    Fedavg,
    /// Each goes on by itself.
    Alone,
}

/// A training file; absent keys have their defaults.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TrainingFile {
    /// `training`.
    pub(super) kind: String,
    /// The data, as `--data` takes them: with `{node}` in it, each node's own; else one source that is dealt out.
    pub(super) data: String,
    /// The file of the card of the data, relative to that of the problem. Needed where each node has a table or images of
    /// its own.
    pub(super) card: Option<String>,
    /// For one source: the way in which it is dealt out.
    pub(super) split: Split,
    /// The objective.
    pub(super) task: ObjectiveKind,
    /// The model.
    pub(super) model: String,
    /// The use of what the peers train.
    pub(super) method: TrainingMethod,
    /// Rounds of training and averaging.
    pub(super) rounds: u64,
    /// Gradient steps of a peer in a round.
    pub(super) local_steps: u32,
    /// Samples in a step.
    pub(super) batch_size: usize,
    /// The optimizer of a peer's steps.
    pub(super) optimizer: OptimizerKind,
    /// Its step size.
    pub(super) learning_rate: f64,
    /// The momentum of SGD within a peer's steps.
    pub(super) momentum: f64,
    /// Its weight decay.
    pub(super) weight_decay: f64,
    /// The norm to which larger gradients of a step are scaled.
    pub(super) clip_gradients: Option<f64>,
    /// Changes to training images.
    pub(super) augment: String,
    /// The factor of the mean change.
    pub(super) outer_learning_rate: f64,
    /// The momentum of mean changes, from round to round.
    pub(super) outer_momentum: f64,
    /// The seed of the first model, of dealing out, of held-out samples and of batches.
    pub(super) seed: u64,
    /// The device of this peer: `cpu`, or `wgpu`.
    pub(super) device: String,
    /// Differential privacy; none without this table.
    pub(super) privacy: Option<PrivacyEntry>,
}

/// The table `[privacy]`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrivacyEntry {
    /// The largest L2 norm of a peer's change.
    pub(super) clip: f64,
    /// The largest epsilon of all rounds together.
    pub(super) epsilon_max: f64,
    /// The delta of that epsilon.
    #[serde(default = "usual_delta")]
    pub(super) delta: f64,
    /// The deviation of the noise in the sum, divided by the clip; by default the least with which all rounds cost at most
    /// `epsilon_max`.
    #[serde(default)]
    pub(super) noise: Option<f64>,
    /// Members against whom the guarantee holds even if they work together.
    #[serde(default = "usual_colluders")]
    pub(super) colluders: usize,
}

fn usual_delta() -> f64 {
    DEFAULT_DELTA
}

/// Each member knows its own noise.
fn usual_colluders() -> usize {
    1
}

impl Default for TrainingFile {
    fn default() -> Self {
        Self {
            kind: Self::KIND.to_owned(),
            data: String::new(),
            card: None,
            split: Split::Iid,
            task: ObjectiveKind::Classification,
            model: "mlp".to_owned(),
            method: TrainingMethod::default(),
            rounds: 40,
            local_steps: 10,
            batch_size: 32,
            optimizer: OptimizerKind::Sgd,
            learning_rate: 0.1,
            momentum: 0.0,
            weight_decay: 0.0,
            clip_gradients: None,
            augment: Augmentation::NONE.to_string(),
            outer_learning_rate: 1.0,
            outer_momentum: 0.0,
            seed: 0,
            device: "cpu".to_owned(),
            privacy: None,
        }
    }
}

impl TrainingFile {
    /// The entries that all peers have to agree on: all but the source of this one's data and its device.
    pub(super) fn shared(&self) -> Self {
        Self { data: String::new(), card: None, device: String::new(), ..self.clone() }
    }

    pub(super) fn check(&self) -> Result<(), ProblemFileError> {
        let wrong = |message: String| Err(ProblemFileError::Value(message));
        if self.data.is_empty() {
            return wrong(
                "a training needs data: data = \"digits\", \"csv:FILE\", or \"csv:sites/{node}.csv\" with a file for each node"
                    .to_owned(),
            );
        }
        if self.local_steps == 0 {
            return wrong("local_steps = 0: a round has one or more".to_owned());
        }
        if !(self.outer_learning_rate > 0.0 && self.outer_learning_rate.is_finite()) {
            return wrong(format!("outer_learning_rate = {}: a number above 0", self.outer_learning_rate));
        }
        if !(0.0..1.0).contains(&self.outer_momentum) {
            return wrong(format!("outer_momentum = {}: at least 0, and below 1", self.outer_momentum));
        }
        Ok(())
    }

    pub(super) fn model(&self) -> Result<ModelKind, ProblemFileError> {
        self.model.parse().map_err(|error| option("model", &self.model, &error))
    }

    pub(super) fn augmentation(&self) -> Result<Augmentation, ProblemFileError> {
        self.augment.parse().map_err(|error| option("augment", &self.augment, &error))
    }

    /// The settings of a peer's optimizer.
    pub(super) fn optimizer(&self) -> OptimizerOptions {
        OptimizerOptions {
            kind: self.optimizer,
            learning_rate: self.learning_rate,
            momentum: self.momentum,
            beta2: OptimizerOptions::BETA2,
            weight_decay: self.weight_decay,
            clip_gradients: self.clip_gradients,
        }
    }

    /// The settings of differential privacy, with the noise filled in.
    pub(super) fn privacy(&self) -> Result<Option<PrivacySettings>, ProblemFileError> {
        let Some(PrivacyEntry { clip, epsilon_max, delta, noise, .. }) = self.privacy else { return Ok(None) };
        let settings = match noise {
            Some(noise) => PrivacySettings::new(clip, noise, epsilon_max, delta),
            None => PrivacySettings::for_changes(clip, self.rounds, epsilon_max, delta),
        };
        let settings = settings.map_err(|error| ProblemFileError::Options(error.into()))?;
        let epsilon = settings.epsilon_of(self.rounds);
        if epsilon > epsilon_max {
            return Err(ProblemFileError::Value(format!(
                "[privacy] {} rounds with noise {} cost epsilon {epsilon:.3}, more than epsilon_max = {epsilon_max}: take \
                 fewer rounds or more noise, or leave noise out",
                self.rounds,
                settings.noise()
            )));
        }
        Ok(Some(settings))
    }

    /// Describes the task in one line.
    pub(super) fn describe(&self, privacy: Option<&PrivacySettings>) -> String {
        let method = match self.method {
            TrainingMethod::Fedavg => "the mean of all",
            TrainingMethod::Alone => "each alone",
        };
        let private = privacy.map(|settings| format!("; noise that all share: {settings}")).unwrap_or_default();
        format!("training of {}, {method}: {} rounds of {} steps{private}", self.model, self.rounds, self.local_steps)
    }
}

fn option(name: &str, value: &str, error: &dyn std::fmt::Display) -> ProblemFileError {
    ProblemFileError::Value(format!("{name} = {value:?}: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn file(lines: &str) -> TrainingFile {
        toml::from_str(&format!("kind = \"training\"\ndata = \"digits\"\n{lines}")).unwrap()
    }

    #[test]
    fn the_noise_is_the_least_for_all_rounds_unless_it_is_given() {
        let settings = |lines: &str| file(&format!("rounds = 40\n[privacy]\nclip = 0.3\n{lines}")).privacy();
        let found = settings("epsilon_max = 8.1").unwrap().unwrap();
        assert!((found.noise() - 4.0).abs() < 0.02, "{found}");
        assert_eq!(settings("epsilon_max = 9.0\nnoise = 4.0").unwrap().unwrap().noise(), 4.0);
        let error = settings("epsilon_max = 4.0\nnoise = 4.0").unwrap_err().to_string();
        assert!(
            error.contains("40 rounds with noise 4 cost epsilon 8.") && error.contains("epsilon_max = 4"),
            "{error}"
        );
        assert!(file("").privacy().unwrap().is_none());
    }

    #[test]
    fn values_that_mean_nothing_are_named() {
        let refused = |lines: &str| file(lines).check().unwrap_err().to_string();
        assert!(refused("local_steps = 0").contains("local_steps"));
        assert!(refused("outer_learning_rate = 0.0").contains("outer_learning_rate = 0"));
        assert!(refused("outer_momentum = 1.0").contains("outer_momentum = 1"));
        assert!(file("model = \"huge\"").model().unwrap_err().to_string().starts_with("model = \"huge\": "));
        assert!(file("augment = \"melt\"").augmentation().unwrap_err().to_string().starts_with("augment = "));
        let none: TrainingFile = toml::from_str("kind = \"training\"").unwrap();
        assert!(none.check().unwrap_err().to_string().contains("needs data"));
    }
}
