//! The status of a peer at any moment: one snapshot, shown as JSON, as text, as metrics, on a page and on a terminal.

mod board;
mod multicast;
mod neighbour;
mod receiving;

use std::collections::BTreeMap;
use std::fmt;

use mingle_net::traffic::ParameterEncoding;
use mingle_privacy::PrivacySpending;
use mingle_training::{MetricDirection, Metrics, MomentumTaken};
use serde::{Deserialize, Serialize};

use crate::overlap::OverlapTaken;

pub use board::{StatusBoard, StatusView};
pub use multicast::{LinkMulticast, MulticastStatus};
pub use neighbour::{IncomingLink, LinkState, NeighbourStatus, OutgoingLink, WeightAccount};
pub use receiving::RobustReceiving;

/// The version of the snapshot.
pub const SCHEMA: &str = "mingle.status/1";

/// A snapshot of one peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of the format.
    pub schema: String,
    /// The release of the program.
    pub version: String,
    /// The state of the peer.
    pub state: PeerState,
    /// Milliseconds since the process started, when this was taken.
    pub at_ms: u64,
    /// Its PeerId.
    pub peer: String,
    /// Its addresses, each ending in its PeerId.
    pub addresses: Vec<String>,
    /// Its node in the plan.
    pub node: Option<usize>,
    /// The plan, once it is known.
    pub plan: Option<PlanFacts>,
    /// The number of pending peers here: they have an invitation and wait for a plan that names them.
    #[serde(default)]
    pub waiting: usize,
    /// Followers that get the model from this peer at present.
    #[serde(default)]
    pub followers: usize,
    /// A description of the model and its training.
    pub task: Option<String>,
    /// The device that computes: the adapter, by its name.
    #[serde(default)]
    pub device: Option<String>,
    /// The attached trainer, where another program trains for this peer.
    #[serde(default)]
    pub trainer: Option<TrainerStatus>,
    /// Set once all neighbours were up, or the wait for missing ones was over.
    pub joined: bool,
    /// Rounds done.
    pub round: u64,
    /// Rounds wanted.
    pub rounds: u64,
    /// Seconds that the rounds still to do will take, at the pace of the last ones.
    pub eta_s: Option<f64>,
    /// The push-sum weight.
    pub weight: Weight,
    /// The last evaluation on the held-out test set.
    pub evaluation: Option<Evaluated>,
    /// Seconds that a local step takes: the median over the last rounds.
    #[serde(default)]
    pub local_step_s: Option<f64>,
    /// Seconds that an exchange takes: a model on the slowest link from a neighbour, with the round trip.
    #[serde(default)]
    pub exchange_s: Option<f64>,
    /// Mean loss over the last local steps; cross-entropy in nats for a classification.
    pub train_loss: Option<f64>,
    /// The privacy spent, where changes are private.
    #[serde(default)]
    pub privacy: Option<PrivacySpending>,
    /// The residual where a problem is solved: how far the last checked iteration moved the peer that moved most.
    #[serde(default)]
    pub residual: Option<f64>,
    /// The duality gap where a robust model is solved: no model within reach is better by more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    /// Relative RMS distance to the models received in the last round that received any.
    pub disagreement: Option<f64>,
    /// The clipping of other peers' models, where models are clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robust: Option<RobustReceiving>,
    /// The factor by which disagreement changes in a round.
    pub contraction: Contraction,
    /// Bytes written to all links since the process began.
    pub sent_bytes: u64,
    /// Bytes read from all links since the process began.
    pub received_bytes: u64,
    /// The encoding of parameters on the links, where a model is trained.
    #[serde(default)]
    pub encoding: Option<ParameterEncoding>,
    /// Payloads by multicast, where a group is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multicast: Option<MulticastStatus>,
    /// The momentum across rounds, where a model is trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub momentum_across_rounds: Option<MomentumTaken>,
    /// Training of the next round while the present one is mixed; `None` where that is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapTaken>,
    /// `true` if its weight outlives its process.
    pub durable: bool,
    /// The incarnation of the peer.
    pub incarnation: u64,
    /// Inputs refused since the process began, by reason. Sound neighbours send some too.
    pub refusals: BTreeMap<String, u64>,
    /// The neighbours of this peer, by node.
    pub neighbours: Vec<NeighbourStatus>,
}

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerState {
    /// It looks for its plan and reads its data.
    Starting,
    /// It waits for the program that trains for it.
    WaitingForTrainer,
    /// It waits for a plan of its swarm that names it.
    WaitingForPlan,
    /// It waits for a model of the members of its plan, to begin with.
    WaitingForModel,
    /// It waits until all its neighbours are up.
    Waiting,
    /// It takes local steps.
    Training,
    /// It solves a problem with the others.
    Solving,
    /// It waits for neighbours' parcels, or until they have taken its own.
    WaitingForNeighbours,
    /// All its rounds are done, or it was asked to stop: it hands over the parcels that it has split off.
    Draining,
    /// All its rounds are done and its files are written.
    Done,
    /// It was stopped before all rounds were done, and its files are written.
    Stopped,
    /// It ended with an error.
    Failed,
}

impl PeerState {
    /// Returns `true` while the peer trains and mixes.
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Training | Self::WaitingForNeighbours)
    }
}

/// Facts about the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanFacts {
    /// BLAKE3 of its canonical bytes.
    pub hash: String,
    /// The method that made it.
    pub method: String,
    /// The number of its peers.
    pub nodes: usize,
    /// The source that it came from.
    pub origin: String,
    /// Local steps of a round; 0 where the peers only average.
    #[serde(default)]
    pub local_steps: u32,
}

/// A push-sum weight, at the end of the last round or of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Weight {
    /// The weight in units of 2^-40.
    pub units: u64,
    /// w: 1 on average over the swarm.
    pub value: f64,
    /// w*: the weight of this node at this point of the period in a settled swarm.
    pub stationary: Option<f64>,
    /// w / w*: about 1 in a settled swarm.
    pub share: Option<f64>,
}

impl Weight {
    /// A weight in units, where a settled swarm has `stationary`, which is not finite where it is unknown.
    ///
    /// ```
    /// use mingle_status::status::Weight;
    /// assert_eq!(Weight::of(1 << 39, 0.25).share, Some(2.0));
    /// assert_eq!(Weight::of(1 << 40, 0.0).share, None);
    /// ```
    pub fn of(units: u64, stationary: f64) -> Self {
        let value = mingle_home::units::weight(units);
        let stationary = Some(stationary).filter(|stationary| stationary.is_finite());
        let share = stationary.filter(|stationary| *stationary > 0.0).map(|stationary| value / stationary);
        Self { units, value, stationary, share }
    }
}

/// The program that trains for a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainerStatus {
    /// A description of the program; none while there is none.
    pub attached: Option<String>,
}

/// An evaluation on the held-out test set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// The round after which it was made.
    pub round: u64,
    /// The metrics, by name.
    pub metrics: Metrics,
    /// The better direction of those metrics whose name determines it.
    #[serde(default)]
    pub directions: BTreeMap<String, MetricDirection>,
}

impl Evaluated {
    /// An evaluation with these metrics after a round.
    pub fn new(round: u64, metrics: Metrics) -> Self {
        let direction = |(name, _): (&str, f64)| Some((name.to_owned(), MetricDirection::of(name)?));
        let directions = metrics.iter().filter_map(direction).collect();
        Self { round, metrics, directions }
    }
}

/// The factor by which disagreement changes in a round: below 1 the peers approach each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contraction {
    /// Fitted to the last rounds. Training pulls the peers apart again: the factor settles at 1 once both balance.
    pub observed: Option<f64>,
    /// The factor of the plan's mixing alone in the long run, by its |lambda_2|.
    pub forecast: Option<f64>,
}

impl Status {
    /// The status of a peer that has just started.
    pub fn starting(peer: String) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: PeerState::Starting,
            at_ms: 0,
            peer,
            addresses: Vec::new(),
            node: None,
            plan: None,
            waiting: 0,
            followers: 0,
            task: None,
            device: None,
            trainer: None,
            joined: false,
            round: 0,
            rounds: 0,
            eta_s: None,
            weight: Weight::default(),
            evaluation: None,
            train_loss: None,
            local_step_s: None,
            exchange_s: None,
            privacy: None,
            residual: None,
            gap: None,
            disagreement: None,
            robust: None,
            contraction: Contraction::default(),
            sent_bytes: 0,
            received_bytes: 0,
            encoding: None,
            multicast: None,
            momentum_across_rounds: None,
            overlap: None,
            durable: false,
            incarnation: 0,
            refusals: BTreeMap::new(),
            neighbours: Vec::new(),
        }
    }

    /// The number of neighbours that are up.
    pub fn neighbours_up(&self) -> usize {
        self.neighbours.iter().filter(|neighbour| neighbour.state == LinkState::Up).count()
    }
}

impl PeerState {
    /// Every state.
    pub const ALL: [Self; 12] = [
        Self::Starting,
        Self::WaitingForTrainer,
        Self::WaitingForPlan,
        Self::WaitingForModel,
        Self::Waiting,
        Self::Training,
        Self::Solving,
        Self::WaitingForNeighbours,
        Self::Draining,
        Self::Done,
        Self::Stopped,
        Self::Failed,
    ];

    /// Returns `true` if the peer has ended, or is about to.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Stopped | Self::Failed)
    }

    /// The name in JSON and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::WaitingForTrainer => "waiting_for_trainer",
            Self::WaitingForPlan => "waiting_for_plan",
            Self::WaitingForModel => "waiting_for_model",
            Self::Waiting => "waiting",
            Self::Training => "training",
            Self::Solving => "solving",
            Self::WaitingForNeighbours => "waiting_for_neighbours",
            Self::Draining => "draining",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for PeerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WaitingForNeighbours => "waiting for neighbours",
            Self::WaitingForTrainer => "waiting for its trainer",
            Self::WaitingForPlan => "waiting for a plan",
            Self::WaitingForModel => "waiting for a model",
            other => other.name(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_names_of_states_are_those_in_json() {
        for state in PeerState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        for state in LinkState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
    }

    #[test]
    fn a_snapshot_reads_back_as_it_was_written() {
        let mut status = Status::starting("12D3KooWExample".to_owned());
        status.disagreement = Some(0.25);
        status.refusals.insert("other_life".to_owned(), 3);
        let text = serde_json::to_string(&status).unwrap();
        assert!(text.starts_with(r#"{"schema":"mingle.status/1""#), "{text}");
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
    }
}
