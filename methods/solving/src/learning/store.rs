//! The rounds that a node keeps across restarts, and what it has released.

use std::collections::{BTreeMap, BTreeSet};

use super::LearningError;

/// The states of a node after its last rounds, by the number of rounds done, kept across restarts.
///
/// A kept state is there when the node is started again. A store may lose everything, but never returns bytes that it
/// was not given: states carry a checksum, and damaged ones count as lost.
pub trait RoundStore: Send {
    /// The rounds that the store holds a state of.
    fn held(&self) -> BTreeSet<u64>;

    /// The kept bytes of a round.
    ///
    /// # Errors
    /// They cannot be read.
    fn load(&self, round: u64) -> Result<Vec<u8>, LearningError>;

    /// Keeps the bytes of a round for a restart, whole or not at all.
    ///
    /// # Errors
    /// They cannot be written.
    fn keep(&mut self, round: u64, bytes: &[u8]) -> Result<(), LearningError>;

    /// Forgets all rounds but these, and what was released for others than those that follow them. A state that cannot be
    /// removed does no harm.
    fn retain(&mut self, rounds: &BTreeSet<u64>);

    /// The bytes that were kept of the release after so many rounds, if any.
    ///
    /// # Errors
    /// They are there, and cannot be read.
    fn released(&self, rounds: u64) -> Result<Option<Vec<u8>>, LearningError>;

    /// Keeps the bytes of a release, whole or not at all.
    ///
    /// # Errors
    /// They cannot be written.
    fn keep_released(&mut self, rounds: u64, bytes: &[u8]) -> Result<(), LearningError>;

    /// The count of all that this peer has ever released, over all runs, if there is one.
    ///
    /// # Errors
    /// It is there, and cannot be read.
    fn count(&self) -> Result<Option<String>, LearningError>;

    /// Keeps the count, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    fn keep_count(&mut self, text: &str) -> Result<(), LearningError>;
}

/// A store that lasts as long as the process.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    states: BTreeMap<u64, Vec<u8>>,
    released: BTreeMap<u64, Vec<u8>>,
    count: Option<String>,
}

impl RoundStore for MemoryStore {
    fn held(&self) -> BTreeSet<u64> {
        self.states.keys().copied().collect()
    }

    fn load(&self, round: u64) -> Result<Vec<u8>, LearningError> {
        self.states.get(&round).cloned().ok_or_else(|| LearningError(format!("nothing is kept of round {round}")))
    }

    fn keep(&mut self, round: u64, bytes: &[u8]) -> Result<(), LearningError> {
        self.states.insert(round, bytes.to_vec());
        Ok(())
    }

    fn retain(&mut self, rounds: &BTreeSet<u64>) {
        self.states.retain(|round, _| rounds.contains(round));
        self.released.retain(|round, _| rounds.contains(round));
    }

    fn released(&self, rounds: u64) -> Result<Option<Vec<u8>>, LearningError> {
        Ok(self.released.get(&rounds).cloned())
    }

    fn keep_released(&mut self, rounds: u64, bytes: &[u8]) -> Result<(), LearningError> {
        self.released.insert(rounds, bytes.to_vec());
        Ok(())
    }

    fn count(&self) -> Result<Option<String>, LearningError> {
        Ok(self.count.clone())
    }

    fn keep_count(&mut self, text: &str) -> Result<(), LearningError> {
        self.count = Some(text.to_owned());
        Ok(())
    }
}
