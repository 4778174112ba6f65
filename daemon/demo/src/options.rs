//! What somebody says of a demo.

use std::path::PathBuf;

use mingle_builtin::options::TrainingOptions;
use mingle_peer::{Error, ErrorKind, Result};
use mingle_protocol::{Codec, Robust};

/// More processes than this on one machine would measure the machine.
pub const MAX_PEERS: usize = 256;

/// A swarm that trains a model.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// Peer processes.
    pub peers: usize,
    /// What they train, and how. Its split is how the data lie on them.
    pub training: TrainingOptions,
    /// The design of the plan, as in `mingle plan make`.
    pub method: String,
    /// Gradient steps per round.
    pub local_steps: u32,
    /// Which peer's process dies when, each as PEER@ROUND.
    pub kills: Vec<String>,
    /// Whether a killed peer is started again at once.
    pub restart: bool,
    /// Whether peers keep their weight on disk; without a word, they do where killed ones come back.
    pub durability: Option<bool>,
    /// Whether to draw what each peer does when.
    pub timeline: bool,
    /// Whom to wait for in each round: sync, bounded:STALENESS or async.
    pub wait: String,
    /// How peers encode the models that they send.
    pub codec: Codec,
    /// What peers do with models that are far from their own.
    pub robust: Robust,
    /// Whether each peer alone, and all data in one place, are trained afterwards, to compare with.
    pub comparison: bool,
    /// The folder of the demo. What an earlier one left there is replaced.
    pub output: PathBuf,
}

impl DemoOptions {
    /// Whether the peers write their weight to disk. A demo in which nobody comes back has no use for that.
    pub(crate) fn keeps_records(&self) -> bool {
        self.durability.unwrap_or(self.restart)
    }
}

/// A swarm that solves a problem.
#[derive(Clone, Debug)]
pub struct ProblemOptions {
    /// Peer processes.
    pub peers: usize,
    /// Rounds to learn, where the problem has rounds.
    pub rounds: Option<u64>,
    /// The design of the plan, as in `mingle plan make`.
    pub method: String,
    /// Of topology, plan and data.
    pub seed: u64,
    /// The folder of the demo. What an earlier one left there is replaced.
    pub output: PathBuf,
}

/// The program that each peer is a process of.
#[derive(Clone, Debug)]
pub struct PeerProgram {
    /// Its file: `mingle`, or a program that takes the same arguments.
    pub file: PathBuf,
    /// Variables of the environment that its processes do not get, because they hold settings of another peer.
    pub hidden_variables: Vec<String>,
}

/// Refuses a number of peers that no demo has.
///
/// # Errors
/// The number, and what it may be.
pub fn check_peers(peers: usize) -> Result {
    if (2..=MAX_PEERS).contains(&peers) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::BadInput, format!("--peers {peers}: a demo has between 2 and {MAX_PEERS} peers")))
}
