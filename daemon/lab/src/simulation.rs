//! A whole swarm in this process: the production state machine on virtual time, real training, and slots for a clock.
//!
//! ```text
//!   round    every node trains, for as long as the slots of the round take
//!            -> splits its weight and sends parcels -> they arrive at once, or are lost and sent again
//! ```
//!
//! The network is as fast as the plan says and no faster: a round takes its slots, however much nodes send in them.
//! Without losses and with `--wait sync` every run of a seed gives the same bits on one kind of machine.

mod attack;
mod courier;
mod error;
mod learners;
mod measured;
mod progress;
mod swarm;
mod target;
mod textbook;
mod workers;

pub use attack::{Attack, Lie, Received, UnknownLie};
pub use error::SimulationError;
pub use learners::{BETWEEN_EVALUATIONS, Learners, NodeWork, Subject, disagreement};
pub use measured::SwarmMeans;
pub use progress::{Goal, Stop, SwarmProgress, recent_score};
pub use target::{MetricTarget, TargetError};
pub use workers::Workers;

use std::sync::Arc;

use mingle_models::Split;
use mingle_planner::Plan;
use mingle_protocol::{Codec, CodecChoice, Robust, TrainingOverlap, WaitPolicy};

use swarm::VirtualSwarm;
use textbook::Textbook;

/// The conditions under which a swarm is run.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// `true` for production nodes with their ledger; `false` for textbook push-sum.
    pub ledger: bool,
    /// The neighbours that nodes wait for; if not given, as `mingle run` does without options.
    pub policy: Option<WaitPolicy>,
    /// The share of messages that is lost, from 0 to below 1.
    pub loss: f64,
    /// The encoding of parameters in parcels.
    pub codec: CodecChoice,
    /// The treatment of ratios that are far from a node's own.
    pub robust: Robust,
    /// Training of the next round while the present one is mixed.
    pub overlap: TrainingOverlap,
    /// Momentum across rounds, which the plan must bear; 0 for none.
    pub momentum: f64,
    /// Members that send false models, if any.
    pub attack: Option<Attack>,
    /// The seed of the losses, and of the choice of attackers.
    pub seed: u64,
    /// The length of a run whose last rounds mix without training, as those of peers do; without it all rounds train.
    pub rounds: Option<u64>,
    /// `true` if such a run ends with the mean of its last models, as that of a trainer does.
    pub ends_with_mean: bool,
}

impl Conditions {
    fn policy(self) -> WaitPolicy {
        self.policy.unwrap_or_default()
    }
}

/// The heterogeneity of data that are dealt out by this split, as `auto` counts it: 1 for data sorted by label. The
/// others are calibrated against that on the digits, by how many more rounds a design without exact averaging takes
/// (`docs/planning.md`).
pub fn heterogeneity(split: Split) -> f64 {
    const ALIKE: f64 = 0.02;
    match split {
        Split::Iid => ALIKE,
        Split::LabelSorted => 1.0,
        Split::Dirichlet { concentration } => (1.0 / (1.0 + 16.0 * concentration)).max(ALIKE),
    }
}

/// A swarm whose nodes all begin with `initial`.
///
/// # Errors
/// The plan cannot be run or has no local steps, or the conditions contradict each other.
pub fn found(plan: &Plan, initial: &[f32], conditions: Conditions) -> Result<Box<dyn Rounds>, SimulationError> {
    if plan.local_steps() == 0 {
        return Err(SimulationError::NothingToTrain);
    }
    if let CodecChoice::Fixed(codec) = conditions.codec
        && !conditions.ledger
        && codec != Codec::F32
    {
        return Err(SimulationError::CodecWithoutLedger { codec });
    }
    let needs_ledger =
        conditions.robust != Robust::Off || conditions.overlap != TrainingOverlap::Off || conditions.attack.is_some();
    if !conditions.ledger && needs_ledger {
        return Err(SimulationError::OnlyWithLedger);
    }
    let nodes = plan.node_count();
    if let Some(Attack { attackers, .. }) = conditions.attack.filter(|attack| attack.attackers >= nodes) {
        return Err(SimulationError::NobodyHonest { attackers, nodes });
    }
    if conditions.ledger {
        Ok(Box::new(VirtualSwarm::new(plan, initial, conditions)?))
    } else {
        Ok(Box::new(Textbook::new(plan, initial, conditions)?))
    }
}

/// The training of all nodes of a swarm.
pub trait NodeTraining {
    /// Does the jobs, which name each node at most once and in ascending order; returns the changes in the same order.
    ///
    /// # Errors
    /// The training failed.
    fn train(&mut self, jobs: &[NodeWork]) -> Result<Vec<Vec<f32>>, SimulationError>;

    /// The threads on which nodes may mix; `None` for the calling thread alone.
    fn workers(&self) -> Option<&Workers> {
        None
    }
}

/// A swarm that trains and mixes by a plan, round by round.
pub trait Rounds {
    /// Goes on until every node has done `rounds` rounds.
    ///
    /// # Errors
    /// The device failed, or the swarm makes no progress.
    fn advance(&mut self, rounds: u64, training: &mut dyn NodeTraining) -> Result<(), SimulationError>;

    /// The model of each honest node, `[nodes][parameters]`.
    fn models(&mut self) -> Vec<Arc<[f32]>>;

    /// The resources used so far.
    fn tally(&self) -> Tally;
}

/// The resources that a swarm has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Slots that have passed; on a point-to-point medium, mixing steps.
    pub slots: u64,
    /// Bytes of parameters on links, retransmissions included.
    pub link_bytes: u64,
    /// Parcels sent.
    pub parcels: u64,
    /// Parcels that were lost.
    pub lost_parcels: u64,
    /// The sum of all nodes' weights: the number of nodes, less the weight under way or lost.
    pub weight: f64,
    /// The parcels that honest nodes received, and clipped.
    pub received: Received,
}

/// The slots that each round of a plan takes; on a point-to-point medium, steps.
#[derive(Clone, Debug)]
pub(crate) struct RoundLengths {
    period: Vec<u64>,
}

impl RoundLengths {
    /// The lengths of a plan's rounds.
    pub(crate) fn of(plan: &Plan) -> Self {
        // A step in which nobody sends takes no time; a round takes some.
        let step = |step: &mingle_planner::MixingStep| {
            if step.links().is_empty() { 0 } else { step.slots().len().max(1) as u64 }
        };
        let length = |steps: &[mingle_planner::MixingStep]| steps.iter().map(step).sum::<u64>().max(1);
        Self { period: plan.steps().chunks(plan.round_length()).map(length).collect() }
    }

    /// Slots of one round, counted from 0.
    pub(crate) fn of_round(&self, round: u64) -> u64 {
        self.period[(round % self.period.len() as u64) as usize]
    }
}
