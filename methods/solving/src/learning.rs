//! Learning in rounds: every node trains on its own data, vectors are averaged exactly, and all begin the next round
//! together.
//!
//! This is the form of federated averaging and of its personalised relatives, without a server. A [`RoundLearning`] is
//! one node's part: the statistics that it shares with all before the first round
//! ([`statistics`](RoundLearning::statistics)), its training in a round ([`train`](RoundLearning::train)), its use of
//! the mean of all ([`take`](RoundLearning::take)) and the quality of its model
//! ([`evaluate`](RoundLearning::evaluate)). What it keeps to itself is never asked for.
//!
//! ```text
//!   statistics of all, in stages -> [ train -> release -> mean of all -> take -> evaluate -> metrics of all -> keep ] per round
//! ```
//!
//! Sums go up a tree of the plan and down again, so that every node has the same bits of them, whatever is lost on the
//! way. Each node decides when to stop from metrics that are the same everywhere, so all stop after the same round.
//! Training takes long: it is handed out as [`LocalWork`], which the host runs where it does not block messages.
//!
//! After each round a node keeps its state in a [`RoundStore`]. A restarted node makes all begin a new attempt: they
//! exchange which rounds they have kept, go back to the newest that all have, and come to the same bits as without the
//! interruption. Where there is one model for all, a node that has kept none gets it from another.

mod kept;
mod local_work;
mod rules;
mod store;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use kept::MOST_STATE_BYTES;
pub(crate) use kept::{About, Kept};
pub use local_work::LocalWork;
pub(crate) use local_work::{Learner, Workbench};
pub use rules::{RoundRules, RulesError};
pub use store::{MemoryStore, RoundStore};

/// Most numbers in a message: longer vectors are summed in pieces of this length.
pub(crate) const CHUNK: usize = 1 << 16;

/// A learning task, as all nodes share it before any of them has opened its data.
pub trait RoundTask: fmt::Debug + Send + Sync {
    /// BLAKE3 of all that the nodes have to agree on.
    fn hash(&self) -> [u8; 32];

    /// The settings that the nodes have to agree on, as JSON: peers whose hashes differ name the first difference in it. Null
    /// where there is nothing to name.
    fn shared(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Describes the task in one line.
    fn describe(&self) -> String;

    /// A title of a few words.
    fn title(&self) -> String;

    /// The number of rounds, the metrics, and when to stop.
    fn rules(&self) -> &RoundRules;

    /// Returns `true` if contributions may be summed behind masks alone: what each node keeps secret is bounded for the
    /// sum of all, and for no part of it. The largest magnitude in a contribution then has the same exponent at all nodes,
    /// and another scale of the sum is refused.
    fn needs_masked_sums(&self) -> bool {
        false
    }

    /// The node with whose vector all begin; `None` where all have the same beginning by themselves.
    fn founder(&self) -> Option<usize> {
        None
    }

    /// Returns `true` if a node that trains a round once more may come to another contribution. Before the first round of
    /// an attempt all then get a [`token`](RoundLearning::token) of each, by which they know whether it has kept what it sent.
    fn has_tokens(&self) -> bool {
        false
    }

    /// Returns `true` if there is one model for all nodes. A node that lacks it, such as one that has joined or has lost its
    /// disk, then gets it from another, where otherwise all would begin anew ([`RoundLearning::common`]).
    fn has_common_model(&self) -> bool {
        false
    }

    /// The fewest nodes that can learn by this task.
    fn least_nodes(&self) -> usize {
        1
    }

    /// Reads one node's data, and returns its part.
    ///
    /// # Errors
    /// The data cannot be used, in one sentence that names the file.
    fn open(&self, node: usize, names: &[String]) -> Result<Box<dyn RoundLearning>, LearningError>;
}

/// One node's part in learning.
///
/// Everything that a later round depends on is in [`state`](Self::state): two parts with the same data and state do the
/// same, bit for bit.
pub trait RoundLearning: Send {
    /// BLAKE3 of the data: a state that was kept for other data is not restored.
    fn identity(&self) -> [u8; 32];

    /// Reads what an attempt needs of the store, before anything is shared in it.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn prepare(&mut self, store: &mut dyn RoundStore) -> Result<(), LearningError> {
        let _ = store;
        Ok(())
    }

    /// This node's row of statistics in the next stage before the first round, to be shared with all nodes, or none if
    /// there are no more stages. `tables` are those of the stages before, each with a row of every node. All nodes have
    /// rows of one length in a stage, and as many stages. Every attempt asks anew.
    ///
    /// # Errors
    /// The data do not fit those of the others, or cannot be worked on.
    fn statistics(&mut self, tables: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError>;

    /// The vector with which all nodes begin where this one is the [founder](RoundTask::founder); elsewhere any of the same
    /// length.
    ///
    /// # Errors
    /// There is none.
    fn beginning(&mut self) -> Result<Vec<f32>, LearningError> {
        Err(LearningError("this learning has no vector to begin with".to_owned()))
    }

    /// Begins with the vector of the [founder](RoundTask::founder).
    ///
    /// # Errors
    /// It does not fit.
    fn begin_with(&mut self, vector: &[f32]) -> Result<(), LearningError> {
        let _ = vector;
        Err(LearningError("this learning begins with no vector of another node".to_owned()))
    }

    /// A token for the first round of an attempt: the name of this node's release of that round, if `store` keeps one, or else
    /// one that no attempt ever had. Only where the task [has tokens](RoundTask::has_tokens).
    ///
    /// # Errors
    /// The store cannot be read, or there are no random numbers.
    fn token(&mut self, round: u64, store: &dyn RoundStore) -> Result<Vec<f64>, LearningError> {
        let _ = (round, store);
        Err(LearningError("this learning has no tokens".to_owned()))
    }

    /// Takes the tokens of all nodes, by node.
    fn take_tokens(&mut self, tokens: &StatisticsTable) {
        let _ = tokens;
    }

    /// Trains on its own data for a round, counted from 0, and returns the contribution to be averaged. This may take
    /// long.
    ///
    /// # Errors
    /// The training cannot go on.
    fn train(&mut self, round: u64) -> Result<Vec<f32>, LearningError>;

    /// Makes of a trained contribution what leaves this node, such as by clipping and noise, and keeps in `store` what has
    /// to be on the disk before it does.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn release(
        &mut self,
        release: Release,
        contribution: Vec<f32>,
        store: &mut dyn RoundStore,
    ) -> Result<Vec<f32>, LearningError> {
        let _ = (release, store);
        Ok(contribution)
    }

    /// The use of the contributions of a round; the same at all nodes.
    fn aggregation(&self, round: u64) -> Aggregation;

    /// Takes the aggregate of a round, as long as the contribution was.
    ///
    /// # Errors
    /// The aggregate does not fit.
    fn take(&mut self, round: u64, aggregate: &[f32]) -> Result<(), LearningError>;

    /// Takes the contributions pulled in a round where [`Aggregation::Pull`] asked for them, by source node.
    ///
    /// # Errors
    /// They do not fit, or this learning never pulls.
    fn take_pulled(&mut self, round: u64, contributions: &BTreeMap<usize, Vec<f32>>) -> Result<(), LearningError> {
        let _ = (round, contributions);
        Err(LearningError("this learning takes a mean, and chooses no sources".to_owned()))
    }

    /// The quality of the model after so many rounds: a number for each metric of the [`RoundRules`], in that order, or none
    /// where the node has no samples to measure it on. Where the task [has a common model](RoundTask::has_common_model), that
    /// of the last round may be asked for after a restart, without a training before it.
    ///
    /// # Errors
    /// The model is no longer usable.
    fn evaluate(&mut self, rounds: u64) -> Result<Vec<Option<f64>>, LearningError>;

    /// Everything that later rounds depend on; at most [`MOST_STATE_BYTES`].
    fn state(&self) -> Vec<u8>;

    /// Restores a state.
    ///
    /// # Errors
    /// The state does not belong to this part.
    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError>;

    /// The part of the state that all nodes have alike after a round, of the same length in each. Only where the task
    /// [has a common model](RoundTask::has_common_model).
    fn common(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Goes on from the [common part](Self::common) of another node's state.
    ///
    /// # Errors
    /// It does not fit.
    fn adopt(&mut self, common: &[u8]) -> Result<(), LearningError> {
        let _ = common;
        Err(LearningError("this learning has no model in common with other nodes".to_owned()))
    }

    /// A description of the data that were read, such as "56 users, 40 items, 900 interactions"; empty if there is none.
    fn found(&self) -> String {
        String::new()
    }

    /// The files that hold what was learned, by name. They stay with this node.
    ///
    /// # Errors
    /// The model cannot be encoded.
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError>;
}

/// A contribution that is about to leave its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The round, counted from 0.
    pub round: u64,
    /// A hash of the identities of all members and of the plan; of no meaning where sums are not masked.
    pub members: [u8; 32],
}

/// A stage of the statistics that nodes share with all: a row of each node, by node.
pub type StatisticsTable = Vec<Vec<f64>>;

/// The use of the contributions of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Every node gets their mean, each counting once: the same bits everywhere.
    Mean,
    /// Nothing is shared: each node goes on with its own.
    None,
    /// Every node gets the contributions of its sources, unchanged. For each node, its sources: the same lists at all
    /// nodes, as a function of the shared statistics.
    Pull(Arc<Vec<Vec<usize>>>),
}

/// The reason for which a node cannot learn, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LearningError(pub String);

impl LearningError {
    /// An error and its sources as one sentence.
    pub fn of(error: impl std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text += &format!(": {cause}");
            source = cause.source();
        }
        Self(text)
    }
}

/// The metrics of the models after a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// Rounds done.
    pub round: u64,
    /// The mean of each metric over the nodes that could measure it.
    pub mean: Vec<Option<f64>>,
    /// Each metric of this node's own model, none where it could not measure it.
    pub own: Vec<Option<f64>>,
}

impl RoundRecord {
    /// Returns `true` if there are metrics, and none of them is known, of all nodes or of this one.
    pub fn is_unknown(&self) -> bool {
        !self.own.is_empty() && self.mean.iter().chain(&self.own).all(Option::is_none)
    }
}

/// The result of learning in rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// The version of the format.
    pub schema: String,
    /// The node.
    pub node: usize,
    /// A description of the data that the node learned from.
    #[serde(default)]
    pub found: String,
    /// BLAKE3 of what all nodes agreed to learn.
    pub task: String,
    /// Rounds done.
    pub rounds: u64,
    /// The rounds after which the model is kept: the best one by the rules, else the last.
    pub best_round: u64,
    /// `true` if the rules ended the learning before all rounds were done.
    pub stopped_early: bool,
    /// The names of the metrics.
    pub metrics: Vec<String>,
    /// The record of each round.
    pub history: Vec<RoundRecord>,
    /// The files that hold what was learned, by name.
    #[serde(skip)]
    pub files: Vec<(String, Vec<u8>)>,
}

impl Learned {
    /// The version of the format.
    pub(crate) const SCHEMA: &str = "mingle.learned/1";

    /// The metrics of the model that is kept.
    pub fn best(&self) -> Option<&RoundRecord> {
        self.history.iter().find(|record| record.round == self.best_round)
    }

    /// The value of a metric in a record's `values`, by its name.
    pub fn metric(&self, values: &[Option<f64>], name: &str) -> Option<f64> {
        let at = self.metrics.iter().position(|metric| metric == name)?;
        values.get(at).copied().flatten()
    }
}

/// One node's part and its workbench, to give to a [`SolverPeer`](crate::SolverPeer).
#[derive(Clone, Debug)]
pub struct RoundPart {
    pub(crate) task: Arc<dyn RoundTask>,
    pub(crate) bench: Workbench,
    found: String,
}

impl RoundPart {
    /// A description of the data that were read; empty if there is none.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// The part of a node that keeps its rounds in this store.
    pub fn new(task: Arc<dyn RoundTask>, learning: Box<dyn RoundLearning>, store: Box<dyn RoundStore>) -> Self {
        let beginning = learning.state();
        let found = learning.found();
        Self { task, found, bench: Workbench::new(Learner { learning, store, beginning }) }
    }
}
