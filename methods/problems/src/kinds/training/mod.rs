//! Training of a built-in model over exact sums, as a task of learning in rounds: federated averaging without a server, with
//! differential privacy whose noise all members share.

mod file;
mod learner;
mod private_sum;
mod samples;

use std::path::PathBuf;
use std::sync::Arc;

use mingle_models::{Device, ObjectiveKind, Task};
use mingle_privacy::PrivacySettings;
use mingle_solving::{LearningError, RoundLearning, RoundRules, RoundTask};

use crate::ProblemFileError;
use crate::dealt::learning_error;
use crate::file::{RoundFile, open_device, shared_hash};
pub(crate) use file::TrainingFile;
use file::TrainingMethod;
use learner::TrainingLearner;
use private_sum::PrivateSum;
use samples::SampleSource;

/// The metrics after each round. With differential privacy, epsilon is what all releases of a peer have cost, and `spent` is 1
/// if its last contribution was noise alone; else they are not measured.
const METRICS: [&str; 4] = ["accuracy", "loss", "epsilon", "spent"];
/// Those of a regression.
const METRICS_OF_REGRESSION: [&str; 4] = ["r2", "loss", "epsilon", "spent"];

impl RoundFile for TrainingFile {
    const KIND: &str = "training";
    const USUAL_METHODS: &[(&str, &str)] = &[("alone", "method = \"alone\""), ("fedavg", "method = \"fedavg\"")];
    #[cfg(test)]
    const EXAMPLE: &str = "kind='training'\ndata='digits'\nmodel='mlp:hidden=16'\nsplit='dirichlet:0.5'\nrounds=40\nlocal_steps=5\n\
                           learning_rate=0.1\nouter_momentum=0.5\n[privacy]\nclip=0.3\nepsilon_max=8.0\ncolluders=2\n";

    fn task(self, folder: PathBuf, _: Option<PathBuf>) -> Result<Arc<dyn RoundTask>, ProblemFileError> {
        Ok(Arc::new(TrainingTask::new(self, folder)?))
    }
}

/// Training: the task of all peers, and the source of this one's samples.
#[derive(Debug)]
struct TrainingTask {
    file: TrainingFile,
    privacy: Option<PrivacySettings>,
    rules: RoundRules,
    hash: [u8; 32],
    samples: SampleSource,
    device: Device,
}

impl TrainingTask {
    /// The task of a file in this folder.
    ///
    /// # Errors
    /// The file has an invalid value, or its card cannot be read.
    fn new(file: TrainingFile, folder: PathBuf) -> Result<Self, ProblemFileError> {
        file.check()?;
        file.model()?;
        file.augmentation()?;
        let privacy = file.privacy()?;
        let names = match file.task {
            ObjectiveKind::Classification => METRICS,
            ObjectiveKind::Regression => METRICS_OF_REGRESSION,
        };
        let rules = RoundRules::new(file.rounds, names.map(str::to_owned).to_vec())?;
        let device = open_device(&file.device)?;
        let samples = SampleSource::new(&file, folder)?;
        let hash = shared_hash(&(file.shared(), samples.card()))?;
        Ok(Self { privacy, rules, hash, samples, device, file })
    }

    /// Returns `true` if contributions have noise that is enough for the sum of all alone.
    fn is_private(&self) -> bool {
        self.privacy.is_some() && self.file.method == TrainingMethod::Fedavg
    }
}

impl RoundTask for TrainingTask {
    fn hash(&self) -> [u8; 32] {
        self.hash
    }

    fn describe(&self) -> String {
        self.file.describe(self.privacy.as_ref().filter(|_| self.is_private()))
    }

    fn title(&self) -> String {
        "Training".to_owned()
    }

    fn rules(&self) -> &RoundRules {
        &self.rules
    }

    fn needs_masked_sums(&self) -> bool {
        self.is_private()
    }

    fn open(&self, node: usize, names: &[String]) -> Result<Box<dyn RoundLearning>, LearningError> {
        let found = self.samples.of_node(node, names)?;
        let train = &found.data.train;
        let model = self.file.model().map_err(learning_error)?;
        let task = Task::new(model, train.shape(), train.objective()).map_err(learning_error)?;
        let private = match (self.privacy, self.file.privacy) {
            (Some(settings), Some(entry)) if self.is_private() => {
                Some(PrivateSum::new(settings, (names.len(), entry.colluders), task.parameter_count())?)
            }
            _ => None,
        };
        Ok(Box::new(TrainingLearner::new(&self.file, (task, self.device.clone()), found, (node, names), private)?))
    }
}

#[cfg(test)]
mod tests;
