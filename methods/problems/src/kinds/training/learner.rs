//! One peer's part in training over sums.

use mingle_models::{
    Checkpoint, DataCard, DataSet, Device, Evaluator, Samples, SiteWeight, Task, Trainer, TrainerOptions, meaning,
};
use mingle_solving::{Aggregation, LearningError, Release, RoundLearning, RoundStore, StatisticsTable};
use serde::{Deserialize, Serialize};

use super::TrainingFile;
use super::file::TrainingMethod;
use super::private_sum::PrivateSum;
use super::samples::FoundSamples;
use crate::dealt::learning_error;

/// Numbers of a row of statistics that stand for a hash, of six bytes each.
const HASH_NUMBERS: usize = 5;

pub(super) struct TrainingLearner {
    file: TrainingFile,
    node: usize,
    names: Vec<String>,
    task: Task,
    card: DataCard,
    remarks: Vec<String>,
    identity: [u8; 32],
    trainer: Trainer,
    evaluator: Evaluator,
    test: Samples,
    private: Option<PrivateSum>,
    /// The fingerprint of this peer's noise key and data, which all others get; zero without noise.
    fingerprint: [u8; 32],
    /// A hash of what all members said of themselves before the first round.
    all: [u8; 32],
    state: LearnerState,
}

/// The state that later rounds depend on, beside that of the trainer.
#[derive(Clone, Serialize, Deserialize)]
struct LearnerState {
    /// The model, `[parameters]`.
    parameters: Vec<f32>,
    /// The velocity of mean changes, `[parameters]`; empty without momentum.
    velocity: Vec<f32>,
}

impl TrainingLearner {
    pub(super) fn new(
        file: &TrainingFile,
        (task, device): (Task, Device),
        FoundSamples { data, remarks }: FoundSamples,
        (node, names): (usize, &[String]),
        private: Option<PrivateSum>,
    ) -> Result<Self, LearningError> {
        let identity = identity(&data);
        let evaluator = Evaluator::new(task, &device);
        let options = TrainerOptions {
            task,
            device,
            optimizer: file.optimizer(),
            batch_size: file.batch_size,
            augmentation: file.augmentation().map_err(learning_error)?,
            data_seed: file.seed.wrapping_add(node as u64),
            weight: SiteWeight::Equal,
        };
        let DataSet { train, test, card } = data;
        let velocity = if file.outer_momentum > 0.0 { vec![0.0; task.parameter_count()] } else { Vec::new() };
        Ok(Self {
            node,
            names: names.to_vec(),
            card,
            remarks,
            identity,
            trainer: Trainer::new(options, train).map_err(learning_error)?,
            evaluator,
            test,
            private,
            fingerprint: [0; 32],
            all: [0; 32],
            state: LearnerState { parameters: task.initial_parameters(file.seed), velocity },
            task,
            file: file.clone(),
        })
    }

    /// The name of a release: of the members and what they said of themselves, of the round, and of the model from which
    /// it goes on.
    fn name(&self, release: Release) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 release into a sum");
        hasher.update(&release.members).update(&self.all).update(&release.round.to_le_bytes());
        self.state.parameters.iter().for_each(|value| {
            hasher.update(&value.to_le_bytes());
        });
        *hasher.finalize().as_bytes()
    }

    /// Checks that all have the same card, and keeps a hash of all rows.
    fn hear_all(&mut self, table: &StatisticsTable) -> Result<(), LearningError> {
        let own = &table[self.node][..HASH_NUMBERS];
        if let Some(other) = table.iter().position(|row| &row[..HASH_NUMBERS] != own) {
            return Err(LearningError(format!(
                "columns, classes or scaling of the data here are not those of {}: give all the same card = \"card.json\"",
                self.names[other]
            )));
        }
        let mut hasher = blake3::Hasher::new();
        table.iter().flatten().for_each(|number| {
            hasher.update(&number.to_bits().to_le_bytes());
        });
        self.all = *hasher.finalize().as_bytes();
        Ok(())
    }
}

impl RoundLearning for TrainingLearner {
    fn identity(&self) -> [u8; 32] {
        self.identity
    }

    fn prepare(&mut self, store: &mut dyn RoundStore) -> Result<(), LearningError> {
        if let Some(private) = &mut self.private {
            self.fingerprint = private.open(&self.identity, store)?;
        }
        Ok(())
    }

    fn statistics(&mut self, tables: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError> {
        if let Some(table) = tables.first() {
            self.hear_all(table)?;
            return Ok(None);
        }
        let card = serde_json::to_vec(&self.card).map_err(learning_error)?;
        let hashes = [blake3::hash(&card).as_bytes(), &self.fingerprint].map(numbers_of);
        Ok(Some(hashes.concat()))
    }

    fn train(&mut self, _: u64) -> Result<Vec<f32>, LearningError> {
        let outcome = self.trainer.train(&self.state.parameters, self.file.local_steps).map_err(learning_error)?;
        if self.file.method == TrainingMethod::Alone {
            self.state.parameters.iter_mut().zip(&outcome.delta).for_each(|(value, change)| *value += change);
        }
        Ok(outcome.delta)
    }

    fn release(
        &mut self,
        release: Release,
        contribution: Vec<f32>,
        store: &mut dyn RoundStore,
    ) -> Result<Vec<f32>, LearningError> {
        let name = self.name(release);
        match &mut self.private {
            Some(private) => private.release(name, release, &contribution, store),
            None => Ok(contribution),
        }
    }

    fn aggregation(&self, _: u64) -> Aggregation {
        match self.file.method {
            TrainingMethod::Fedavg => Aggregation::Mean,
            TrainingMethod::Alone => Aggregation::None,
        }
    }

    fn take(&mut self, _: u64, aggregate: &[f32]) -> Result<(), LearningError> {
        let mean = match &self.private {
            Some(private) => private.mean_change(aggregate)?,
            None => aggregate.to_vec(),
        };
        let LearnerState { parameters, velocity } = &mut self.state;
        let rate = self.file.outer_learning_rate as f32;
        let momentum = self.file.outer_momentum as f32;
        for (at, (value, change)) in parameters.iter_mut().zip(mean).enumerate() {
            let step = match velocity.get_mut(at) {
                Some(velocity) => {
                    *velocity = momentum * *velocity + change;
                    *velocity
                }
                None => change,
            };
            *value += rate * step;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<Vec<Option<f64>>, LearningError> {
        let epsilon = self.private.as_ref().map(PrivateSum::epsilon);
        let spent = self.private.as_ref().map(|private| f64::from(u8::from(private.is_spent())));
        if self.test.is_empty() {
            return Ok(vec![None, None, epsilon, spent]);
        }
        let found = self.evaluator.evaluate(&self.state.parameters, &self.test).map_err(learning_error)?;
        Ok(vec![Some(found.score()), Some(found.loss), epsilon, spent])
    }

    fn state(&self) -> Vec<u8> {
        // A device that cannot be read fails in the next step too, with an error.
        let trainer = self.trainer.state().unwrap_or_default();
        postcard::to_stdvec(&(&self.state, trainer)).unwrap_or_default()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError> {
        let foreign = || LearningError("what was kept of a round is of another training".to_owned());
        let (state, trainer): (LearnerState, Vec<u8>) = postcard::from_bytes(state).map_err(|_| foreign())?;
        let lengths = (state.parameters.len(), state.velocity.len());
        if lengths != (self.state.parameters.len(), self.state.velocity.len()) {
            return Err(foreign());
        }
        self.trainer.restore(&trainer).map_err(learning_error)?;
        self.state = state;
        Ok(())
    }

    fn found(&self) -> String {
        let trained = self.trainer.samples();
        let judged = self.test.len();
        let parameters = self.state.parameters.len();
        let counted = format!("{trained} samples to train on, {judged} to evaluate on; {parameters} parameters");
        [counted].into_iter().chain(self.remarks.iter().cloned()).collect::<Vec<String>>().join("; ")
    }

    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError> {
        let metadata = meaning::metadata(&self.card, self.task.model());
        let model = Checkpoint::encoded(&self.state.parameters, &metadata, &self.task).map_err(learning_error)?;
        let mut files = vec![("model.safetensors".to_owned(), model)];
        if let Some(private) = &self.private {
            let text = serde_json::to_string_pretty(&private.report()).map_err(learning_error)?;
            files.push(("privacy-of-sums.json".to_owned(), (text + "\n").into_bytes()));
        }
        Ok(files)
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

/// A hash as numbers that an f64 holds exactly.
fn numbers_of(hash: &[u8; 32]) -> Vec<f64> {
    let number = |bytes: &[u8]| bytes.iter().fold(0.0, |number, byte| number * 256.0 + f64::from(*byte));
    hash.chunks(6).take(HASH_NUMBERS).map(number).collect()
}
