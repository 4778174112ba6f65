//! How a peer runs: what its owner may choose.

use std::net::SocketAddr;
use std::time::Duration;

use libp2p::Multiaddr;
use mingle_planner::Plan;
use mingle_protocol::{Codec, Durability, Robust, WaitPolicy};

use crate::membership::AutomaticPlanning;
use crate::priority::Priority;
use crate::training::Criterion;

/// How a peer runs. [`Default`] is what `mingle run` does without flags.
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// Addresses to listen on; port 0 takes any that is free.
    pub listen: Vec<Multiaddr>,
    /// Peers that are up, to ask for the plan and for others.
    pub bootstrap: Vec<Multiaddr>,
    /// The peer gives up when none of them answered with a plan for so long.
    pub bootstrap_timeout: Duration,
    /// Whether to tell the local network where this peer listens, and to find members there.
    pub mdns: bool,
    /// The plan; otherwise it is that of a bootstrap peer, or that of the last run in the home.
    pub plan: Option<GivenPlan>,
    /// The operator of a swarm makes its plans by itself.
    pub automatic_planning: Option<AutomaticPlanning>,
    /// Training begins after so long without the neighbours that have not come, if one has. A peer that goes on from its records waits a
    /// minute instead: any of them might know more of it than its disk does.
    pub join_timeout: Duration,
    /// Whom to wait for in each round.
    pub wait: WaitPolicy,
    /// How this peer encodes the models that it sends.
    pub codec: Codec,
    /// It goes on without a late neighbour after at least so long.
    pub deadline: Duration,
    /// No local step of a round begins later.
    pub time_box: Option<Duration>,
    /// It goes on mixing without the training of a round that takes longer; what comes later is that of a later round.
    pub training_deadline: Duration,
    /// When all rounds are done, it waits so long at most for neighbours that do not answer.
    pub shutdown_timeout: Duration,
    /// Parcels whose model has a larger norm are sent back. None: 1000 times the norm of the first model.
    pub max_norm: Option<f64>,
    /// What this peer does with models that are far from its own; others need not do the same.
    pub robust: Robust,
    /// Whether the weight of this peer outlives its process.
    pub durability: Durability,
    /// Give up what the home has kept of an earlier run.
    pub fresh: bool,
    /// A run of another plan or task begins with the model that the home has kept, and the state of its training.
    pub continues: bool,
    /// Only come to hand over what the home holds.
    pub leaves: bool,
    /// Rounds between two evaluations.
    pub evaluate_every: u64,
    /// Keep the best model of the run by this, beside the last one.
    pub keep_best: Option<Criterion>,
    /// How urgent training is.
    pub priority: Priority,
    /// Whether to write down what the peer does when.
    pub timeline: bool,
    /// Where to show a page for a browser, and metrics.
    pub http: Option<SocketAddr>,
}

/// A plan that this peer was given.
#[derive(Clone, Debug)]
pub struct GivenPlan {
    /// The plan.
    pub plan: Plan,
    /// Where it came from, for people.
    pub origin: String,
}

impl Default for PeerOptions {
    fn default() -> Self {
        let any = |text: &str| text.parse().ok();
        Self {
            listen: ["/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0"].into_iter().filter_map(any).collect(),
            bootstrap: Vec::new(),
            bootstrap_timeout: Duration::from_secs(30),
            mdns: false,
            plan: None,
            automatic_planning: None,
            join_timeout: Duration::from_secs(60),
            wait: WaitPolicy::default(),
            codec: Codec::F32,
            deadline: Duration::from_secs(2),
            time_box: None,
            training_deadline: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(10),
            max_norm: None,
            robust: Robust::Off,
            durability: Durability::On,
            fresh: false,
            continues: false,
            leaves: false,
            evaluate_every: 20,
            keep_best: None,
            priority: Priority::Normal,
            timeline: false,
            http: None,
        }
    }
}
