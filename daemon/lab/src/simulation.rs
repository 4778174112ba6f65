//! A whole swarm in this process: the production state machine on virtual time, real training, and slots for a clock.
//!
//! ```text
//!   round    every node trains, for as long as the slots of the round take
//!            -> splits its weight and sends parcels -> they arrive at once, or are lost and sent again
//! ```
//!
//! The network is as fast as the plan says and no faster: a round takes its slots, whoever sends how much in them. Without
//! losses and with `--wait sync` every run of a seed gives the same bits on one kind of machine.

mod attack;
mod courier;
mod error;
mod learners;
mod measured;
mod parallel;
mod progress;
mod swarm;
mod target;
mod textbook;

pub use attack::{Attack, Lie, Received, UnknownLie};
pub use error::SimulationError;
pub use learners::{Learners, Subject};
pub use measured::Measured;
pub use progress::{Goal, Progress, Stop, recent_score};
pub use target::{Target, TargetError};

use std::sync::Arc;

use mingle_models::Split;
use mingle_planner::Plan;
use mingle_protocol::{Codec, Robust, WaitPolicy};

use swarm::VirtualSwarm;
use textbook::Textbook;

/// How a swarm is run.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Production nodes with their ledger; or push-sum as textbooks have it.
    pub ledger: bool,
    /// Whom nodes wait for; unless given as `mingle run` does without options.
    pub policy: Option<WaitPolicy>,
    /// The share of messages that is lost, 0 to below 1.
    pub loss: f64,
    /// How nodes encode what they send.
    pub codec: Codec,
    /// What nodes do with ratios that are far from their own.
    pub robust: Robust,
    /// Members that lie about their models.
    pub attack: Option<Attack>,
    /// Seed of the losses, and of who lies.
    pub seed: u64,
}

impl Conditions {
    fn policy(self) -> WaitPolicy {
        self.policy.unwrap_or_default()
    }
}

/// How different the data of peers are that are dealt out like this, as `auto` counts it: 1 for data sorted by label. The
/// others are measured beside that, on the digits: by how many rounds more a design takes that does not average exactly
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
/// The plan cannot be run, or trains nothing.
pub fn found(plan: &Plan, initial: &[f32], conditions: Conditions) -> Result<Box<dyn Rounds>, SimulationError> {
    if plan.local_steps() == 0 {
        return Err(SimulationError::NothingToTrain);
    }
    if !conditions.ledger && conditions.codec != Codec::F32 {
        return Err(SimulationError::CodecWithoutLedger { codec: conditions.codec });
    }
    if !conditions.ledger && (conditions.robust != Robust::Off || conditions.attack.is_some()) {
        return Err(SimulationError::ReceivingWithoutLedger);
    }
    let nodes = plan.node_count();
    if let Some(Attack { attackers, .. }) = conditions.attack.filter(|attack| attack.attackers >= nodes) {
        return Err(SimulationError::NobodyHonest { attackers, nodes });
    }
    if conditions.ledger {
        Ok(Box::new(VirtualSwarm::new(plan, initial, conditions)?))
    } else {
        Ok(Box::new(Textbook::new(plan, initial, conditions)))
    }
}

/// Something that trains and mixes by a plan, round by round.
pub trait Rounds {
    /// Goes on until every node has done `rounds` rounds.
    ///
    /// # Errors
    /// The device failed, or the swarm stands still.
    fn advance(&mut self, rounds: u64, learners: &mut Learners) -> Result<(), SimulationError>;

    /// The model of each node that does not lie, `[nodes][parameters]`.
    fn models(&mut self) -> Vec<Arc<[f32]>>;

    /// Where it stands.
    fn tally(&self) -> Tally;
}

/// What a swarm has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Slots that have passed; on a point-to-point medium, mixing steps.
    pub slots: u64,
    /// Bytes of parameters on links, those sent again included.
    pub link_bytes: u64,
    /// Parcels sent.
    pub parcels: u64,
    /// Of them, those that were lost.
    pub lost_parcels: u64,
    /// The weights of all nodes: their number, but for what is under way or gone.
    pub weight: f64,
    /// What honest nodes received, and clipped.
    pub received: Received,
}

/// How many slots each round of a plan takes; on a point-to-point medium, steps.
#[derive(Clone, Debug)]
pub(crate) struct RoundLengths {
    period: Vec<u64>,
}

impl RoundLengths {
    /// Those of a plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        let length = |steps: &[mingle_planner::Step]| steps.iter().map(|step| step.slots().len().max(1) as u64).sum();
        Self { period: plan.steps().chunks(plan.round_length()).map(length).collect() }
    }

    /// Slots of one round, counted from 0.
    pub(crate) fn of_round(&self, round: u64) -> u64 {
        self.period[(round % self.period.len() as u64) as usize]
    }
}
