//! The configuration of a simulated swarm.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::network::NetworkModel;
use crate::codec::Codec;
use crate::config::{Durability, Robust, WaitPolicy};
use crate::injected_bug::InjectedBug;
use crate::overlap::TrainingOverlap;
use crate::schedule::{NodeId, Schedule};

/// Trains one node for one round: `(node, round, z, steps)` to the change of z, in as many steps as its time allows.
pub type TrainFunction = Box<dyn FnMut(NodeId, u64, &[f32], u32) -> Vec<f32>>;

/// The configuration of a simulation.
pub struct SwarmConfig {
    /// The plan.
    pub schedule: Arc<Schedule>,
    /// The initial ratio of every node, `[nodes][dimension]`.
    pub initial: Vec<Vec<f32>>,
    /// Periods to run.
    pub rounds: u64,
    /// The encoding of parcels.
    pub codec: Codec,
    /// The largest norm of a ratio that nodes take from each other.
    pub largest_norm: Option<f64>,
    /// The treatment of ratios that are far from a node's own.
    pub robust: Robust,
    /// The durability of nodes: with `On`, they keep records on simulated disks.
    pub durability: Durability,
    /// A bug in every node, to see whether it is found. Refused where bugs are not [built in](InjectedBug::BUILT_IN).
    pub injected_bug: Option<InjectedBug>,
    /// Nodes with another bug in place of that one.
    pub injected_in: BTreeMap<NodeId, InjectedBug>,
    /// Shortest and longest time of a write.
    pub write_time: (Duration, Duration),
    /// The wait of nodes for their in-neighbours.
    pub policy: WaitPolicy,
    /// The delays and losses of the network.
    pub network: NetworkModel,
    /// Seed of every random decision.
    pub seed: u64,
    /// Retransmission timeout; needed where the network loses messages.
    pub retransmit_after: Option<Duration>,
    /// The longest silence of a node on a link. Where messages are lost it is also the time after which a lost
    /// statement is repeated.
    pub heartbeat: Duration,
    /// A finished node's wait for neighbours that do not answer.
    pub drain_deadline: Duration,
    /// Shortest and longest time that all local steps of a round take.
    pub training_time: (Duration, Duration),
    /// Nodes whose training takes this many times as long.
    pub slowness: BTreeMap<NodeId, u32>,
    /// The time for a node's training in a round.
    pub time_box: Option<Duration>,
    /// Set when nodes that are slower than their neighbours take fewer local steps
    /// ([`NodeConfig::keeps_up`](crate::NodeConfig::keeps_up)).
    pub keeps_up: bool,
    /// Training of the next round while the present one is mixed.
    pub overlap: TrainingOverlap,
    /// Steps longer than this many usual ones are scaled down.
    pub clip: Option<f64>,
    /// The local training.
    pub trainer: TrainFunction,
}

impl SwarmConfig {
    /// Puts the swarm on a network that loses and duplicates messages, with retransmission.
    #[must_use]
    pub fn over_datagrams(self, drop: f64, duplicate: f64) -> Self {
        Self {
            network: NetworkModel::datagrams(drop, duplicate),
            retransmit_after: Some(Duration::from_millis(250)),
            heartbeat: Duration::from_secs(1),
            ..self
        }
    }

    /// Pure averaging over streams, synchronous, seed 0.
    pub fn averaging(schedule: Arc<Schedule>, initial: Vec<Vec<f32>>, rounds: u64) -> Self {
        Self {
            schedule,
            initial,
            rounds,
            codec: Codec::default(),
            largest_norm: None,
            robust: Robust::default(),
            durability: Durability::default(),
            injected_bug: None,
            injected_in: BTreeMap::new(),
            write_time: (Duration::from_micros(200), Duration::from_millis(5)),
            policy: WaitPolicy::Sync,
            network: NetworkModel::streams(),
            seed: 0,
            retransmit_after: None,
            heartbeat: Duration::from_secs(5),
            drain_deadline: Duration::from_secs(30),
            training_time: (Duration::from_millis(1), Duration::from_millis(50)),
            slowness: BTreeMap::new(),
            time_box: None,
            keeps_up: false,
            overlap: TrainingOverlap::default(),
            clip: Some(10.0),
            trainer: Box::new(|_, _, z, _| vec![0.0; z.len()]),
        }
    }
}

impl fmt::Debug for SwarmConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SwarmConfig")
            .field("nodes", &self.schedule.nodes())
            .field("rounds", &self.rounds)
            .field("policy", &self.policy)
            .field("network", &self.network)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
