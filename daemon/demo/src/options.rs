//! The options of demos.

use std::path::PathBuf;

use mingle_builtin::options::TrainingOptions;
use mingle_net::multicast::{AirRate, MulticastOptions, PayloadMedium, SlotChoice};
use mingle_peer::{Error, ErrorKind, Result};
use mingle_protocol::{CodecChoice, MomentumAcrossRounds, Robust, TrainingOverlap};

/// The most peers of a demo: with more processes, a machine measures itself.
pub const MAX_PEERS: usize = 256;

/// The options of a swarm that trains a model.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// Peer processes.
    pub peers: usize,
    /// The model, the data and their training. Its split deals out the data.
    pub training: TrainingOptions,
    /// The design of the plan, as in `mingle plan make`.
    pub method: String,
    /// Gradient steps per round.
    pub local_steps: u32,
    /// The kills of peer processes, each as PEER@ROUND.
    pub kills: Vec<String>,
    /// `true` if a killed peer is started again at once.
    pub restart: bool,
    /// `true` if peers keep their weight on disk; if not given, they do where killed ones are restarted.
    pub durability: Option<bool>,
    /// `true` to draw a timeline of all peers.
    pub timeline: bool,
    /// The neighbours to wait for in each round: sync, bounded:STALENESS or async.
    pub wait: String,
    /// The encoding of models in parcels.
    pub codec: CodecChoice,
    /// The medium of payloads; multicast without an interface is that of the loopback one.
    pub medium: PayloadMedium,
    /// The rate of packets of multicast.
    pub air_rate: Option<AirRate>,
    /// The choice about slots of the plan.
    pub slots: SlotChoice,
    /// The treatment of models that are far from a peer's own.
    pub robust: Robust,
    /// Momentum across rounds.
    pub momentum_across_rounds: MomentumAcrossRounds,
    /// Training of the next round while the present one is mixed.
    pub overlap: TrainingOverlap,
    /// `true` to train the baselines afterwards: each peer alone, and all data in one place.
    pub comparison: bool,
    /// The folder of the demo. Files of an earlier one are replaced.
    pub output: PathBuf,
}

impl DemoOptions {
    /// A demo of so many peers with this training: over the plan that fits best, in step, without kills and comparison.
    #[must_use]
    pub fn new(peers: usize, training: TrainingOptions, output: PathBuf) -> Self {
        Self {
            peers,
            training,
            method: "auto".to_owned(),
            local_steps: 1,
            kills: Vec::new(),
            restart: false,
            durability: None,
            timeline: false,
            wait: "sync".to_owned(),
            codec: CodecChoice::default(),
            medium: PayloadMedium::Unicast,
            air_rate: None,
            slots: SlotChoice::Auto,
            robust: Robust::default(),
            momentum_across_rounds: MomentumAcrossRounds::default(),
            overlap: TrainingOverlap::default(),
            comparison: false,
            output,
        }
    }

    /// The medium of its peers: on this machine, all of them are reached over the loopback interface.
    pub(crate) fn medium_of_peers(&self) -> PayloadMedium {
        match &self.medium {
            PayloadMedium::Multicast(MulticastOptions { group, interface: None }) => {
                PayloadMedium::Multicast(MulticastOptions { group: *group, interface: Some("127.0.0.1".to_owned()) })
            }
            medium => medium.clone(),
        }
    }

    /// Returns `true` if the peers keep their weight on disk. A demo without restarts has no use for that.
    pub(crate) fn keeps_records(&self) -> bool {
        self.durability.unwrap_or(self.restart)
    }
}

/// The options of a swarm that solves a problem.
#[derive(Clone, Debug)]
pub struct ProblemOptions {
    /// Peer processes.
    pub peers: usize,
    /// Rounds to learn, where the problem has rounds.
    pub rounds: Option<u64>,
    /// The design of the plan, as in `mingle plan make`.
    pub method: String,
    /// The seed of topology, plan and data.
    pub seed: u64,
    /// The folder of the demo. Files of an earlier one are replaced.
    pub output: PathBuf,
}

/// The program of each peer's process.
#[derive(Clone, Debug)]
pub struct PeerProgram {
    /// Its file: `mingle`, or a program that takes the same arguments.
    pub file: PathBuf,
    /// Environment variables that are removed for its processes, because they hold settings of another peer.
    pub hidden_variables: Vec<String>,
}

/// Checks the number of peers of a demo.
///
/// # Errors
/// The number is not within its bounds.
pub fn check_peers(peers: usize) -> Result {
    if (2..=MAX_PEERS).contains(&peers) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::BadInput, format!("--peers {peers}: a demo has between 2 and {MAX_PEERS} peers")))
}
