//! What can go wrong with a simulation.

use mingle_models::TrainError;
use mingle_planner::DesignError;
use mingle_protocol::{Codec, NodeError, ScheduleError};
use thiserror::Error;

/// Why a swarm cannot be simulated, or not any further.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SimulationError {
    /// The plan has no local steps.
    #[error("this plan only averages: its local steps are 0")]
    NothingToTrain,
    /// Push-sum as textbooks have it, with a codec.
    #[error("push-sum without a ledger sends f32 alone: textbooks know no {codec}")]
    CodecWithoutLedger {
        /// The codec.
        codec: Codec,
    },
    /// Push-sum as textbooks have it, with lies or robust receiving.
    #[error("push-sum without a ledger has no hostile members and no robust receiving")]
    ReceivingWithoutLedger,
    /// All nodes lie.
    #[error("{attackers} attackers leave nobody honest among {nodes} nodes")]
    NobodyHonest {
        /// How many lie.
        attackers: usize,
        /// How many there are.
        nodes: usize,
    },
    /// The plan makes no schedule.
    #[error("the plan cannot be run")]
    Schedule(#[source] ScheduleError),
    /// The plan makes no node.
    #[error("this plan cannot be run")]
    Node(#[source] NodeError),
    /// There is no plan of this design for this topology.
    #[error("{design} for {topology}")]
    Design {
        /// The design, by its name in the suite.
        design: String,
        /// The topology, by its name in the suite.
        topology: String,
        /// Why not.
        source: Box<DesignError>,
    },
    /// What the models of a suite are to reach cannot be.
    #[error("the target of the split {split}: {why}")]
    Target {
        /// The split, by its name in the suite.
        split: String,
        /// Why not.
        why: String,
    },
    /// A device failed in training.
    #[error("node {node} cannot train")]
    Training {
        /// Whose turn it was.
        node: usize,
        /// Why not.
        source: TrainError,
    },
    /// A device failed in evaluating.
    #[error("cannot evaluate")]
    Evaluation(#[source] TrainError),
    /// Every node waits for something that does not come.
    #[error("the swarm stands still after round {round}")]
    StandsStill {
        /// Rounds that the slowest node has done.
        round: u64,
    },
    /// A thread panicked.
    #[error("a thread of the simulation stopped")]
    Thread,
}
