//! A peer's work in the swarm, and its outcome.

use std::path::PathBuf;
use std::sync::Arc;

use mingle_federated::FederatedSettings;
use mingle_solving::RoundTask;

use crate::results::Summary;
use crate::training::TrainingTask;

/// A peer's work in the swarm.
pub enum Purpose {
    /// Train a model.
    Train(Box<dyn TrainingTask>),
    /// Train a model by federated averaging: in rounds whose changes are averaged exactly.
    TrainFederated(Box<dyn TrainingTask>, FederatedSettings),
    /// Solve the problem in this file.
    Solve(PathBuf),
    /// Learn in rounds over collectives.
    Learn(Arc<dyn RoundTask>),
}

/// The outcome of a peer that did not fail.
#[derive(Debug)]
pub enum Outcome {
    /// It trained, and wrote its model and its summary into the home.
    Trained {
        /// Summary of the run.
        summary: Box<Summary>,
        /// The de-biased model, `[dimension]`.
        parameters: Arc<[f32]>,
        /// `true` if it was stopped before its last round, and goes on when it is started again.
        was_stopped: bool,
    },
    /// It trained by federated averaging: the model, `[dimension]`, which is in the home too.
    Averaged {
        /// The common model.
        parameters: Arc<[f32]>,
        /// Rounds of the training.
        rounds: u64,
    },
    /// The problem is solved, or learning in rounds is done: the results are in the home.
    Solved,
    /// The run was over before: nothing was done.
    WasOver,
}
