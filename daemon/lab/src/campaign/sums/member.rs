//! A member of a simulated training over masked sums: production code around a model that is a list of numbers.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mingle_federated::{Beginning, FederatedLearning, FederatedSettings, LocalModel, LocalRound};
use mingle_solving::{
    Aggregation, LearningError, MemoryStore, Release, RoundLearning, RoundRules, RoundStore, RoundTask, StatisticsTable,
};

use super::weakness::Weakness;
use super::witness::Witness;

/// The training that all members share.
#[derive(Debug)]
pub(super) struct SumsTask {
    pub(super) settings: FederatedSettings,
    pub(super) rules: RoundRules,
}

impl RoundTask for SumsTask {
    fn hash(&self) -> [u8; 32] {
        [6; 32]
    }
    fn describe(&self) -> String {
        self.settings.describe("numbers")
    }
    fn title(&self) -> String {
        "Sums".to_owned()
    }
    fn rules(&self) -> &RoundRules {
        &self.rules
    }
    fn needs_masked_sums(&self) -> bool {
        true
    }
    fn has_tokens(&self) -> bool {
        true
    }
    fn has_common_model(&self) -> bool {
        self.settings.has_common_model()
    }
    fn open(&self, _: usize, _: &[String]) -> Result<Box<dyn RoundLearning>, LearningError> {
        Err(LearningError("members are made with their disks".to_owned()))
    }
}

/// A model whose change follows from the member and the round, and from how often it was trained if it is restless.
pub(super) struct Numbers {
    pub(super) node: usize,
    pub(super) dimension: usize,
    pub(super) is_restless: bool,
    /// Trainings so far, over all lives.
    pub(super) trained: Arc<AtomicU32>,
}

impl LocalModel for Numbers {
    fn dimension(&self) -> usize {
        self.dimension
    }
    fn identity(&self) -> [u8; 32] {
        [self.node as u8; 32]
    }
    fn meaning(&self) -> [u8; 32] {
        [2; 32]
    }
    fn unlike(&self, other: &str) -> String {
        format!("unlike {other}")
    }
    fn beginning(&mut self) -> Result<Vec<f32>, LearningError> {
        Ok(vec![0.5; self.dimension])
    }
    fn train(&mut self, LocalRound { round, .. }: LocalRound, from: &[f32]) -> Result<Vec<f32>, LearningError> {
        let trained = self.trained.fetch_add(1, Ordering::Relaxed) + 1;
        let again = if self.is_restless { trained } else { 0 };
        let own = (self.node as u64 * 31 + round * 7 + u64::from(again) * 3) % 101;
        Ok(from.iter().enumerate().map(|(at, value)| ((at as u64 + own) % 17) as f32 / 40.0 - value / 8.0).collect())
    }
    fn repeats_itself(&self) -> bool {
        !self.is_restless
    }
    fn evaluate(&mut self, parameters: &[f32]) -> Result<Vec<Option<f64>>, LearningError> {
        Ok(vec![Some(f64::from(parameters[0]) + self.node as f64)])
    }
    fn state(&self) -> Vec<u8> {
        Vec::new()
    }
    fn restore(&mut self, _: &[u8]) -> Result<(), LearningError> {
        Ok(())
    }
    fn found(&self) -> String {
        String::new()
    }
    fn encode(&self, parameters: &[f32]) -> Result<Vec<u8>, LearningError> {
        Ok(parameters.iter().flat_map(|value| value.to_le_bytes()).collect())
    }
}

/// A member's learning, of which the witness sees what is released and taken.
pub(super) struct WatchedLearning {
    node: usize,
    inner: FederatedLearning,
    witness: Witness,
    weakness: Option<Weakness>,
}

impl WatchedLearning {
    pub(super) fn new(
        task: &SumsTask,
        names: &[String],
        model: Numbers,
        witness: Witness,
        weakness: Option<Weakness>,
    ) -> Result<Self, LearningError> {
        let node = model.node;
        let inner = FederatedLearning::new(task.settings.clone(), (node, names), Beginning::Common, Box::new(model))?;
        Ok(Self { node, inner, witness, weakness })
    }
}

impl RoundLearning for WatchedLearning {
    fn identity(&self) -> [u8; 32] {
        self.inner.identity()
    }
    fn prepare(&mut self, store: &mut dyn RoundStore) -> Result<(), LearningError> {
        self.inner.prepare(store)
    }
    fn statistics(&mut self, tables: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError> {
        self.inner.statistics(tables)
    }
    fn token(&mut self, round: u64, store: &dyn RoundStore) -> Result<Vec<f64>, LearningError> {
        self.inner.token(round, store)
    }
    fn take_tokens(&mut self, tokens: &StatisticsTable) {
        match self.weakness {
            // As if all said the same.
            Some(Weakness::TokensIgnored) => {
                let said = tokens.first().map(|row| vec![0.0; row.len()]).unwrap_or_default();
                self.inner.take_tokens(&vec![said; tokens.len()]);
            }
            _ => self.inner.take_tokens(tokens),
        }
    }
    fn train(&mut self, round: u64) -> Result<Vec<f32>, LearningError> {
        self.inner.train(round)
    }
    fn release(
        &mut self,
        release: Release,
        contribution: Vec<f32>,
        store: &mut dyn RoundStore,
    ) -> Result<Vec<f32>, LearningError> {
        let released = self.inner.release(release, contribution, store)?;
        let counted = match self.weakness {
            Some(Weakness::NothingCounted) => 0,
            _ => counted(store)?,
        };
        self.witness.see().released(self.node, release.round, &released, counted);
        Ok(released)
    }
    fn aggregation(&self, round: u64) -> Aggregation {
        self.inner.aggregation(round)
    }
    fn take(&mut self, round: u64, aggregate: &[f32]) -> Result<(), LearningError> {
        self.witness.see().took(self.node, round, aggregate);
        self.inner.take(round, aggregate)
    }
    fn evaluate(&mut self, rounds: u64) -> Result<Vec<Option<f64>>, LearningError> {
        self.inner.evaluate(rounds)
    }
    fn state(&self) -> Vec<u8> {
        self.inner.state()
    }
    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError> {
        self.inner.restore(state)
    }
    fn common(&self) -> Vec<u8> {
        self.inner.common()
    }
    fn adopt(&mut self, common: &[u8]) -> Result<(), LearningError> {
        self.inner.adopt(common)
    }
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError> {
        self.inner.files()
    }
}

/// The releases that a disk has counted.
fn counted(store: &dyn RoundStore) -> Result<u64, LearningError> {
    let Some(text) = store.count()? else { return Ok(0) };
    let file = mingle_privacy::CountFile::parse(&text).map_err(LearningError::of)?;
    Ok(file.noised.count())
}

/// A disk that outlives the process that writes to it.
#[derive(Clone, Default)]
pub(super) struct SharedDisk(Arc<Mutex<MemoryStore>>);

impl SharedDisk {
    pub(super) fn copy(&self) -> MemoryStore {
        self.disk().clone()
    }

    pub(super) fn put_back(&self, copy: MemoryStore) {
        *self.disk() = copy;
    }

    /// Locks despite poisoning: a member that panicked fails the seed anyway.
    fn disk(&self) -> MutexGuard<'_, MemoryStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RoundStore for SharedDisk {
    fn held(&self) -> BTreeSet<u64> {
        self.disk().held()
    }
    fn load(&self, round: u64) -> Result<Vec<u8>, LearningError> {
        self.disk().load(round)
    }
    fn keep(&mut self, round: u64, bytes: &[u8]) -> Result<(), LearningError> {
        self.disk().keep(round, bytes)
    }
    fn retain(&mut self, rounds: &BTreeSet<u64>) {
        self.disk().retain(rounds);
    }
    fn released(&self, rounds: u64) -> Result<Option<Vec<u8>>, LearningError> {
        self.disk().released(rounds)
    }
    fn keep_released(&mut self, rounds: u64, bytes: &[u8]) -> Result<(), LearningError> {
        self.disk().keep_released(rounds, bytes)
    }
    fn count(&self) -> Result<Option<String>, LearningError> {
        self.disk().count()
    }
    fn keep_count(&mut self, text: &str) -> Result<(), LearningError> {
        self.disk().keep_count(text)
    }
}
