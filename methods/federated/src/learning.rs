//! One member's part in federated averaging.

use mingle_solving::{Aggregation, LearningError, Release, RoundLearning, RoundStore, StatisticsTable};
use serde::{Deserialize, Serialize};

use crate::local_model::{Beginning, LocalModel, LocalRound};
use crate::private_sum::{PrivateSum, fresh};
use crate::settings::{FederatedMethod, FederatedSettings};

/// Numbers of a row of statistics that stand for a hash, of six bytes each.
const HASH_NUMBERS: usize = 5;

/// One member's part in federated averaging.
pub struct FederatedLearning {
    settings: FederatedSettings,
    node: usize,
    names: Vec<String>,
    model: Box<dyn LocalModel>,
    private: Option<PrivateSum>,
    /// The fingerprint of this member's noise key and data, which all others get; zero without noise.
    fingerprint: [u8; 32],
    /// A hash of what all members said of themselves before the first round.
    all: [u8; 32],
    /// A hash of the rounds from which on each member sends noise alone.
    reaches: [u8; 32],
    /// The samples of all members, where each is protected by itself.
    samples: f64,
    state: LearnerState,
}

/// The state that later rounds depend on, beside that of the model.
#[derive(Clone, Serialize, Deserialize)]
struct LearnerState {
    /// The model, `[dimension]`.
    parameters: Vec<f32>,
    /// The velocity of mean changes, `[dimension]`; empty without momentum.
    velocity: Vec<f32>,
}

impl FederatedLearning {
    /// The part of the member `node` of those of these names.
    ///
    /// # Errors
    /// The noise cannot be shared by so many, or the model has no beginning.
    pub fn new(
        settings: FederatedSettings,
        (node, names): (usize, &[String]),
        beginning: Beginning,
        mut model: Box<dyn LocalModel>,
    ) -> Result<Self, LearningError> {
        let dimension = model.dimension();
        let private =
            settings.shared_privacy().map(|privacy| PrivateSum::new(privacy, names.len(), dimension)).transpose()?;
        let parameters = match beginning {
            Beginning::Common => model.beginning()?,
            Beginning::OfFounder => vec![0.0; dimension],
        };
        let velocity = if settings.outer_momentum > 0.0 { vec![0.0; dimension] } else { Vec::new() };
        let state = LearnerState { parameters, velocity };
        Ok(Self {
            settings,
            node,
            names: names.to_vec(),
            model,
            private,
            fingerprint: [0; 32],
            all: [0; 32],
            reaches: [0; 32],
            samples: 0.0,
            state,
        })
    }

    /// The name of a release: of the members, what they said of themselves, their tokens and how far their budgets reach, of the
    /// round, and of the model from which it goes on.
    fn name(&self, release: Release) -> [u8; 32] {
        let tokens = self.private.as_ref().map(|private| private.tokens_of(release.round)).unwrap_or_default();
        let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 release into a sum");
        hasher.update(&release.members).update(&self.all).update(&tokens).update(&self.reaches);
        hasher.update(&release.round.to_le_bytes());
        self.state.parameters.iter().for_each(|value| {
            hasher.update(&value.to_le_bytes());
        });
        *hasher.finalize().as_bytes()
    }

    /// Checks that vectors mean the same at all, and keeps a hash of all rows.
    fn hear_all(&mut self, table: &StatisticsTable) -> Result<(), LearningError> {
        let own = &table[self.node][..HASH_NUMBERS];
        if let Some(other) = table.iter().position(|row| &row[..HASH_NUMBERS] != own) {
            return Err(LearningError(self.model.unlike(&self.names[other])));
        }
        self.all = hash_of(table);
        if self.settings.protects_samples() {
            self.samples = table.iter().map(|row| row.last().copied().unwrap_or_default()).sum();
        }
        if self.settings.protects_samples() && self.samples < 1.0 {
            return Err(LearningError("no member has any samples".to_owned()));
        }
        Ok(())
    }

    /// Adds the mean change of all to the model.
    fn add(&mut self, mean: Vec<f32>) {
        let LearnerState { parameters, velocity } = &mut self.state;
        let rate = self.settings.outer_learning_rate as f32;
        let momentum = self.settings.outer_momentum as f32;
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
    }
}

impl RoundLearning for FederatedLearning {
    fn identity(&self) -> [u8; 32] {
        self.model.identity()
    }

    fn prepare(&mut self, store: &mut dyn RoundStore) -> Result<(), LearningError> {
        if let Some(private) = &mut self.private {
            self.fingerprint = private.open(&self.model.identity(), store)?;
        }
        Ok(())
    }

    fn statistics(&mut self, tables: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError> {
        if let Some(table) = tables.first() {
            self.hear_all(table)?;
            return Ok(None);
        }
        let mut row = [&self.model.meaning(), &self.fingerprint].map(numbers_of).concat();
        if self.settings.protects_samples() {
            let none = || LearningError("this model has no samples that could be protected by themselves".to_owned());
            row.push(self.model.samples().ok_or_else(none)? as f64);
        }
        Ok(Some(row))
    }

    fn beginning(&mut self) -> Result<Vec<f32>, LearningError> {
        self.model.beginning()
    }

    fn begin_with(&mut self, vector: &[f32]) -> Result<(), LearningError> {
        if vector.len() != self.state.parameters.len() {
            let got = vector.len();
            let wanted = self.state.parameters.len();
            return Err(LearningError(format!("the model to begin with has {got} parameters, and this one {wanted}")));
        }
        self.state.parameters = vector.to_vec();
        Ok(())
    }

    fn token(&mut self, round: u64, store: &dyn RoundStore) -> Result<Vec<f64>, LearningError> {
        let rounds = self.settings.rounds;
        let Some(private) = &mut self.private else { return Ok(vec![0.0; 2 * HASH_NUMBERS + 1]) };
        let reach = private.reach(round, rounds, store)?;
        let own = if self.model.repeats_itself() { [[0; 32]; 2] } else { [private.token(round, store)?, fresh()?] };
        let [token, of_attempt] = own.map(|hash| numbers_of(&hash));
        Ok([token, of_attempt, vec![reach as f64]].concat())
    }

    fn take_tokens(&mut self, tokens: &StatisticsTable) {
        if let Some(private) = &mut self.private {
            let token =
                |row: &Vec<f64>| row.iter().take(HASH_NUMBERS).map(|number| number.to_bits()).collect::<Vec<u64>>();
            let is_common = tokens.windows(2).all(|pair| token(&pair[0]) == token(&pair[1]));
            private.take_tokens(hash_of(tokens), is_common && !self.model.repeats_itself());
            let reaches: StatisticsTable =
                tokens.iter().map(|row| row.iter().skip(2 * HASH_NUMBERS).copied().collect()).collect();
            self.reaches = hash_of(&reaches);
        }
    }

    fn train(&mut self, round: u64) -> Result<Vec<f32>, LearningError> {
        if let Some(private) = self.private.as_ref().filter(|_| self.settings.protects_samples()) {
            let LearnerState { parameters, .. } = &self.state;
            return private.descent(parameters.len(), |take| self.model.sample_gradients(parameters, take));
        }
        let rounds_left = self.settings.rounds.saturating_sub(round);
        let steps = self.settings.local_steps;
        let change = self.model.train(LocalRound { round, steps, rounds_left }, &self.state.parameters)?;
        if change.len() != self.state.parameters.len() {
            let got = change.len();
            let wanted = self.state.parameters.len();
            return Err(LearningError(format!("the change of a round has {got} numbers, and the model {wanted}")));
        }
        if self.settings.method == FederatedMethod::Alone {
            self.state.parameters.iter_mut().zip(&change).for_each(|(value, change)| *value += change);
        }
        Ok(change)
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
        match self.settings.method {
            FederatedMethod::Fedavg => Aggregation::Mean,
            FederatedMethod::Alone => Aggregation::None,
        }
    }

    fn take(&mut self, _: u64, aggregate: &[f32]) -> Result<(), LearningError> {
        let mut mean = match &self.private {
            Some(private) => private.mean_change(aggregate)?,
            None => aggregate.to_vec(),
        };
        if self.settings.protects_samples() {
            // From a mean over members to one over samples.
            let members = self.names.len() as f64;
            mean.iter_mut().for_each(|value| *value = (f64::from(*value) * members / self.samples) as f32);
        }
        self.add(mean);
        Ok(())
    }

    fn evaluate(&mut self, rounds: u64) -> Result<Vec<Option<f64>>, LearningError> {
        let epsilon = self.private.as_ref().map(PrivateSum::epsilon);
        let spent = self.private.as_ref().map(|private| f64::from(u8::from(private.is_spent())));
        let mut metrics = match self.settings.evaluates_after(rounds) {
            true => self.model.evaluate(&self.state.parameters)?,
            false => vec![None; self.settings.metrics.len()],
        };
        metrics.extend([epsilon, spent]);
        Ok(metrics)
    }

    fn state(&self) -> Vec<u8> {
        postcard::to_stdvec(&(&self.state, self.model.state())).unwrap_or_default()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError> {
        let foreign = || LearningError("what was kept of a round is of another training".to_owned());
        let (state, of_model): (LearnerState, Vec<u8>) = postcard::from_bytes(state).map_err(|_| foreign())?;
        let lengths = (state.parameters.len(), state.velocity.len());
        if lengths != (self.state.parameters.len(), self.state.velocity.len()) {
            return Err(foreign());
        }
        self.model.restore(&of_model)?;
        self.state = state;
        Ok(())
    }

    fn common(&self) -> Vec<u8> {
        let LearnerState { parameters, velocity } = &self.state;
        parameters.iter().chain(velocity).flat_map(|value| value.to_le_bytes()).collect()
    }

    fn adopt(&mut self, common: &[u8]) -> Result<(), LearningError> {
        let (values, rest) = common.as_chunks();
        let mut values: Vec<f32> = values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let LearnerState { parameters, velocity } = &mut self.state;
        if !rest.is_empty() || values.len() != parameters.len() + velocity.len() {
            return Err(LearningError("the model of the others is of another length".to_owned()));
        }
        if values.iter().any(|value| !value.is_finite()) {
            return Err(LearningError("the model of the others is not finite".to_owned()));
        }
        *velocity = values.split_off(parameters.len());
        *parameters = values;
        Ok(())
    }

    fn found(&self) -> String {
        self.model.found()
    }

    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError> {
        let mut files = vec![("model.safetensors".to_owned(), self.model.encode(&self.state.parameters)?)];
        if let Some(private) = &self.private {
            let text = serde_json::to_string_pretty(&private.report()).map_err(LearningError::of)?;
            files.push(("privacy-of-sums.json".to_owned(), (text + "\n").into_bytes()));
        }
        Ok(files)
    }
}

/// BLAKE3 of the rows of all members.
fn hash_of(table: &StatisticsTable) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for number in table.iter().flatten() {
        hasher.update(&number.to_bits().to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// A hash as numbers that an f64 holds exactly.
fn numbers_of(hash: &[u8; 32]) -> Vec<f64> {
    let number = |bytes: &[u8]| bytes.iter().fold(0.0, |number, byte| number * 256.0 + f64::from(*byte));
    hash.chunks(6).take(HASH_NUMBERS).map(number).collect()
}
