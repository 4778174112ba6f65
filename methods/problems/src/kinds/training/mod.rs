//! Training over exact sums, as a task of learning in rounds: federated averaging without a server, with differential
//! privacy whose noise all members share. The model is built in, or that of another program.

mod built_in;
mod file;
mod samples;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_federated::{Beginning, FederatedLearning, FederatedSettings};
use mingle_models::Device;
use mingle_solving::{LearningError, RoundLearning, RoundRules, RoundTask};

use crate::ProblemFileError;
use crate::file::{RoundFile, open_device, parse, shared_hash};
use built_in::BuiltInModel;
pub(crate) use file::TrainingFile;
use samples::SampleSource;

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

/// The settings of a text about the model of another program, which stands for the file `path`.
///
/// # Errors
/// It is of another kind or about a built-in model, or an entry is not valid.
pub(crate) fn settings_for_trainer(text: &str, path: &Path) -> Result<FederatedSettings, ProblemFileError> {
    let file: TrainingFile = parse(text, path)?;
    if file.kind != TrainingFile::KIND {
        return Err(ProblemFileError::Value(format!(
            "kind = {:?} is not learned by a script: one with kind = \"training\" and model = \"trainer\" is",
            file.kind
        )));
    }
    file.of_trainer(&toml::from_str(text).unwrap_or_default())
}

/// Training: the task of all peers, and the source of this one's samples.
#[derive(Debug)]
struct TrainingTask {
    file: TrainingFile,
    settings: FederatedSettings,
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
        file.built_in()?;
        file.augmentation()?;
        let settings = file.of_built_in()?;
        let rules = settings.rules()?;
        let device = open_device(&file.device)?;
        let samples = SampleSource::new(&file, folder)?;
        let hash = shared_hash(&(file.shared(), samples.card()))?;
        Ok(Self { settings, rules, hash, samples, device, file })
    }
}

impl RoundTask for TrainingTask {
    fn hash(&self) -> [u8; 32] {
        self.hash
    }

    fn shared(&self) -> serde_json::Value {
        let mut shared = serde_json::to_value(self.file.shared()).unwrap_or_default();
        shared["card"] = serde_json::to_value(self.samples.card()).unwrap_or_default();
        shared
    }

    fn describe(&self) -> String {
        self.settings.describe(&self.file.model)
    }

    fn title(&self) -> String {
        "Training".to_owned()
    }

    fn rules(&self) -> &RoundRules {
        &self.rules
    }

    fn needs_masked_sums(&self) -> bool {
        self.settings.shared_privacy().is_some()
    }

    fn has_tokens(&self) -> bool {
        self.settings.shared_privacy().is_some()
    }

    fn has_common_model(&self) -> bool {
        self.settings.has_common_model()
    }

    fn least_nodes(&self) -> usize {
        self.settings.least_members()
    }

    fn open(&self, node: usize, names: &[String]) -> Result<Box<dyn RoundLearning>, LearningError> {
        let found = self.samples.of_node(node, names)?;
        let model = BuiltInModel::new(&self.file, node, found, self.device.clone())?;
        Ok(Box::new(FederatedLearning::new(self.settings.clone(), (node, names), Beginning::Common, Box::new(model))?))
    }
}

#[cfg(test)]
mod tests;
