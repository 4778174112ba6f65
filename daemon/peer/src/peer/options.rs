//! Options of a peer, chosen by its owner.

use std::net::SocketAddr;
use std::time::Duration;

use libp2p::{Multiaddr, PeerId};
use mingle_net::multicast::{AirRate, PayloadMedium, SlotChoice};
use mingle_planner::Plan;
use mingle_protocol::{CodecChoice, Durability, MomentumAcrossRounds, Robust, TrainingOverlap, WaitPolicy};

use crate::follow::serving::FollowerLimits;
use crate::membership::{AutomaticPlanning, EndWish};
use crate::priority::Priority;
use crate::records::Ending;
use crate::solving::SumPolicy;
use crate::training::Criterion;

/// Options of a peer. [`Default`] is the same as `mingle run` without flags.
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// Addresses to listen on; port 0 takes any free port.
    pub listen: Vec<Multiaddr>,
    /// Peers that are up, to ask for the plan and for others.
    pub bootstrap: Vec<Multiaddr>,
    /// Timeout for an answer with a plan, after which the peer gives up.
    pub bootstrap_timeout: Duration,
    /// The medium of payloads.
    pub medium: PayloadMedium,
    /// The rate of packets of multicast; `None` adapts it to what receivers lose.
    pub air_rate: Option<AirRate>,
    /// The choice about slots of plans for a shared channel.
    pub slots: SlotChoice,
    /// `true` to announce on the local network where this peer listens, and to find members there.
    pub mdns: bool,
    /// The plan; otherwise it is that of a bootstrap peer, or that of the last run in the home.
    pub plan: Option<GivenPlan>,
    /// Peers to leave out of the plan of a swarm without an operator. All others that leave out the same ones follow the same
    /// plan, and go on from their models.
    pub without: Vec<PeerId>,
    /// Settings of automatic planning, for a swarm's operator that makes plans by itself.
    pub automatic_planning: Option<AutomaticPlanning>,
    /// Training begins after this time without the neighbours that are missing, if at least one has come. A peer that
    /// goes on from its records waits a minute instead: any neighbour might know a later state of it than its disk.
    pub join_timeout: Duration,
    /// Policy of waiting for neighbours in each round.
    pub wait: WaitPolicy,
    /// Codec of the models that this peer sends.
    pub codec: CodecChoice,
    /// Shortest time after which it goes on without a late neighbour.
    pub deadline: Duration,
    /// Time limit of a round's training: no local step begins later.
    pub time_box: Option<Duration>,
    /// Timeout after which it goes on mixing without a round's training; a late change counts as that of a later round.
    pub training_deadline: Duration,
    /// When all rounds are done, the longest wait for neighbours that do not answer.
    pub shutdown_timeout: Duration,
    /// Parcels whose model has a larger norm are sent back. `None`: 1000 times the norm of the first model.
    pub max_norm: Option<f64>,
    /// Treatment of models that are far from this peer's own; other peers may have another setting.
    pub robust: Robust,
    /// Momentum across rounds, over the mixed model; all peers need the same.
    pub momentum_across_rounds: MomentumAcrossRounds,
    /// Training of the next round while the present one is mixed; all peers need the same.
    pub overlap: TrainingOverlap,
    /// `On` if the weight of this peer outlives its process.
    pub durability: Durability,
    /// `true` to discard what the home has kept of an earlier run.
    pub fresh: bool,
    /// The run in the home where that is over and its owner chose no number of rounds: members are asked for the swarm's,
    /// and with a larger one the run goes on.
    pub longer_than: Option<Ending>,
    /// `true` if a run of another plan or task begins with the model that the home has kept, and the state of its
    /// training.
    pub continues: bool,
    /// `true` to start only to hand over the weight that the home holds.
    pub leaves: bool,
    /// Rounds between two evaluations.
    pub evaluate_every: u64,
    /// Criterion by which the best model of the run is kept, besides the last one.
    pub keep_best: Option<Criterion>,
    /// The choice between masked and plain sums of a problem, or of learning in rounds; other peers need the same.
    pub sums: SumPolicy,
    /// Priority of training.
    pub priority: Priority,
    /// `true` to write a timeline of the peer's activities.
    pub timeline: bool,
    /// Limits on followers, which get the model and take no part.
    pub followers: FollowerLimits,
    /// The wish of this peer's user for the end of the swarm's training.
    pub end_wish: EndWish,
    /// Address of the page for browsers and of the metrics.
    pub http: Option<SocketAddr>,
}

/// A plan given to this peer.
#[derive(Clone, Debug)]
pub struct GivenPlan {
    /// The plan.
    pub plan: Plan,
    /// Origin of the plan, for people.
    pub origin: String,
}

impl Default for PeerOptions {
    fn default() -> Self {
        let any = |text: &str| text.parse().ok();
        Self {
            listen: ["/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0"].into_iter().filter_map(any).collect(),
            bootstrap: Vec::new(),
            bootstrap_timeout: Duration::from_secs(30),
            medium: PayloadMedium::Unicast,
            air_rate: None,
            slots: SlotChoice::Auto,
            mdns: false,
            plan: None,
            without: Vec::new(),
            automatic_planning: None,
            join_timeout: Duration::from_secs(60),
            wait: WaitPolicy::default(),
            codec: CodecChoice::Auto,
            deadline: Duration::from_secs(2),
            time_box: None,
            training_deadline: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(10),
            max_norm: None,
            robust: Robust::Off,
            momentum_across_rounds: MomentumAcrossRounds::Off,
            overlap: TrainingOverlap::Off,
            durability: Durability::On,
            fresh: false,
            longer_than: None,
            continues: false,
            leaves: false,
            evaluate_every: 20,
            keep_best: None,
            sums: SumPolicy::default(),
            priority: Priority::Normal,
            timeline: false,
            followers: FollowerLimits::default(),
            end_wish: EndWish::default(),
            http: None,
        }
    }
}
