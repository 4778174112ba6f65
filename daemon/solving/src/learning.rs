//! Learning in rounds: every node trains on what is its own, vectors are averaged exactly, all go on to the next round together.
//!
//! The form of federated averaging and of its personal relatives, without a server: a [`RoundLearning`] is one node's part, and
//! says what is told to all before the first round ([`statistics`](RoundLearning::statistics)), what it learns in a round
//! ([`train`](RoundLearning::train)), what it makes of the mean of all ([`take`](RoundLearning::take)) and how good its model is
//! ([`evaluate`](RoundLearning::evaluate)). What it keeps to itself is never asked for.
//!
//! ```text
//!   statistics of all, in stages -> [ train -> mean of all contributions -> take -> evaluate -> metrics of all -> keep ] per round
//! ```
//!
//! Sums go up a tree of the plan and down again, so that every node has the same bits of them, whatever is lost on the way. When all
//! stop is decided by each from metrics that are the same everywhere. Training takes its time: it is handed out as
//! [`LocalWork`], which the host runs where it does not stand in the way.
//!
//! After each round a node keeps its state in a [`RoundStore`]. A node that was started again makes all begin a new attempt: they tell
//! each other which rounds they have kept, go back to the newest that all have, and come to the same bits as without the
//! interruption.

mod kept;
mod local_work;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use kept::MOST_STATE_BYTES;
pub(crate) use kept::{About, Kept};
pub use local_work::LocalWork;
pub(crate) use local_work::{Bench, Learner};
pub use rules::{RoundRules, RulesError};

/// Numbers in a message: longer vectors are summed piece by piece.
pub(crate) const CHUNK: usize = 1 << 16;

/// What all nodes learn, before any of them has opened its data.
pub trait RoundTask: fmt::Debug + Send + Sync {
    /// BLAKE3 of all that the nodes have to agree on.
    fn hash(&self) -> [u8; 32];

    /// In a line.
    fn describe(&self) -> String;

    /// In a few words.
    fn title(&self) -> String;

    /// How many rounds, and what is measured.
    fn rules(&self) -> &RoundRules;

    /// One node's part: its data are read.
    ///
    /// # Errors
    /// What is wrong with them, in one sentence that names the file.
    fn open(&self, node: usize, names: &[String]) -> Result<Box<dyn RoundLearning>, LearningError>;
}

/// One node's part in learning.
///
/// Everything that a later round depends on is in [`state`](Self::state): two parts with the same data and state do the same, bit for
/// bit.
pub trait RoundLearning: Send {
    /// BLAKE3 of the data: a state that was kept for other data is not taken up.
    fn identity(&self) -> [u8; 32];

    /// The row of numbers that all are told in the next stage before the first round, given the tables of the stages before, a row
    /// of each node in each. All nodes have rows of one length in a stage, and as many stages. None: there are no more stages. Every
    /// attempt asks anew.
    ///
    /// # Errors
    /// The data do not fit those of the others, or cannot be worked on.
    fn statistics(&mut self, tables: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError>;

    /// Learns from its own data for a round, counted from 0, and gives what is to be averaged. This may take long.
    ///
    /// # Errors
    /// The training cannot go on.
    fn train(&mut self, round: u64) -> Result<Vec<f32>, LearningError>;

    /// What becomes of the contributions of a round; the same at all nodes.
    fn aggregation(&self, round: u64) -> Aggregation;

    /// Takes the aggregate of a round, as long as the contribution was.
    ///
    /// # Errors
    /// It does not fit.
    fn take(&mut self, round: u64, aggregate: &[f32]) -> Result<(), LearningError>;

    /// Takes what was pulled in a round, where [`Aggregation::Pull`] asked for it: the contributions of its sources, by node.
    ///
    /// # Errors
    /// It does not fit, or this learning never pulls.
    fn take_pulled(&mut self, round: u64, contributions: &BTreeMap<usize, Vec<f32>>) -> Result<(), LearningError> {
        let _ = (round, contributions);
        Err(LearningError("this learning takes a mean, and chooses no sources".to_owned()))
    }

    /// How good the model is, a number for each metric of the [`RoundRules`], in that order; none where there is nothing to measure it
    /// on.
    ///
    /// # Errors
    /// The model is none any more.
    fn evaluate(&mut self) -> Result<Vec<Option<f64>>, LearningError>;

    /// Everything that later rounds depend on; at most [`MOST_STATE_BYTES`].
    fn state(&self) -> Vec<u8>;

    /// Goes back to a state.
    ///
    /// # Errors
    /// It is none of this part.
    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError>;

    /// The files that hold what was learned, by name. They stay with this node.
    ///
    /// # Errors
    /// It cannot be written down.
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError>;
}

/// A row of each node, by node: what a stage of the statistics told to all.
pub type StatisticsTable = Vec<Vec<f64>>;

/// What becomes of the contributions of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Every node gets their mean, each counting once: the same bits everywhere.
    Mean,
    /// Nothing: each goes on with its own.
    None,
    /// Every node gets the contributions of those whom it chose, unchanged: by node, the nodes from which it takes. The same lists
    /// at all nodes, as a function of what the statistics told to all.
    Pull(Arc<Vec<Vec<usize>>>),
}

/// Why a node cannot learn, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LearningError(pub String);

/// Where a node keeps the states after its last rounds, by the number of rounds done.
///
/// What was kept is there when the node is started again. A store may lose everything, but it never gives what it was not given:
/// states carry a checksum, and those that are damaged count as lost.
pub trait RoundStore: Send {
    /// The rounds of which there is something.
    fn held(&self) -> BTreeSet<u64>;

    /// What was kept of a round.
    ///
    /// # Errors
    /// It cannot be read.
    fn load(&self, round: u64) -> Result<Vec<u8>, LearningError>;

    /// Keeps what is to be found after a restart, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    fn keep(&mut self, round: u64, bytes: &[u8]) -> Result<(), LearningError>;

    /// Forgets all rounds but these. What cannot be removed does no harm.
    fn retain(&mut self, rounds: &BTreeSet<u64>);
}

/// A store that lasts as long as the process.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(BTreeMap<u64, Vec<u8>>);

impl RoundStore for MemoryStore {
    fn held(&self) -> BTreeSet<u64> {
        self.0.keys().copied().collect()
    }

    fn load(&self, round: u64) -> Result<Vec<u8>, LearningError> {
        self.0.get(&round).cloned().ok_or_else(|| LearningError(format!("nothing is kept of round {round}")))
    }

    fn keep(&mut self, round: u64, bytes: &[u8]) -> Result<(), LearningError> {
        self.0.insert(round, bytes.to_vec());
        Ok(())
    }

    fn retain(&mut self, rounds: &BTreeSet<u64>) {
        self.0.retain(|round, _| rounds.contains(round));
    }
}

/// How good the models were after a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// Rounds done.
    pub round: u64,
    /// The mean of each metric over the nodes that could measure it.
    pub mean: Vec<Option<f64>>,
    /// This node's own.
    pub own: Vec<Option<f64>>,
}

/// What came of learning in rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// The version of the format.
    pub schema: String,
    /// The node.
    pub node: usize,
    /// BLAKE3 of what all nodes agreed to learn.
    pub task: String,
    /// Rounds done.
    pub rounds: u64,
    /// The rounds after which the model was that is kept: the best one by the rules, else the last.
    pub best_round: u64,
    /// Whether the rules ended it before all rounds were done.
    pub stopped_early: bool,
    /// What was measured.
    pub metrics: Vec<String>,
    /// After each round.
    pub history: Vec<RoundRecord>,
    /// The files that hold what was learned, by name.
    #[serde(skip)]
    pub files: Vec<(String, Vec<u8>)>,
}

impl Learned {
    /// The version of the format.
    pub(crate) const SCHEMA: &str = "mingle.learned/1";

    /// What was measured of the model that is kept.
    pub fn best(&self) -> Option<&RoundRecord> {
        self.history.iter().find(|record| record.round == self.best_round)
    }

    /// A metric of a record by its name.
    pub fn metric(&self, values: &[Option<f64>], name: &str) -> Option<f64> {
        let at = self.metrics.iter().position(|metric| metric == name)?;
        values.get(at).copied().flatten()
    }
}

/// One node's part and where it works, to give to a [`SolverPeer`](crate::SolverPeer).
#[derive(Clone, Debug)]
pub struct RoundPart {
    pub(crate) task: Arc<dyn RoundTask>,
    pub(crate) bench: Bench,
}

impl RoundPart {
    /// The part of a node that keeps its rounds here.
    pub fn new(task: Arc<dyn RoundTask>, learning: Box<dyn RoundLearning>, store: Box<dyn RoundStore>) -> Self {
        let beginning = learning.state();
        Self { task, bench: Bench::new(Learner { learning, store, beginning }) }
    }
}
