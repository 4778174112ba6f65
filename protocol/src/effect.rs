//! What a node wants done, and what it has to say.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::mass::Mass;
use crate::message::{Generation, Message};
use crate::record::{Record, SlotMap};
use crate::schedule::{NodeId, Schedule};

/// Something the host has to do, in the order given.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a message. It may be lost only together with the link ([`Input::LinkDown`](crate::Input::LinkDown)),
    /// unless the node was told to retransmit.
    Send {
        /// To whom.
        to: NodeId,
        /// What.
        message: Message,
    },
    /// Train locally from this point and answer with [`Input::Trained`](crate::Input::Trained).
    Train {
        /// The round, to be repeated in the answer.
        round: u64,
        /// The ratio z to start from, `[dimension]`.
        from: Arc<[f32]>,
        /// How many local steps the plan wants.
        local_steps: u32,
        /// Stop after as many of them as fit into this time, but not before the first.
        time_box: Option<Duration>,
        /// By what the change before was multiplied when it was added to the model, so that a trainer which carries
        /// something over, such as momentum or the error of a compression, can account for it: less than 1 where the node
        /// held less weight than it does in a settled swarm or the change was clipped, more where a time box cut the steps
        /// short, 0 where it was not used at all.
        last_factor: f64,
    },
    /// Write a record and answer with [`Input::Persisted`](crate::Input::Persisted) once it would survive a loss of
    /// power. A host that cannot find out whether it would must end: it can never know again. Of earlier records only
    /// the newest and those whose payloads it [owes](crate::Books::owed_records) need to be kept.
    Persist(Arc<Record>),
    /// From here on records need so many slots ([`SlotMap`](crate::record::SlotMap)): make those that are missing, and
    /// answer with [`Input::Reserved`](crate::Input::Reserved) once they are there, however long that takes. Until then the
    /// node keeps to the slots it knows of. Slots beyond those needed may be removed once nothing in them is owed. Asked for
    /// only where the host said how many slots there are ([`NodeConfig::record_slots`](crate::NodeConfig::record_slots)).
    Reserve(RecordRoom),
    /// Give up the streams to a neighbour and open new ones: what they carry does not come to an understanding.
    Renew {
        /// The neighbour.
        peer: NodeId,
    },
    /// Something worth telling people or metrics.
    Report(Event),
    /// All mass this node owed has arrived. The host may drop it now; until then it goes on answering others.
    Drained,
}

/// What the records of a node can grow to, by the links it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRoom {
    /// Slots that are enough whatever is owed: [`SlotMap::worst_case`](crate::record::SlotMap::worst_case).
    pub slots: usize,
    /// Links from others, for [`Record::largest_bytes`](crate::Record::largest_bytes).
    pub senders: usize,
    /// Links to others.
    pub receivers: usize,
}

impl RecordRoom {
    /// For a node that has no links but those of its plan.
    pub fn of(schedule: &Schedule, id: NodeId) -> Self {
        Self::for_links(schedule.all_in_neighbours(id).len(), schedule.all_out_neighbours(id).len())
    }

    /// For so many links from others and to others.
    pub fn for_links(senders: usize, receivers: usize) -> Self {
        Self { slots: SlotMap::worst_case(receivers), senders, receivers }
    }
}

/// Something that happened in a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
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
    /// A neighbour says that it is much further than anything else suggests: the node goes on at its own pace.
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
        /// Why.
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
        /// How long the wait was.
        waited: Duration,
    },
    /// A local step was not taken.
    DeltaSkipped {
        /// The round.
        round: u64,
        /// Why.
        reason: SkippedDelta,
    },
    /// The training of a round has not come by its deadline: the node goes on without it, and uses it when it comes.
    TrainingLate {
        /// The round.
        round: u64,
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
    /// The node has had less than half of the weight it should have for many rounds: a member keeps all it gets, or mass
    /// has died with members. Training goes on, in smaller steps; a new generation puts it right.
    MassLow {
        /// Mean of w / w* over the last rounds.
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
        /// How many there were.
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
        /// How many there were.
        parcels: usize,
    },
    /// A parcel was too large to be believed: its mass goes back to the sender.
    ParcelRefused {
        /// The sender.
        peer: NodeId,
        /// Its mass.
        mass: Mass,
    },
    /// Neighbours remember a later state of this node than it does: it was started from an old copy of its records, or
    /// without them. It goes on as a new incarnation without mass.
    SetBack {
        /// Its incarnation from now on.
        incarnation: u64,
        /// The mass that it held by its old books, which is gone.
        discarded: Mass,
    },
    /// A neighbour follows a newer plan: the host fetches it from there, verifies it and hands it in.
    NewerPlan {
        /// Who has it.
        peer: NodeId,
        /// The generation it is for.
        generation: Generation,
        /// Its version in that generation, where that is this node's.
        version: u64,
    },
    /// The node was to enter a generation, and has fallen too far behind to begin it with its own ratio: the host fetches
    /// one from a member that is up to date, and hands the plan in again with it.
    RatioWanted {
        /// The generation.
        generation: Generation,
    },
    /// The node entered a new generation: it kept its ratio, or took a donor's, and has weight 1.
    Entered {
        /// Which.
        generation: Generation,
    },
    /// The node follows another plan of the same generation.
    Rewired {
        /// Its version.
        version: u64,
    },
    /// A neighbour's Hello does not fit.
    Refused {
        /// The neighbour.
        peer: NodeId,
        /// What differs.
        mismatch: Mismatch,
    },
    /// A message was ignored because no sound neighbour would send it.
    Ignored {
        /// The neighbour.
        peer: NodeId,
        /// What is wrong with it.
        fault: Fault,
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
    /// Mean of weight / stationary weight at the first splits of the last rounds, exponentially weighted, where parcels
    /// that nobody has acknowledged still count as their sender's: about 1 in a sound swarm. See [`Event::MassLow`].
    pub mass_share: f64,
    /// Relative root mean square distance between what was absorbed and the node's own ratio just before, over all
    /// parcels of the round; `None` when none could be compared.
    pub disagreement: Option<f64>,
    /// Parcels absorbed in this round.
    pub absorbed: u32,
    /// Time spent waiting for neighbours in this round.
    pub waited: Duration,
    /// Time the whole round took.
    pub took: Duration,
}

/// Why a neighbour is suspended. Mass is never touched by it: false alarms are harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suspension {
    /// It let a deadline pass; back as soon as it makes progress.
    Late,
    /// Nothing was heard for three heartbeats; back at its next message.
    Silent,
    /// The host says the link is down; back at the first message after it is up again.
    LinkDown,
    /// It sends parcels that cannot be believed; back when it begins a new life.
    Refused,
}

/// Why a local step was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkippedDelta {
    /// The node holds too little mass to add a step to.
    NoMass,
    /// The host could not take a single local step.
    NoSteps,
    /// The step contains a number that is not finite.
    NotFinite,
    /// The step has the wrong number of coordinates.
    WrongDimension {
        /// How many it has.
        got: usize,
        /// How many it needs.
        expected: usize,
    },
}

/// What a Hello differs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mismatch {
    /// Another protocol version.
    Version {
        /// Ours.
        ours: u16,
        /// Theirs.
        theirs: u16,
    },
    /// Another plan or generation.
    Generation {
        /// Ours.
        ours: Generation,
        /// Theirs.
        theirs: Generation,
    },
    /// Another task.
    Task {
        /// Ours, in words.
        ours: String,
        /// Theirs, in words.
        theirs: String,
    },
    /// Another process with the same incarnation already exchanged mass with us.
    IdentityInUse {
        /// The incarnation both claim.
        incarnation: u64,
    },
    /// It took part before, and has lost what it knew of that.
    Forgetful {
        /// The incarnation it claims to begin.
        incarnation: u64,
    },
    /// A life of the neighbour that a later one has replaced.
    Outdated {
        /// The incarnation it claims.
        incarnation: u64,
        /// The one known.
        known: u64,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { ours, theirs } => {
                write!(f, "it speaks protocol version {theirs}, this node {ours}: run the same release on both")
            }
            Self::Generation { ours, theirs } if ours.plan_hash == theirs.plan_hash => {
                write!(f, "it is in generation {} of the plan, this node in {}", theirs.counter, ours.counter)
            }
            Self::Generation { .. } => {
                write!(f, "it follows another plan: give both the same plan file")
            }
            Self::Task { ours, theirs } => {
                write!(f, "it trains \"{theirs}\", this node \"{ours}\": start both on one task")
            }
            Self::IdentityInUse { incarnation } => {
                write!(
                    f,
                    "another process took part as its incarnation {incarnation}: stop one, or restart it as a later one"
                )
            }
            Self::Forgetful { incarnation } => {
                write!(
                    f,
                    "it begins incarnation {incarnation}, which has been here and is not over: it lost its records"
                )
            }
            Self::Outdated { incarnation, known } => {
                write!(
                    f,
                    "it claims incarnation {incarnation}, but incarnation {known} has been here: stop the old process"
                )
            }
        }
    }
}

/// Why an input was not taken. [`Node::refusals`](crate::Node::refusals) counts all of them; those that no sound neighbour
/// causes are reported as [`Event::Ignored`] too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// It is not a neighbour in the plan.
    NotANeighbour,
    /// It belongs to another generation.
    OtherGeneration,
    /// The plan has no such link in that step.
    NoSuchLink,
    /// A mass of zero, or more than the whole swarm has.
    ImpossibleMass,
    /// A payload of the wrong dimension.
    WrongDimension,
    /// Steps that run backwards or past the end.
    ImpossibleStep,
    /// It acknowledges parcels that were never sent, or takes back acknowledgements.
    ImpossibleAck,
    /// More parcels than the window allows.
    WindowExceeded,
    /// A plan that does not replace the present one, or that this node cannot follow.
    UnusablePlan,
    /// A leave certificate that nobody can have written.
    ImpossibleCertificate,
    /// An answer to a question that was not asked.
    UnexpectedTraining,
    /// A life of this node that it cannot have had.
    ImpossibleLife,
    /// A neighbour that was believed once that this node is set back says so again.
    RepeatedSetBack,
    /// A parcel that was here before. Only counted: networks repeat, and senders whose acknowledgement was lost.
    Repeated,
    /// A parcel that came before the one that precedes it. Only counted: networks reorder.
    OutOfOrder,
    /// A parcel that continues another sequence than the one that was received. Only counted: it comes from a sender that
    /// was set back.
    Forked,
    /// An Ack or a parcel of or for a life that is over or unknown. Only counted: it is answered with a Hello.
    OtherLife,
    /// A Hello that does not fit. Only counted; what differs is in [`Event::Refused`].
    UnfitHello,
    /// A message of a generation that the present one has replaced. Only counted: its sender is told.
    OlderGeneration,
    /// A message of a generation that replaces the present one. Only counted: its plan is asked for.
    NewerGeneration,
}
