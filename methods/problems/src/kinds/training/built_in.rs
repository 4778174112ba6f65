//! A built-in model as a member of federated averaging trains it.

use mingle_federated::{LocalModel, LocalRound};
use mingle_models::{
    Checkpoint, DataCard, DataSet, Device, Evaluator, Samples, SiteWeight, Task, Trainer, TrainerOptions, meaning,
};
use mingle_solving::LearningError;

use super::TrainingFile;
use super::samples::FoundSamples;

/// A built-in model on one peer's samples.
pub(super) struct BuiltInModel {
    task: Task,
    /// The seed of the first model.
    seed: u64,
    card: DataCard,
    /// BLAKE3 of what the card says.
    card_hash: [u8; 32],
    remarks: Vec<String>,
    identity: [u8; 32],
    trainer: Trainer,
    evaluator: Evaluator,
    test: Samples,
}

impl BuiltInModel {
    /// The model of the peer `node` on these samples.
    ///
    /// # Errors
    /// The model cannot be trained on them.
    pub(super) fn new(
        file: &TrainingFile,
        node: usize,
        FoundSamples { data, remarks }: FoundSamples,
        device: Device,
    ) -> Result<Self, LearningError> {
        let model = file.built_in().map_err(LearningError::of)?;
        let task = Task::new(model, data.train.shape(), data.train.objective()).map_err(LearningError::of)?;
        let identity = identity(&data);
        let evaluator = Evaluator::new(task, &device);
        let options = TrainerOptions {
            task,
            device,
            optimizer: file.optimizer(),
            batch_size: file.batch_size,
            augmentation: file.augmentation().map_err(LearningError::of)?,
            data_seed: file.seed.wrapping_add(node as u64),
            weight: SiteWeight::Equal,
        };
        let DataSet { train, test, card } = data;
        let card_hash = *blake3::hash(&serde_json::to_vec(&card).map_err(LearningError::of)?).as_bytes();
        let trainer = Trainer::new(options, train).map_err(LearningError::of)?;
        Ok(Self { task, seed: file.seed, card, card_hash, remarks, identity, trainer, evaluator, test })
    }
}

impl LocalModel for BuiltInModel {
    fn dimension(&self) -> usize {
        self.task.parameter_count()
    }

    fn identity(&self) -> [u8; 32] {
        self.identity
    }

    fn meaning(&self) -> [u8; 32] {
        self.card_hash
    }

    fn unlike(&self, other: &str) -> String {
        format!(
            "columns, classes or scaling of the data here are not those of {other}: give all the same card = \"card.json\""
        )
    }

    fn beginning(&mut self) -> Result<Vec<f32>, LearningError> {
        Ok(self.task.initial_parameters(self.seed))
    }

    fn train(&mut self, LocalRound { steps, .. }: LocalRound, from: &[f32]) -> Result<Vec<f32>, LearningError> {
        Ok(self.trainer.train(from, steps).map_err(LearningError::of)?.delta)
    }

    fn repeats_itself(&self) -> bool {
        true
    }

    fn samples(&self) -> Option<u64> {
        let is_text = self.task.gpt().is_some();
        (!is_text).then(|| self.trainer.samples() as u64)
    }

    fn sample_gradients(&mut self, at: &[f32], take: &mut dyn FnMut(&[f32])) -> Result<(), LearningError> {
        self.trainer.sample_gradients(at, take).map_err(LearningError::of)
    }

    fn evaluate(&mut self, parameters: &[f32]) -> Result<Vec<Option<f64>>, LearningError> {
        if self.test.is_empty() {
            return Ok(vec![None, None]);
        }
        let found = self.evaluator.evaluate(parameters, &self.test).map_err(LearningError::of)?;
        Ok(vec![Some(found.score()), Some(found.loss)])
    }

    fn state(&self) -> Vec<u8> {
        // A device that cannot be read fails in the next step too, with an error.
        self.trainer.state().unwrap_or_default()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError> {
        self.trainer.restore(state).map_err(LearningError::of)
    }

    fn found(&self) -> String {
        let trained = self.trainer.samples();
        let judged = self.test.len();
        let parameters = self.task.parameter_count();
        let counted = format!("{trained} samples to train on, {judged} to evaluate on; {parameters} parameters");
        [counted].into_iter().chain(self.remarks.iter().cloned()).collect::<Vec<String>>().join("; ")
    }

    fn encode(&self, parameters: &[f32]) -> Result<Vec<u8>, LearningError> {
        let metadata = meaning::metadata(&self.card, self.task.model());
        Checkpoint::encoded(parameters, &metadata, &self.task).map_err(LearningError::of)
    }
}

/// BLAKE3 of the samples.
fn identity(data: &DataSet) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for samples in [&data.train, &data.test] {
        hasher.update(&(samples.len() as u64).to_le_bytes());
        let rows = if samples.is_text() { 0 } else { samples.len() };
        for index in 0..rows {
            samples.row(index).iter().for_each(|value| {
                hasher.update(&value.to_le_bytes());
            });
        }
        samples.labels().iter().for_each(|label| {
            hasher.update(&label.to_le_bytes());
        });
        samples.targets().iter().flat_map(|(targets, _)| *targets).for_each(|target| {
            hasher.update(&target.to_le_bytes());
        });
    }
    *hasher.finalize().as_bytes()
}
