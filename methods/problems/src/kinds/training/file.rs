//! The problem file of training: the data, the model, and how it learns.

use mingle_federated::{FederatedMethod, FederatedSettings, SharedPrivacy, TRAIN_LOSS};
use mingle_models::{Augmentation, ModelKind, ObjectiveKind, OptimizerKind, OptimizerOptions, Split};
use mingle_privacy::{DEFAULT_DELTA, PrivacySettings, ProtectedUnit};
use serde::{Deserialize, Serialize};

use crate::ProblemFileError;
use crate::file::RoundFile;

/// The value of `model` in files of which the model is that of a trainer in another program.
const TRAINER: &str = "trainer";
/// Entries about built-in models, without a meaning where another program trains.
const OF_BUILT_IN: [&str; 13] = [
    "data",
    "card",
    "split",
    "task",
    "batch_size",
    "optimizer",
    "learning_rate",
    "momentum",
    "weight_decay",
    "clip_gradients",
    "augment",
    "seed",
    "device",
];
/// The metrics of a built-in classifier.
const METRICS: [&str; 2] = ["accuracy", "loss"];
/// Those of a regression.
const METRICS_OF_REGRESSION: [&str; 2] = ["r2", "loss"];
/// Those of a trainer whose file names none. With privacy it has none: only the script knows of which samples they would be.
const METRICS_OF_TRAINER: [&str; 3] = ["accuracy", "loss", TRAIN_LOSS];

/// A training file; absent keys have their defaults.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TrainingFile {
    /// `training`.
    pub(super) kind: String,
    /// The data, as `--data` takes them: each node's own with `{node}` in it or with a card; else one source that is dealt out.
    pub(super) data: String,
    /// The file of the card of the data, relative to that of the problem. Needed where each node has a table or images of
    /// its own.
    pub(super) card: Option<String>,
    /// For one source: the way in which it is dealt out.
    pub(super) split: Split,
    /// The objective.
    pub(super) task: ObjectiveKind,
    /// The model; `trainer` for that of another program.
    pub(super) model: String,
    /// The metrics that the other program measures; those of built-in models are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metrics: Option<Vec<String>>,
    /// Rounds from one measurement to the next.
    pub(super) evaluate_every: u64,
    /// The use of what the peers train.
    pub(super) method: FederatedMethod,
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
    /// Releases beyond one a round that the noise is enough for: those of rounds that are repeated after a restart. By default
    /// none where a built-in model trains, which then sends the same numbers, and else one for each 20 rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) spare_releases: Option<u64>,
    /// Members against whom the guarantee holds even if they work together.
    #[serde(default = "usual_colluders")]
    pub(super) colluders: usize,
    /// The unit that the noise hides: all data of a member, or each of its samples.
    #[serde(default)]
    pub(super) protects: ProtectedUnit,
}

/// Rounds of a trainer for each of which one release is spare.
const ROUNDS_TO_A_SPARE: u64 = 20;

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
            metrics: None,
            evaluate_every: 1,
            method: FederatedMethod::default(),
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

    /// Checks the entries of a file about a built-in model.
    pub(super) fn check(&self) -> Result<(), ProblemFileError> {
        let wrong = |message: &str| Err(ProblemFileError::Value(message.to_owned()));
        if self.model == TRAINER {
            return wrong(
                "model = \"trainer\" is the model of another program: name it, `mingle run --problem FILE --trainer COMMAND`",
            );
        }
        if self.metrics.is_some() {
            return wrong("metrics are those of another program, with model = \"trainer\": leave them out");
        }
        if self.data.is_empty() {
            return wrong(
                "a training needs data: data = \"digits\", \"csv:FILE\", or \"csv:sites/{node}.csv\" with a file for each node",
            );
        }
        if self.protects_samples() {
            self.check_single_steps()?;
        }
        self.check_rounds()
    }

    fn protects_samples(&self) -> bool {
        self.privacy.is_some_and(|entry| entry.protects == ProtectedUnit::Sample)
    }

    /// The factor of the mean of a round: of changes, or of gradients where a round is one step over all samples.
    fn rate_of_a_round(&self) -> f64 {
        let of_step = if self.protects_samples() { self.learning_rate } else { 1.0 };
        self.outer_learning_rate * of_step
    }

    /// Refuses entries that have no meaning where a round is one step over all samples.
    fn check_single_steps(&self) -> Result<(), ProblemFileError> {
        let usual = Self::default();
        let entries = [
            ("method = \"alone\"", self.method == usual.method, "there is nothing to protect where nothing is shared"),
            ("local_steps", self.local_steps == 1, "a round is one step over all samples: write local_steps = 1"),
            ("batch_size", self.batch_size == usual.batch_size, "a step takes all samples"),
            ("optimizer", self.optimizer == usual.optimizer, "a step is one of gradient descent, with outer_momentum"),
            ("momentum", self.momentum == usual.momentum, "it is outer_momentum here"),
            ("weight_decay", self.weight_decay == usual.weight_decay, "there is none here"),
            ("clip_gradients", self.clip_gradients.is_none(), "the clip of [privacy] bounds each gradient"),
            ("augment", self.augment == usual.augment, "each sample counts once"),
        ];
        match entries.into_iter().find(|(_, is_usual, _)| !is_usual) {
            Some((entry, _, reason)) => {
                Err(ProblemFileError::Value(format!("{entry} does not go with protects = \"sample\": {reason}")))
            }
            None => Ok(()),
        }
    }

    fn check_rounds(&self) -> Result<(), ProblemFileError> {
        let wrong = |message: String| Err(ProblemFileError::Value(message));
        if self.local_steps == 0 {
            return wrong("local_steps = 0: a round has one or more".to_owned());
        }
        if self.evaluate_every == 0 {
            return wrong("evaluate_every = 0: 1 measures after each round".to_owned());
        }
        if !(self.outer_learning_rate > 0.0 && self.outer_learning_rate.is_finite()) {
            return wrong(format!("outer_learning_rate = {}: a number above 0", self.outer_learning_rate));
        }
        if !(0.0..1.0).contains(&self.outer_momentum) {
            return wrong(format!("outer_momentum = {}: at least 0, and below 1", self.outer_momentum));
        }
        Ok(())
    }

    /// The settings of a file about the model of another program, whose text is `table`.
    pub(super) fn of_trainer(&self, table: &toml::Table) -> Result<FederatedSettings, ProblemFileError> {
        if self.model != TRAINER {
            return Err(ProblemFileError::Value(format!(
                "model = {:?} is a built-in model: leave --trainer out, or write model = \"trainer\" for that of a script",
                self.model
            )));
        }
        if let Some(entry) = OF_BUILT_IN.into_iter().find(|entry| table.contains_key(*entry)) {
            return Err(ProblemFileError::Value(format!(
                "{entry} is about built-in models, and with model = \"trainer\" the script decides on it: leave it out"
            )));
        }
        if self.protects_samples() {
            return Err(ProblemFileError::Value(
                "protects = \"sample\" is about gradients of single samples, which a script does not hand out: leave it out, or \
                 name a built-in model"
                    .to_owned(),
            ));
        }
        self.check_rounds()?;
        let usual = if self.privacy.is_none() { &METRICS_OF_TRAINER[..] } else { &[] };
        self.federated(usual)
    }

    /// The settings of a built-in model.
    pub(super) fn of_built_in(&self) -> Result<FederatedSettings, ProblemFileError> {
        self.federated(match self.task {
            ObjectiveKind::Classification => &METRICS,
            ObjectiveKind::Regression => &METRICS_OF_REGRESSION,
        })
    }

    /// The settings of federated averaging, with these metrics unless the file names others.
    fn federated(&self, usual: &[&str]) -> Result<FederatedSettings, ProblemFileError> {
        let privacy = self.privacy()?.zip(self.privacy);
        Ok(FederatedSettings {
            method: self.method,
            rounds: self.rounds,
            local_steps: self.local_steps,
            outer_learning_rate: self.rate_of_a_round(),
            outer_momentum: self.outer_momentum,
            metrics: self.metrics.clone().unwrap_or_else(|| usual.iter().map(|&name| name.to_owned()).collect()),
            evaluate_every: self.evaluate_every,
            privacy: privacy.map(|(settings, entry)| {
                let PrivacyEntry { colluders, protects, .. } = entry;
                SharedPrivacy { settings, colluders, protects }
            }),
        })
    }

    pub(super) fn built_in(&self) -> Result<ModelKind, ProblemFileError> {
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
        let Some(PrivacyEntry { clip, epsilon_max, delta, noise, spare_releases, .. }) = self.privacy else {
            return Ok(None);
        };
        let usual = if self.model == TRAINER { self.rounds.div_ceil(ROUNDS_TO_A_SPARE) } else { 0 };
        let releases = self.rounds.saturating_add(spare_releases.unwrap_or(usual));
        let settings = match noise {
            Some(noise) => PrivacySettings::new(clip, noise, epsilon_max, delta),
            None => PrivacySettings::for_changes(clip, releases, epsilon_max, delta),
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
        assert!(file("model = \"huge\"").built_in().unwrap_err().to_string().starts_with("model = \"huge\": "));
        assert!(file("augment = \"melt\"").augmentation().unwrap_err().to_string().starts_with("augment = "));
        let none: TrainingFile = toml::from_str("kind = \"training\"").unwrap();
        assert!(none.check().unwrap_err().to_string().contains("needs data"));
        assert!(refused("metrics = [\"auc\"]").contains("metrics"));
        assert!(refused("model = \"trainer\"").contains("--trainer COMMAND"));
    }

    #[test]
    fn a_file_for_a_script_has_no_entries_about_built_in_models() {
        let settings = |lines: &str| {
            let text = format!("kind = \"training\"\n{lines}");
            let file: TrainingFile = toml::from_str(&text).unwrap();
            file.of_trainer(&toml::from_str(&text).unwrap()).map_err(|error| error.to_string())
        };
        let found = settings("model = \"trainer\"\nmetrics = [\"auc\"]\nrounds = 7").unwrap();
        assert_eq!((found.rounds, found.metrics), (7, vec!["auc".to_owned()]));
        assert_eq!(settings("model = \"trainer\"").unwrap().metrics, METRICS_OF_TRAINER);
        let private = "model = \"trainer\"\n[privacy]\nclip = 0.3\nepsilon_max = 8.1";
        let found = settings(private).unwrap();
        assert!(found.metrics.is_empty());
        // Rounds that are repeated are paid for in advance: 40, and two spare ones.
        let noise = found.privacy.unwrap().settings;
        assert!(noise.epsilon_of(42) <= 8.1 && noise.epsilon_of(43) > 8.1, "{noise}");
        assert!(settings("").unwrap_err().contains("model = \"mlp\" is a built-in model"));
        assert!(settings("model = \"trainer\"\nlearning_rate = 0.1").unwrap_err().starts_with("learning_rate "));
        assert!(settings("model = \"trainer\"\nlocal_steps = 0").unwrap_err().contains("local_steps"));
        for entry in OF_BUILT_IN {
            assert!(
                toml::Table::try_from(TrainingFile::default()).unwrap().contains_key(entry)
                    || ["card", "clip_gradients"].contains(&entry),
                "{entry}"
            );
        }
    }
}
