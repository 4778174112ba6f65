//! Errors of simulations.

use mingle_models::TrainError;
use mingle_planner::DesignError;
use mingle_protocol::{Codec, NodeError, ScheduleError};
use thiserror::Error;

/// The reason for which a swarm cannot be simulated, or not any further.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum SimulationError {
    /// The plan has no local steps.
    #[error("this plan only averages: its local steps are 0")]
    NothingToTrain,
    /// Textbook push-sum was combined with a codec.
    #[error("push-sum without a ledger sends f32 alone: textbooks know no {codec}")]
    CodecWithoutLedger { codec: Codec },
    /// Textbook push-sum was combined with an attack, with robust receiving or with overlap.
    #[error("push-sum without a ledger has no hostile members, no robust receiving and no overlap")]
    OnlyWithLedger,
    /// Overlap was combined with a plan that does not bear it.
    #[error("this plan does not average exactly in every round, so that each round trains first and mixes then")]
    NothingToOverlap,
    /// All nodes are attackers.
    #[error("{attackers} attackers leave nobody honest among {nodes} nodes")]
    NobodyHonest { attackers: usize, nodes: usize },
    /// The plan makes no valid schedule.
    #[error("the plan cannot be run")]
    Schedule(#[source] ScheduleError),
    /// The plan makes no valid node.
    #[error("this plan cannot be run")]
    Node(#[source] NodeError),
    /// No plan of this design exists for this topology.
    #[error("{design} for {topology}")]
    Design {
        /// The design, by its name in the suite.
        design: String,
        /// The topology, by its name in the suite.
        topology: String,
        /// The reason.
        source: Box<DesignError>,
    },
    /// The target of a split is invalid.
    #[error("the target of the split {split}: {why}")]
    Target {
        /// The split, by its name in the suite.
        split: String,
        /// The reason.
        why: String,
    },
    /// A device failed in training.
    #[error("node {node} cannot train")]
    Training { node: usize, source: TrainError },
    /// A device failed in evaluating.
    #[error("cannot evaluate")]
    Evaluation(#[source] TrainError),
    /// The training in another program is not usable, or has ended.
    #[error("the training in another program: {reason}")]
    Elsewhere { reason: String },
    /// Every node waits for something that does not come.
    #[error("the swarm stands still after round {round}")]
    StandsStill {
        /// Rounds that the slowest node has done.
        round: u64,
    },
    /// The threads cannot be started.
    #[error("the threads of the simulation cannot be started: {reason}")]
    Workers { reason: String },
    /// A thread panicked.
    #[error("a thread of the simulation stopped")]
    Thread,
}
