//! The configuration of a node: given once, at its start, and checked there.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::codec::Codec;
use crate::codec_choice::{ChosenCodec, CodecChoice};
use crate::injected_bug::Injected;
use crate::message::{Generation, Incarnation, MAX_DESCRIPTION, TaskDigest};
use crate::overlap::TrainingOverlap;
use crate::payload::{MAX_DIMENSION, MAX_MAGNITUDE, first_unusable};
use crate::schedule::{MOST_OF_ALL_ROUNDS, NodeId, Schedule};
use crate::statement::{Keys, NoKeys};

/// The wait of a node for its in-neighbours before it goes on to the next step. Conservation does not depend on it:
/// late parcels are absorbed late. No wait outlasts the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitPolicy {
    /// Wait for the parcel of this very step from every in-neighbour the plan has in it, and absorb them in a fixed
    /// order: without faults the result is the same to the bit whatever the network does.
    Sync,
    /// Wait only for in-neighbours that are more than `staleness` rounds behind; absorb on arrival.
    Bounded {
        /// Rounds that an in-neighbour may lag behind.
        staleness: u64,
    },
    /// Never wait for a straggler; absorb on arrival.
    Async,
}

impl Default for WaitPolicy {
    fn default() -> Self {
        Self::Bounded { staleness: 4 }
    }
}

/// Rounds of a run that is long for every plan.
const LONG_RUN: u64 = 1 << 40;

impl WaitPolicy {
    /// Rounds of a run of `rounds` rounds that train: all but the closing ones ([`Schedule::closing_rounds`]).
    pub fn training_rounds(self, schedule: &Schedule, rounds: u64) -> u64 {
        match self {
            Self::Sync => rounds - schedule.closing_rounds(rounds),
            Self::Bounded { .. } | Self::Async => rounds - schedule.closing_rounds_out_of_step(rounds),
        }
    }

    /// About the fewest rounds of a run that ends as a long one does: its closing rounds are as many as they have to be,
    /// and not cut to a share of all.
    pub fn shortest_run(self, schedule: &Schedule) -> u64 {
        let closing = |rounds| rounds - self.training_rounds(schedule, rounds);
        let share = MOST_OF_ALL_ROUNDS;
        let guess = share * closing(LONG_RUN);
        // A run of another length may end in another step of the period, and need some more.
        (share * closing(LONG_RUN - LONG_RUN % schedule.rounds_in_period() + guess)).max(guess).max(1)
    }
}

/// The durability of a node's mass beyond its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Every split waits for a record on disk. A node that is killed goes on where it was, and no mass is lost.
    On,
    /// Nothing is written. A node that is killed loses the mass it held, and comes back without any.
    #[default]
    Off,
}

/// The treatment of a neighbour's ratio that is far from the node's own. Each node chooses for itself: others need not
/// do the same, and nothing on the wire depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Robust {
    /// It is taken as it is: push-sum, where the sum of all numerators is conserved.
    #[default]
    Off,
    /// It is moved towards the node's own ratio, to the distance that is usual among its in-neighbours: self-centred
    /// clipping (He, Karimireddy, Jaggi, arXiv 2202.01545). Weights stay exact; the sum of numerators is no longer
    /// conserved.
    Clip,
}

impl Robust {
    /// All ways of receiving.
    pub const ALL: [Self; 2] = [Self::Off, Self::Clip];

    /// The name on command lines and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Clip => "clip",
        }
    }
}

impl fmt::Display for Robust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Robust {
    type Err = UnknownRobust;

    fn from_str(name: &str) -> Result<Self, UnknownRobust> {
        Self::ALL
            .into_iter()
            .find(|robust| robust.name() == name)
            .ok_or_else(|| UnknownRobust { name: name.to_owned() })
    }
}

/// A name that no way of receiving has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name:?} is no way of robust receiving; there are off and clip")]
pub struct UnknownRobust {
    /// The name given.
    pub name: String,
}

/// Everything a node needs to start. [`NodeConfig::new`] fills in the defaults.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// This node's index in the plan.
    pub id: NodeId,
    /// The plan.
    pub schedule: Arc<Schedule>,
    /// The ratio z to start from, `[dimension]`.
    pub initial: Vec<f32>,
    /// Periods to run.
    pub rounds: u64,
    /// The ledger this run belongs to, with the plan's hash.
    pub generation: Generation,
    /// The task that is trained.
    pub task: TaskDigest,
    /// This life of the node. Incarnation 1 is a founder and starts with mass 1; any later one lost its state and
    /// starts with none. A host must move to a larger incarnation before it restarts a node that has reported
    /// [`NodeEvent::Started`](crate::NodeEvent::Started), and may keep it before that.
    pub identity: Incarnation,
    /// Sign the node's statements about itself, and check those of others.
    pub keys: Arc<dyn Keys>,
    /// The encoding of parcels. Every receiver takes every codec, so members of a swarm may differ in it.
    pub codec: CodecChoice,
    /// The durability of its mass: with `On`, the host keeps records.
    pub durability: Durability,
    /// The number of slots that the host has for records ([`SlotMap`](crate::record::SlotMap)); the node asks for more
    /// when its links need more ([`Effect::Reserve`](crate::Effect::Reserve)), and does not split while too few are
    /// free. `None`: there is always another one.
    pub record_slots: Option<usize>,
    /// The largest norm of a ratio that this node takes from others, and that its own steps lead to; parcels beyond it go back to
    /// their senders. `None` takes every finite ratio.
    pub largest_norm: Option<f64>,
    /// The treatment of ratios that are far from its own.
    pub robust: Robust,
    /// The wait for in-neighbours.
    pub policy: WaitPolicy,
    /// Training of the next round while the present one is mixed.
    pub overlap: TrainingOverlap,
    /// `true` if the last rounds mix without training ([`Schedule::closing_rounds`]): a swarm that trains to the very
    /// end leaves models that differ by what each peer learnt last.
    pub closes: bool,
    /// `true` if the run ends with the mean of the models after its last four rounds of training: at a constant learning
    /// rate a model swings around what it has learnt, and any one round may be a bad one. No effect on runs of fewer than
    /// thirty such rounds.
    pub ends_with_mean: bool,
    /// A local step longer than this many times the median of the latest ones is scaled down to that; `None` takes all
    /// as they are.
    pub clip: Option<f64>,
    /// The time for a round's local training, where the host can stop between local steps. Slow nodes make up for the
    /// steps left out by larger ones, so that they neither hold others up nor count for less. Leave room for a few
    /// local steps, since the fewer there are the larger each becomes.
    pub time_box: Option<Duration>,
    /// Set where the node, without a time box, cuts its training short when its neighbours need far less time for
    /// theirs. Its own part of the work is then smaller, and no neighbour's rounds are longer. No effect with
    /// [`WaitPolicy::Sync`].
    pub keeps_up: bool,
    /// The wait for a round's training before the node goes on without it; `None` waits for ever.
    pub training_deadline: Option<Duration>,
    /// A founder's wait for neighbours that have not come, once one has; `None` waits until all are there.
    pub gather_for: Option<Duration>,
    /// The shortest deadline of any wait; the deadline is the larger of this and twice the usual round time.
    pub deadline_floor: Duration,
    /// A finished node's wait for neighbours that do not answer.
    pub drain_deadline: Duration,
    /// The longest silence a node allows itself on a link; three of them and a neighbour is suspended.
    pub heartbeat: Duration,
    /// A bug, to see whether tests find it.
    pub(crate) injected: Injected,
    /// Over streams that lose nothing while they live, `None`: parcels are sent again only after a new Hello. Over
    /// datagrams, the retransmission timeout; it doubles while no message at all arrives from a neighbour.
    pub retransmit_after: Option<Duration>,
}

impl NodeConfig {
    /// A founder's configuration with the defaults: no keys, parcels in f32, no records, ratios taken as they are,
    /// bounded staleness 4, steps clipped at 10 medians, no time box, all neighbours waited for at the start, deadlines
    /// from 2 s, drain for 30 s, heartbeats every 5 s, reliable streams.
    pub fn new(id: NodeId, schedule: Arc<Schedule>, initial: Vec<f32>, rounds: u64) -> Self {
        Self {
            id,
            schedule,
            initial,
            rounds,
            generation: Generation { counter: 0, plan_hash: [0; 32] },
            task: TaskDigest::default(),
            identity: Incarnation { incarnation: 1, boot_nonce: 0 },
            keys: Arc::new(NoKeys),
            codec: Codec::F32.into(),
            durability: Durability::default(),
            record_slots: None,
            largest_norm: None,
            robust: Robust::default(),
            policy: WaitPolicy::default(),
            overlap: TrainingOverlap::default(),
            closes: true,
            ends_with_mean: false,
            clip: Some(10.0),
            time_box: None,
            keeps_up: false,
            training_deadline: None,
            gather_for: None,
            deadline_floor: Duration::from_millis(2_000),
            drain_deadline: Duration::from_secs(30),
            heartbeat: Duration::from_secs(5),
            injected: Injected::default(),
            retransmit_after: None,
        }
    }

    /// The codec under the present plan, for models of `dimension` parameters.
    pub fn chosen_codec(&self, dimension: usize) -> ChosenCodec {
        self.codec.under(&self.schedule, dimension)
    }

    pub(crate) fn check(&self) -> Result<(), NodeError> {
        let nodes = self.schedule.nodes();
        if self.id.index() >= nodes {
            return Err(NodeError::NotInPlan { id: self.id, nodes });
        }
        let dimension = self.initial.len();
        if dimension == 0 || dimension > MAX_DIMENSION {
            return Err(NodeError::Dimension { dimension });
        }
        if let Some(index) = first_unusable(&self.initial) {
            return Err(NodeError::Initial { index, value: self.initial[index] });
        }
        if self.identity.incarnation == 0 {
            return Err(NodeError::Incarnation);
        }
        if self.task.description.len() > MAX_DESCRIPTION {
            return Err(NodeError::Description { bytes: self.task.description.len() });
        }
        if self.heartbeat.is_zero() || self.retransmit_after.is_some_and(|after| after.is_zero()) {
            return Err(NodeError::ZeroInterval);
        }
        if let Some(clip) = self.clip.filter(|clip| !(clip.is_finite() && *clip > 0.0)) {
            return Err(NodeError::Clip { clip });
        }
        if self.rounds.checked_mul(self.schedule.round_length()).is_none() {
            return Err(NodeError::Rounds { rounds: self.rounds });
        }
        Ok(())
    }
}

#[cfg(feature = "injected-bugs")]
impl NodeConfig {
    /// Gives a node a bug.
    pub fn inject(&mut self, bug: crate::injected_bug::InjectedBug) {
        self.injected = Injected::new(Some(bug));
    }
}

/// A reason why a node cannot be made.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum NodeError {
    /// The id is not in the plan.
    #[error("node {id} is not in the plan, which has nodes 0..{nodes}")]
    NotInPlan { id: NodeId, nodes: usize },
    /// There is nothing to average, or too much.
    #[error("the initial vector has {dimension} coordinates; give 1 to {MAX_DIMENSION}")]
    Dimension { dimension: usize },
    /// The initial vector holds an unusable number.
    #[error("coordinate {index} of the initial vector is {value}; give finite numbers up to {MAX_MAGNITUDE:e}")]
    Initial { index: usize, value: f32 },
    /// Incarnations count from 1.
    #[error("incarnation 0 does not exist; the first life of a node is 1")]
    Incarnation,
    /// The task description is too long.
    #[error("the task description has {bytes} bytes; keep it within {MAX_DESCRIPTION}")]
    Description { bytes: usize },
    /// A record that this node cannot go on from.
    #[error(
        "the record belongs to another swarm, plan, task or node: start with an empty records folder, or with the plan \
         and task it was written for"
    )]
    ForeignRecord,
    /// A heartbeat or retransmission interval of zero.
    #[error("heartbeat and retransmission intervals must be longer than zero")]
    ZeroInterval,
    /// A clip that is no bound.
    #[error("steps cannot be clipped at {clip} times the usual one: give a positive number, such as 10, or none")]
    Clip { clip: f64 },
    /// More steps than can be counted.
    #[error("{rounds} rounds have more steps than 64 bits can count; run fewer")]
    Rounds { rounds: u64 },
}
