//! The events that a node reports, for people and metrics.

use std::ops::AddAssign;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{InputFault, Mismatch};
use crate::mass::Mass;
use crate::message::Generation;
use crate::schedule::NodeId;

/// Something that happened in a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeEvent {
    /// The node is about to move mass for the first time. From here on its incarnation is spent: the host stores that
    /// before it carries out the effects that follow.
    Started {
        /// The first global step it takes part in.
        step: u64,
    },
    /// The node had fallen so far behind that it skipped steps to rejoin its neighbours.
    CaughtUp {
        /// The step it was about to begin.
        from: u64,
        /// The step it goes on with.
        to: u64,
    },
    /// A neighbour claims to be much further than anything else suggests: the node goes on at its own pace.
    ProgressDoubted {
        /// The neighbour.
        peer: NodeId,
        /// Rounds that it claims to be through with.
        claimed: u64,
        /// Rounds that are believed.
        credible: u64,
    },
    /// A round is complete.
    RoundFinished(RoundReport),
    /// A neighbour is no longer waited for or sent to.
    NeighbourSuspended {
        /// The neighbour.
        peer: NodeId,
        /// The reason.
        reason: Suspension,
    },
    /// A suspended neighbour takes part again.
    NeighbourBack {
        /// The neighbour.
        peer: NodeId,
    },
    /// A wait ended without some neighbours.
    DeadlineMissed {
        /// The global step.
        step: u64,
        /// Those that were waited for in vain.
        missing: Vec<NodeId>,
        /// The length of the wait.
        waited: Duration,
    },
    /// A local step was not taken.
    DeltaSkipped {
        /// The round.
        round: u64,
        /// The reason.
        reason: SkippedDelta,
    },
    /// The training of a round has not come by its deadline: the node goes on without it, and uses it when it comes.
    TrainingLate {
        /// The round.
        round: u64,
    },
    /// A change that was ready before its round is in the numerator or held back from here on, and so in records.
    ReadyChangeTaken {
        /// The round.
        round: u64,
    },
    /// Training takes this node far longer than its neighbours: from here on it takes fewer local steps in a round, so
    /// that none of them waits for it. Reported once in a plan.
    FarSlower {
        /// The round.
        round: u64,
        /// The time that all local steps of a round take this node.
        own: Duration,
        /// The time that a round takes its neighbours, until their parcels are here.
        others: Duration,
    },
    /// A local step was far longer than the usual ones, and scaled down.
    DeltaClipped {
        /// The round.
        round: u64,
        /// The norm it had.
        norm: f64,
        /// The norm it was given.
        bound: f64,
    },
    /// The node has had less than 0.6 of the weight it should have for many rounds: a member keeps all it gets, or
    /// mass has died with members. Training goes on, in smaller steps; a new generation puts it right.
    MassLow {
        /// Mean of w / w* over the last rounds.
        share: f64,
    },
    /// A neighbour has given no weight for many rounds although it should have. It has taken all that it has credit for; or the
    /// plan has links in one direction, and the node is short of weight. What it has comes back with a new generation that leaves
    /// it out.
    NeighbourKeeps {
        /// The neighbour.
        peer: NodeId,
        /// The weight that its present life was given by this node.
        given: f64,
        /// The weight that it gave.
        received: f64,
        /// Periods of the plan by which it received more than it gave, as far as this node remembers.
        ahead: f64,
        /// Usual rounds in a row in which it should have given something, and gave nothing.
        rounds: f64,
    },
    /// The node has had more than twice the weight it should have for many rounds, and more than two founders brought: a member
    /// makes weight up, or this node gets much and gives little. What was made up counts like the models of so many members
    /// more; a new generation puts it right.
    MassHigh {
        /// Mean of w / max(w*, 1) over the last rounds, without what is under way.
        share: f64,
    },
    /// The weight is nearly what it should be again.
    MassRecovered {
        /// Mean of w / w* over the last rounds.
        share: f64,
    },
    /// A neighbour restarted without its state.
    NewIncarnation {
        /// The neighbour.
        peer: NodeId,
        /// Its new incarnation.
        incarnation: u64,
    },
    /// Parcels that an earlier life of a neighbour may or may not have applied are given up.
    MassWrittenOff {
        /// The neighbour.
        peer: NodeId,
        /// Their total mass.
        mass: Mass,
        /// The number of parcels.
        parcels: usize,
    },
    /// A neighbour has left the generation for good, by its certificate.
    MemberLeft {
        /// The neighbour.
        peer: NodeId,
    },
    /// The node was to leave, and all its neighbours have stopped or left before it: it keeps what it holds.
    NobodyToGiveTo {
        /// Its mass.
        mass: Mass,
    },
    /// Parcels that a neighbour did not apply, and never will, are this node's again.
    MassReturned {
        /// The neighbour.
        peer: NodeId,
        /// Their total mass.
        mass: Mass,
        /// The number of parcels.
        parcels: usize,
    },
    /// A parcel was too large to be believed: its mass goes back to the sender.
    ParcelRefused {
        /// The sender.
        peer: NodeId,
        /// Its mass.
        mass: Mass,
    },
    /// A parcel is a difference to a reference that this node does not have, after a restart or a missed exact average:
    /// its mass goes back to the sender.
    ReferenceMissing {
        /// The sender.
        peer: NodeId,
        /// Its mass.
        mass: Mass,
    },
    /// The node detected that it was rolled back: a neighbour has shown a statement that only the node itself can have
    /// made, and that it does not remember. So it was started from an old copy of its records, or without them. It goes
    /// on as a new incarnation without mass.
    RollbackDetected {
        /// Its incarnation from now on.
        incarnation: u64,
        /// The mass that it held by its old books, which is gone.
        discarded: Mass,
    },
    /// Another process signs with this node's key, and has named this one: both are alive, and each may have moved the
    /// same mass. The host of the one that ends stops it; until the next generation the books may be off by what it
    /// moved.
    AnotherProcess {
        /// The other one, as [`Incarnation::boot_nonce`](crate::Incarnation::boot_nonce).
        boot_nonce: u64,
        /// Set when this process has to end, because it is the younger one.
        ends: bool,
    },
    /// A neighbour is in a newer generation: the host fetches its plan from there, verifies it and hands it in.
    NewerPlan {
        /// The neighbour that has it.
        peer: NodeId,
        /// The generation it is for.
        generation: Generation,
    },
    /// The node was to enter a generation, and has fallen too far behind to begin it with its own ratio: the host
    /// fetches one from a member that is up to date, and hands the plan in again with it.
    RatioWanted {
        /// The generation.
        generation: Generation,
    },
    /// The node entered a new generation: it kept its ratio, or took a donor's, and has weight 1.
    Entered {
        /// The generation.
        generation: Generation,
    },
    /// A neighbour's Hello does not fit.
    Refused {
        /// The neighbour.
        peer: NodeId,
        /// The difference.
        mismatch: Mismatch,
    },
    /// A message was ignored because no sound neighbour would send it.
    Ignored {
        /// The neighbour.
        peer: NodeId,
        /// The fault of the message.
        fault: InputFault,
    },
    /// The node's own ratio is no longer finite: it keeps everything.
    OwnRatioUnusable {
        /// The global step.
        step: u64,
    },
    /// The node has taken its last step and waits until all it sent has been applied.
    Draining {
        /// Steps it took part in, counted from the start of the plan.
        steps: u64,
    },
    /// Draining ended at its deadline.
    DrainGaveUp {
        /// Neighbours that did not answer, and the mass on its way to each that may or may not have arrived.
        undelivered: Vec<(NodeId, Mass)>,
    },
}

/// One completed round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundReport {
    /// The round, from 0.
    pub round: u64,
    /// Global steps completed so far.
    pub step: u64,
    /// The node's weight now.
    pub mass: Mass,
    /// The weight it would have in a settled swarm.
    pub stationary_weight: f64,
    /// Mean of weight / stationary weight at the first splits of the last rounds, exponentially weighted: about 1 in a
    /// sound swarm. Parcels that have not been acknowledged still count as their sender's. See [`NodeEvent::MassLow`].
    pub mass_share: f64,
    /// Relative root mean square distance between what was absorbed (of a clipped ratio, what is left) and the node's
    /// own ratio just before, over all parcels of the round; `None` when none could be compared.
    pub disagreement: Option<f64>,
    /// Parcels absorbed in this round.
    pub absorbed: u32,
    /// The part of them that was clipped, with [`Robust::Clip`](crate::Robust::Clip).
    #[serde(default)]
    pub clipped: Clipped,
    /// Time spent waiting for neighbours in this round.
    pub waited: Duration,
    /// Time the whole round took.
    pub took: Duration,
}

/// The parts of incoming ratios that were left out because they were too far away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clipped {
    /// Parcels of whose ratio something was left out. Their weight was taken whole.
    pub parcels: u64,
    /// The sum over them of weight times the norm of the part left out: the most by which the numerator x can differ
    /// from that without clipping.
    pub norm: f64,
}

impl AddAssign for Clipped {
    fn add_assign(&mut self, more: Self) {
        self.parcels += more.parcels;
        self.norm += more.norm;
    }
}

/// The reason why a neighbour is suspended. Mass is never touched by it: false alarms are harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suspension {
    /// It let a deadline pass; back as soon as it makes progress.
    Late,
    /// No message came for three heartbeats; back at its next message.
    Silent,
    /// The host reports that the link is down; back at the first message after it is up again.
    LinkDown,
    /// It sends parcels that cannot be believed; back when it begins a new life.
    Refused,
    /// It contradicts this node's books of the parcels between the two, and shows no statement of this node that proves
    /// it; back when one of the two begins a new life.
    Contradicts,
}

/// The reason why a change was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum SkippedDelta {
    /// The node holds too little mass to add a step to.
    #[error("the node holds no weight")]
    NoMass,
    /// The host could not take a single local step.
    #[error("there was no time for one")]
    NoSteps,
    /// The step contains a number that is not finite.
    #[error("the change is not finite")]
    NotFinite,
    /// The step is longer than the largest norm of any model.
    #[error("the change is longer than the norm of any sound model")]
    TooLong,
    /// All neighbours have ended after their last round, or are gone: no node would mix the change.
    #[error("all neighbours have ended after their last round or are gone, and none would mix the change")]
    OthersHaveGone,
    /// The node has left and had no weight to hand the change over with: it was held back until then.
    #[error("the node left before it had weight to hand the change over with")]
    LeftWithoutWeight,
    /// The node left while the host trained.
    #[error("the node handed over its weight and left while they were under way")]
    LeftMeanwhile,
    /// A new plan began with the model of another member while the host trained.
    #[error("the node goes on with the model of another member")]
    OtherModel,
    /// The step has the wrong number of coordinates.
    #[error("the change has {got} numbers, and the model {expected}")]
    WrongDimension { got: usize, expected: usize },
}
