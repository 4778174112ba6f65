//! Arguments of `mingle run`, and of `join` and `leave`, which start a peer too.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::{NonZero, NonZeroU32};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use libp2p::PeerId;
use mingle_builtin::options::TrainingOptions;
use mingle_peer::training::Criterion;
use mingle_protocol::Durability;

use super::config::CONFIG_ENV;
use super::duration::duration;
use super::{CommunicationArgs, HomeArgs, MediumArgs, OptimizerArgs, PrivacyArgs, SamplesArgs, SumArgs, Switch};
use mingle_net::written_address::{PeerAddress, listen_address, peer_address, socket_address};

/// Arguments of `join`.
#[derive(Args, Clone, Debug)]
pub(crate) struct JoinArgs {
    /// The word that `mingle invite` printed, or - to read it from standard input
    pub(crate) ticket: String,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Arguments of `run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Settings for what no flag says and no variable of the environment [default: config.toml in the home, if there is one]
    #[arg(long, env = CONFIG_ENV, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A peer that is up, such as 10.0.1.5:4717 or /ip4/10.0.1.5/udp/4717/quic-v1; may be given more than once
    #[arg(long, value_name = "ADDR", value_delimiter = ',', value_parser = peer_address)]
    pub(crate) bootstrap: Vec<PeerAddress>,
    /// The plan [default: the one that a bootstrap peer gives, else the one of the last run in this home]
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Peers to leave out of the plan, in a swarm without an operator: all others say the same, follow the same plan, and go on from their models with whole weights
    #[arg(long, value_name = "PEERID,...", value_delimiter = ',')]
    pub(crate) without: Vec<PeerId>,
    /// Addresses to listen on: multiaddresses, or IP:PORT for QUIC and TCP at that port; port 0 takes any that is free
    #[arg(
        long,
        value_name = "ADDR",
        value_delimiter = ',',
        value_parser = listen_address,
        default_values = ["/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0"]
    )]
    pub(crate) listen: Vec<PeerAddress>,
    /// Give up when no bootstrap peer answered with a plan for so long
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration)]
    pub(crate) bootstrap_timeout: Duration,
    /// Begin after so long without the neighbours that have not come, if one has; they can come later. A peer that goes on from its records waits a minute
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = duration)]
    pub(crate) join_timeout: Duration,
    /// Announce this peer's addresses on the local network, and find members there (mDNS)
    #[arg(long, value_enum, default_value_t = Switch::Off, value_name = "ON|OFF")]
    pub(crate) mdns: Switch,
    #[command(flatten)]
    pub(crate) medium: MediumArgs,
    /// The planner of the swarm that this peer operates: a person, or this peer by itself
    #[arg(long, value_enum, default_value_t = Planning::Operator, value_name = "WHO")]
    pub(crate) planning: Planning,
    /// With --planning auto: plan out who was silent for so long, if most others were not; 1h at least, and 15s with --problem
    #[arg(long, default_value = "24h", value_name = "DURATION", value_parser = duration)]
    pub(crate) evict_after: Duration,
    /// With --planning auto: local steps of a round [default: 10 at first, then 5 to 200 by what a step and an exchange take the members]
    #[arg(long, value_name = "N")]
    pub(crate) local_steps: Option<u32>,
    /// Columns, classes and scaling of the data, as `mingle data card` writes them [default: those of the swarm, or else of this peer's own data]
    #[arg(long, value_name = "FILE")]
    pub(crate) card: Option<PathBuf>,
    /// Solve this problem instead of training a model; all peers need the same file, but for what each node wants
    #[arg(long, value_name = "FILE", conflicts_with_all = [OF_BUILT_IN_MODELS, OF_ANY_TRAINING].concat().concat())]
    pub(crate) problem: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sums: SumArgs,
    /// Let another program train, with a model, data and optimizer of its own: attach waits for one to come, a command is started with the peer. With a --problem of training over sums it trains in its rounds (docs/private-training.md)
    #[arg(long, value_name = "attach|COMMAND")]
    pub(crate) trainer: Option<String>,
    /// Serve the trainer at this address too, if it shows the token in trainer-tcp.json in the home: for a container, Windows, another node
    #[arg(long, value_name = "ADDR:PORT", value_parser = socket_address)]
    pub(crate) trainer_tcp: Option<SocketAddr>,
    /// Give up a --trainer COMMAND that has crashed so often, and end with exit code 7: 100 rounds of training or 12 hours make good for one crash
    #[arg(long, default_value = "10", value_name = "N")]
    pub(crate) trainer_crashes: NonZeroU32,
    #[command(flatten)]
    pub(crate) training: TrainingArgs,
    /// The neighbours to wait for in each round: sync, bounded:STALENESS or async
    #[arg(long, default_value = "bounded:4", value_name = "POLICY")]
    pub(crate) wait: String,
    #[command(flatten)]
    pub(crate) communication: CommunicationArgs,
    /// Go on without a late neighbour after at least so long; the deadline adapts upwards to the pace of the rounds
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = duration)]
    pub(crate) deadline: Duration,
    /// Take no more local steps in a round once it has trained for so long; those taken count for more [default: take all]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) time_box: Option<Duration>,
    /// Go on mixing without the training of a round that takes longer; it counts when it comes
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = duration)]
    pub(crate) training_deadline: Duration,
    /// Threads to train on; the model does not depend on it [default: the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Priority of the training: at a low one it takes what other programs leave (Linux)
    #[arg(long, value_enum, default_value_t = PriorityArgument::Normal, value_name = "PRIORITY")]
    pub(crate) priority: PriorityArgument,
    /// When all rounds are done, wait this long at most for neighbours that do not answer
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    pub(crate) shutdown_timeout: Duration,
    /// Send parcels back whose model has a larger norm than this [default: 1000 times that of the first model]
    #[arg(long, value_name = "NORM")]
    pub(crate) max_norm: Option<f64>,
    /// Write what is measured to an event file in this folder, for TensorBoard
    #[arg(long, value_name = "DIR")]
    pub(crate) tensorboard: Option<PathBuf>,
    /// Keep the best model of the run in best.safetensors, by a metric that evaluations measure, such as accuracy, loss or NAME:max
    #[arg(long, value_name = "METRIC[:max|min]")]
    pub(crate) keep_best: Option<Criterion>,
    /// At the end, train once more on this peer's data alone, and show what both come to on its held-out samples: as many steps again
    #[arg(long, value_enum, default_value_t = Switch::Off, num_args = 0..=1, default_missing_value = "on", value_name = "ON|OFF")]
    pub(crate) compare_alone: Switch,
    /// Keep the weight of this peer beyond its process: on writes every step to the disk before any peer is notified of it
    #[arg(long, value_enum, default_value_t = DurabilityName::On)]
    pub(crate) durability: DurabilityName,
    /// Give up what this peer has kept of an earlier run and begin anew, with weight. For all peers, or none
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Begin another run with the model that this peer has kept of an earlier one: by another plan, or with other settings of the training. For all
    /// peers, or none
    #[arg(long = "continue", conflicts_with = "fresh")]
    pub(crate) continues: bool,
    /// Begin a new run with this model, a safetensors file with the tensors of --model or of the trainer. The founder of the swarm, or node 0
    /// of the plan, needs it; the others get it from there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["continues", "problem"])]
    pub(crate) begin_with: Option<PathBuf>,
    /// Write down this peer's activities over time, for `mingle timeline`
    #[arg(long, value_enum, default_value_t = Switch::Off, value_name = "ON|OFF")]
    pub(crate) timeline: Switch,
    /// Most followers (`mingle follow`) that this peer gives its model to; 0 gives it to none
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=256))]
    pub(crate) followers: u16,
    /// Most megabytes a second that this peer sends to all its followers together
    #[arg(long, default_value_t = 16, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) follower_rate: u32,
    /// Show a page for a browser, and metrics, at this address, read only, such as 127.0.0.1:7717 [default: none]
    #[arg(long, value_name = "ADDR:PORT", value_parser = socket_address)]
    pub(crate) http: Option<SocketAddr>,
    /// Stop when standard input ends: for programs that start peers and must not leave one behind
    #[arg(long)]
    pub(crate) stop_with_stdin: bool,
    /// `true` if the peer is started only to leave.
    #[arg(skip)]
    pub(crate) leaves: bool,
    /// The settings that the user chose.
    #[arg(skip)]
    pub(crate) given: Given,
}

impl RunArgs {
    /// Returns `true` if the run is to be compared with training alone.
    pub(crate) fn compares_alone(&self) -> bool {
        self.compare_alone == Switch::On
    }
}

/// Options of `run` about any training, built-in or not; without a meaning for a peer that solves a problem.
const OF_ANY_TRAINING: &[&[&str]] = &[
    &["rounds", "evaluate_every", "wait", "join_timeout", "deadline", "time_box", "training_deadline", "priority"],
    &["shutdown_timeout", "max_norm", "keep_best", "tensorboard", "durability", "timeline"],
    &["followers", "follower_rate"],
    &PrivacyArgs::NAMES,
    &CommunicationArgs::NAMES,
    &MediumArgs::NAMES,
];

/// Options of `run` about the built-in models; without a meaning where another program trains or a problem is solved.
pub(crate) const OF_BUILT_IN_MODELS: &[&[&str]] = &[
    &[
        "card",
        "model",
        "split",
        "augment",
        "learning_rate",
        "seed",
        "device",
        "evaluate_samples",
        "personal",
        "threads",
    ],
    &["compare_alone"],
    &SamplesArgs::NAMES,
    &OptimizerArgs::NAMES,
];

/// Options of the training.
#[derive(Args, Clone, Debug)]
pub(crate) struct TrainingArgs {
    #[command(flatten)]
    pub(crate) samples: SamplesArgs,
    /// softmax, mlp, mlp:hidden=N, cnn, resnet-lite, or for text gpt:layers=N,heads=N,width=N,context=N
    #[arg(long, default_value = "mlp")]
    pub(crate) model: String,
    /// Train on this node's part of the data: iid, label-sorted or dirichlet:ALPHA [default: all of it]
    #[arg(long, value_name = "SPLIT")]
    pub(crate) split: Option<String>,
    /// Rounds to train; all peers must agree. The default takes some minutes with a small model, and `mingle stop` ends it
    /// at any time
    #[arg(long, default_value_t = 20_000)]
    pub(crate) rounds: u64,
    /// Augmentation of training images, each time anew: none, flip, crop:N or flip,crop:N
    #[arg(long, default_value = "none")]
    pub(crate) augment: String,
    // Before the learning rate, whose default depends on it.
    #[command(flatten)]
    pub(crate) optimizer: OptimizerArgs,
    /// Step size; unless given, 0.001 with --optimizer adamw
    #[arg(long, default_value_t = 0.1)]
    pub(crate) learning_rate: f64,
    /// Seed of the initial model, the split and the minibatches; all peers must agree
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Where to compute: cpu, ndarray or wgpu
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
    /// Evaluate on the held-out test set each N rounds
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub(crate) evaluate_every: u64,
    /// Judge models by the first N samples of that test set [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) evaluate_samples: Option<NonZero<usize>>,
    #[command(flatten)]
    pub(crate) privacy: PrivacyArgs,
    /// Tensors that stay with each peer and are never mixed, by their names in the model file, such as 'fc2.*,norm*'; all peers must agree
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) personal: Vec<String>,
}

impl From<TrainingArgs> for TrainingOptions {
    fn from(arguments: TrainingArgs) -> Self {
        Self {
            model: arguments.model,
            split: arguments.split,
            rounds: arguments.rounds,
            augment: arguments.augment,
            optimizer: arguments.optimizer.into(),
            learning_rate: arguments.learning_rate,
            seed: arguments.seed,
            device: arguments.device,
            evaluate_every: arguments.evaluate_every,
            evaluate_samples: arguments.evaluate_samples,
            privacy: arguments.privacy.into(),
            personal: arguments.personal,
            ..arguments.samples.into()
        }
    }
}

/// Settings that the user chose: by a flag, the environment, the configuration file or in the last run of that home.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// Keys of the settings.
    pub(crate) keys: BTreeSet<String>,
    /// Settings that the next run in the home keeps, as the command line writes their values.
    pub(crate) options: BTreeMap<String, Vec<String>>,
}

/// The author of a swarm's plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Planning {
    /// A person, with `plan make` and `plan apply`.
    Operator,
    /// The operator's peer: bearers of invitations are planned in, peers that are gone are planned out.
    Auto,
}

/// Priority of the training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PriorityArgument {
    /// As urgent as everything else on this machine.
    Normal,
    /// Other programs, and what this peer has to say to others, come first (Linux).
    Low,
}

impl From<PriorityArgument> for mingle_peer::priority::Priority {
    fn from(priority: PriorityArgument) -> Self {
        match priority {
            PriorityArgument::Normal => Self::Normal,
            PriorityArgument::Low => Self::Low,
        }
    }
}

/// Setting of whether a peer keeps records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityName {
    /// A peer that is killed goes on where it was
    On,
    /// A peer that is killed loses the weight it held
    Off,
}

impl From<DurabilityName> for Durability {
    fn from(name: DurabilityName) -> Self {
        match name {
            DurabilityName::On => Self::On,
            DurabilityName::Off => Self::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    #[test]
    fn run_without_flags_trains_what_the_library_trains_without_options() {
        let matches = TrainingArgs::augment_args(clap::Command::new("run")).get_matches_from(["run"]);
        let arguments = TrainingArgs::from_arg_matches(&matches).expect("all of them have defaults");
        assert_eq!(TrainingOptions::from(arguments), TrainingOptions::default());
    }
}
