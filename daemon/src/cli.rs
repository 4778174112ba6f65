//! The command line: what can be asked of `mingle`, and the words for it.

mod bench;
mod care;
mod config;
mod data;
mod documents;
mod fault_test;
mod model_files;
mod plan;
mod simulation;
mod solving;
mod topology;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::ArgPredicate;
use clap::{Args, Parser, Subcommand, ValueEnum};
use libp2p::Multiaddr;
use mingle_protocol::{Codec, Durability};

use crate::config::Remembered;

pub(crate) use bench::{BenchCommand, BenchSolversArgs, BenchWireArgs};
pub(crate) use care::{BugreportArgs, DoctorArgs};
pub(crate) use config::{ConfigCheckArgs, ConfigCommand, ConfigPathArgs, ConfigShowArgs};
pub(crate) use data::{DataCardArgs, DataCommand};
pub(crate) use documents::{CompletionsArgs, ManArgs};
pub(crate) use fault_test::{FaultTestArgs, Profiles, ReplayArgs};
pub(crate) use model_files::{CkptCommand, CkptInspectArgs, CkptVerifyArgs, EvalArgs, ExportArgs, Samples};
pub(crate) use plan::{
    DesignArgs, LayoutName, PlanApplyArgs, PlanBindArgs, PlanCommand, PlanCompareArgs, PlanDiffArgs, PlanDrawArgs,
    PlanFileArgs, PlanMakeArgs,
};
pub(crate) use simulation::{EvaluateArgs, SimulateArgs};
pub(crate) use solving::{ProblemKind, SolveArgs};
pub(crate) use topology::{TopologyCommand, TopologyConvertArgs, TopologyGenerateArgs, TopologyShowArgs};
pub(crate) use watching::{Condition, PingArgs, ProbeArgs, StopArgs, TimelineArgs, WaitArgs};

/// What the exit codes mean, for `--help` and the manual pages.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done                       6    refused by the swarm, or training something else,
  1  unexpected failure              or a peer already runs in that home
  2  usage error                7    training failed
  3  no peer there, or a port   8    integrity: a checksum, a forecast or the ledger does not hold,
     is in use                       or a fault test failed
  4  bad settings, plan or data 10   plan diff: the plans differ
  5  not reached in time        130  forced by a second interrupt";

/// Serverless, peer-to-peer training along a planned directed graph.
#[derive(Debug, Parser)]
#[command(name = "mingle", version, after_help = EXIT_CODES, args_override_self = true)]
pub(crate) struct Cli {
    /// Print one JSON object (or a stream of them) on stdout instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole swarm on this machine, on data that the program carries
    Demo(DemoArgs),
    /// Create this peer's identity and a configuration file that explains itself; with --swarm, found a swarm
    Init(InitArgs),
    /// Print a ticket with which others can join the swarm that this peer operates
    Invite(InviteArgs),
    /// Use a ticket, then run this peer until training is done
    Join(Box<JoinArgs>),
    /// Print this peer's PeerId
    Id(HomeArgs),
    /// Run this peer in the foreground until training is done
    #[command(visible_alias = "up")]
    Run(Box<RunArgs>),
    /// Show a running peer: what it does, how well it learns, its weight and its neighbours
    Status(HomeArgs),
    /// Show the neighbours of a running peer
    #[command(visible_alias = "ps")]
    Peers(HomeArgs),
    /// Wait until a peer has its plan, its neighbours, so many rounds, or is done
    Wait(WaitArgs),
    /// Follow what happens on a running peer
    Logs(HomeArgs),
    /// Follow a running peer on a dashboard in this terminal
    Watch(HomeArgs),
    /// Say what peers did when, how much of it was waiting, and how much communication training hid; draw it
    Timeline(TimelineArgs),
    /// Measure the links between all peers that are there, for `plan make --links`
    Probe(ProbeArgs),
    /// Measure the link to one peer, or see who answers at an address
    Ping(PingArgs),
    /// Stop a running peer in good order; started again, it goes on where it was
    Stop(StopArgs),
    /// Hand this peer's weight to the others and go for good; a peer that is stopped is started for it
    Leave(Box<RunArgs>),
    /// Add up the weights that stopped peers have on disk: nothing lost, nothing doubled?
    Audit(AuditArgs),
    /// Kill, cut off and set back simulated swarms, seed after seed, and add up their ledgers after every write
    FaultTest(FaultTestArgs),
    /// Train a simulated swarm by a plan, and count slots, bytes and accuracy
    Simulate(Box<SimulateArgs>),
    /// Solve a convex problem that nodes share, exactly: sparse regression over their tables, or budgets that groups share
    Solve(SolveArgs),
    /// Compare designs by simulation: a suite of topologies, splits and seeds, with tables and curves
    Evaluate(EvaluateArgs),
    /// Run a recorded fault test again, to the same digest
    Replay(ReplayArgs),
    /// Make, compare, look at, check, draw and bind plans
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Say what the columns, classes and scaling of data are
    #[command(subcommand)]
    Data(DataCommand),
    /// Look at, convert and generate topologies
    #[command(subcommand)]
    Topology(TopologyCommand),
    /// Judge a saved model on a data set
    Eval(EvalArgs),
    /// Write the model of a peer that does not run to a file that PyTorch reads
    Export(ExportArgs),
    /// List, inspect and verify model files and records
    #[command(subcommand)]
    Ckpt(CkptCommand),
    /// Measure what this machine can do, beside what Mingle is built on
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Find out whether a peer can run here, and what to do if not
    Doctor(DoctorArgs),
    /// Pack what helps to find out what went wrong, without anything secret
    Bugreport(BugreportArgs),
    /// Show and check the settings of `run`
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the script by which a shell completes commands
    Completions(CompletionsArgs),
    /// Write the manual pages of all commands
    Man(ManArgs),
}

/// Where a peer lives.
#[derive(Args, Clone, Debug)]
pub(crate) struct HomeArgs {
    /// The folder of this peer's key, plan, model and records [default: the user's state folder]
    #[arg(long, env = "MINGLE_HOME", value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

/// Something that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Do it.
    On,
    /// Leave it.
    Off,
}

/// Who makes the plans of a swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Planning {
    /// A person, with `plan make` and `plan apply`.
    Operator,
    /// The operator's peer: whoever has an invitation is planned in, whoever is gone is planned out.
    Auto,
}

/// How urgent training is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Priority {
    /// As urgent as everything else on this machine.
    Normal,
    /// Other programs, and what this peer has to say to others, come first (Linux).
    Low,
}

impl From<Priority> for mingle_peer::priority::Priority {
    fn from(priority: Priority) -> Self {
        match priority {
            Priority::Normal => Self::Normal,
            Priority::Low => Self::Low,
        }
    }
}

/// Arguments of `init`.
#[derive(Args, Clone, Debug)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Found a swarm of this name; this peer's key signs its plans and invitations
    #[arg(long, value_name = "NAME")]
    pub(crate) swarm: Option<String>,
}

/// Arguments of `invite`.
#[derive(Args, Clone, Debug)]
pub(crate) struct InviteArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// How many peers it lets in
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) uses: u32,
    /// How long it can be used: a number and s, m, h or d
    #[arg(long, default_value = "24h", value_name = "TIME")]
    pub(crate) expires: String,
    /// Where a member can be reached; may be given more than once [default: where this peer listens]
    #[arg(long, value_name = "ADDR")]
    pub(crate) address: Vec<Multiaddr>,
}

/// Arguments of `join`.
#[derive(Args, Clone, Debug)]
pub(crate) struct JoinArgs {
    /// The word that `mingle invite` printed
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
    #[arg(long, env = crate::config::CONFIG_ENV, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A peer that is up, such as /ip4/10.0.1.5/udp/4717/quic-v1; may be given more than once
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub(crate) bootstrap: Vec<Multiaddr>,
    /// The plan [default: the one that a bootstrap peer gives, else the one of the last run in this home]
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Addresses to listen on; port 0 takes any that is free
    #[arg(
        long,
        value_name = "ADDR",
        value_delimiter = ',',
        default_values = ["/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0"]
    )]
    pub(crate) listen: Vec<Multiaddr>,
    /// Give up when no bootstrap peer answered with a plan for so long
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    pub(crate) bootstrap_timeout_s: u64,
    /// Begin after so long without the neighbours that have not come, if one has; they can come later
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) gather_s: u64,
    /// Whether to tell the local network where this peer listens, and to find members there (mDNS)
    #[arg(long, value_enum, default_value_t = Switch::Off, value_name = "ON|OFF")]
    pub(crate) mdns: Switch,
    /// Who makes the plans of the swarm that this peer operates: a person, or this peer by itself
    #[arg(long, value_enum, default_value_t = Planning::Operator, value_name = "WHO")]
    pub(crate) planning: Planning,
    /// With --planning auto: plan out who was silent for so long, if most others were not
    #[arg(long, default_value_t = 24, value_name = "HOURS", value_parser = clap::value_parser!(u32).range(1..=8760))]
    pub(crate) forget_after_h: u32,
    /// Columns, classes and scaling of the data, as `mingle data card` writes them [default: those of the swarm; of this peer's own data where nobody has any]
    #[arg(long, value_name = "FILE")]
    pub(crate) card: Option<PathBuf>,
    /// Solve this problem instead of training a model; all peers need the same file, but for what each node wants
    #[arg(long, value_name = "FILE")]
    pub(crate) problem: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) training: TrainingArgs,
    /// Whom to wait for in each round: sync, bounded:STALENESS or async
    #[arg(long, default_value = "bounded:4", value_name = "POLICY")]
    pub(crate) wait: String,
    /// How this peer encodes the models that it sends: f32, bf16, f16 or int8; each peer reads all of them
    #[arg(long, default_value_t = Codec::F32, value_name = "CODEC")]
    pub(crate) codec: Codec,
    /// Go on without a late neighbour after at least so long; the deadline adapts upwards to the pace of the rounds
    #[arg(long, default_value_t = 2000, value_name = "MS")]
    pub(crate) deadline_ms: u64,
    /// Take no more local steps in a round once it has trained for so long; those taken count for more [default: take all]
    #[arg(long, value_name = "MS")]
    pub(crate) time_box_ms: Option<u64>,
    /// Go on mixing without the training of a round that takes longer; it counts when it comes
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) training_deadline_s: u64,
    /// Threads to train on; the model does not depend on it [default: the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// How urgent training is: at a low priority it takes what other programs leave (Linux)
    #[arg(long, value_enum, default_value_t = Priority::Normal, value_name = "PRIORITY")]
    pub(crate) priority: Priority,
    /// When all rounds are done, wait this long at most for neighbours that do not answer
    #[arg(long, default_value_t = 10_000, value_name = "MS")]
    pub(crate) drain_ms: u64,
    /// Send parcels back whose model has a larger norm than this [default: 1000 times that of the first model]
    #[arg(long, value_name = "NORM")]
    pub(crate) largest_norm: Option<f64>,
    /// Whether the weight of this peer outlives its process: on writes every step to the disk before anyone hears of it
    #[arg(long, value_enum, default_value_t = DurabilityName::On)]
    pub(crate) durability: DurabilityName,
    /// Give up what this peer has kept of an earlier run and begin anew, with weight. For all peers, or none
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Whether to write down what this peer does when, for `mingle timeline`
    #[arg(long, value_enum, default_value_t = Switch::Off, value_name = "ON|OFF")]
    pub(crate) timeline: Switch,
    /// Show a page for a browser, and metrics, at this address, read only, such as 127.0.0.1:7717 [default: none]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) http: Option<SocketAddr>,
    /// Stop when standard input ends: for programs that start peers and must not leave one behind
    #[arg(long)]
    pub(crate) stop_with_stdin: bool,
    /// Only come to leave.
    #[arg(skip)]
    pub(crate) leaves: bool,
    /// What of this somebody chose.
    #[arg(skip)]
    pub(crate) given: Given,
}

/// Settings that somebody chose: by a flag, the environment, the configuration file or in the last run of that home.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// Their keys.
    pub(crate) keys: BTreeSet<String>,
    /// What the next run in the home goes on with.
    pub(crate) options: Remembered,
}

impl Default for Given {
    fn default() -> Self {
        Self { keys: BTreeSet::new(), options: Remembered::new(BTreeMap::new()) }
    }
}

/// Whether a peer keeps records.
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

/// Arguments of `audit`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AuditArgs {
    /// Homes of peers, their records folders, or a folder of several homes such as mingle-demo/peers
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// The plan, for the number and the names of its nodes [default: the one in the homes, else what the records tell]
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
}

/// What to train, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct TrainingArgs {
    /// digits, idx:DIR (MNIST, Fashion-MNIST), cifar10:DIR or csv:FILE
    #[arg(long, default_value = "digits")]
    pub(crate) data: String,
    /// softmax, mlp, mlp:hidden=N, cnn or resnet-lite
    #[arg(long, default_value = "mlp")]
    pub(crate) model: String,
    /// Train on this node's part of the data: iid, label-sorted or dirichlet:ALPHA [default: all of it]
    #[arg(long, value_name = "SPLIT")]
    pub(crate) split: Option<String>,
    /// Rounds to train; all peers must agree. The default takes some minutes with a small model, and `mingle stop` ends it
    /// at any time
    #[arg(long, default_value_t = 20_000)]
    pub(crate) rounds: u64,
    /// Samples in a gradient step
    #[arg(long, default_value_t = 32)]
    pub(crate) batch_size: usize,
    /// How training images are changed, each time anew: none, flip, crop:N or flip,crop:N
    #[arg(long, default_value = "none")]
    pub(crate) augment: String,
    /// Step size of SGD
    #[arg(long, default_value_t = 0.1)]
    pub(crate) learning_rate: f64,
    /// Momentum of SGD; it stays on the peer
    #[arg(long, default_value_t = 0.0)]
    pub(crate) momentum: f64,
    /// Weight decay (L2) of SGD
    #[arg(long, default_value_t = 0.0)]
    pub(crate) weight_decay: f64,
    /// Seed of the initial model, the split and the minibatches; all peers must agree
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Where to compute: cpu, ndarray or wgpu
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
    /// Evaluate on the held-out test set each N rounds
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub(crate) evaluate_every: u64,
}

/// Arguments of `demo`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// Peer processes to start
    #[arg(long, default_value_t = 8)]
    pub(crate) peers: usize,
    /// Solve a convex problem instead of training a model, on numbers that the program carries
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) problem: Option<ProblemKind>,
    /// digits, idx:DIR (MNIST, Fashion-MNIST), cifar10:DIR or csv:FILE
    #[arg(long, default_value = "digits")]
    pub(crate) data: String,
    /// softmax, mlp, mlp:hidden=N, cnn or resnet-lite
    #[arg(long, default_value = "mlp")]
    pub(crate) model: String,
    /// How the data lie on the peers: iid, label-sorted or dirichlet:ALPHA
    #[arg(long, default_value = "dirichlet:0.3")]
    pub(crate) split: String,
    /// Rounds to train
    #[arg(long, default_value_t = 600)]
    pub(crate) rounds: u64,
    /// The design of the plan, as in `mingle plan make` [default with --problem: clique-phi]
    #[arg(long, default_value = "nguyen-he", default_value_if("problem", ArgPredicate::IsPresent, "clique-phi"))]
    pub(crate) method: String,
    /// Gradient steps per round
    #[arg(long, default_value_t = 4, value_name = "H")]
    pub(crate) local_steps: u32,
    /// Samples in a gradient step
    #[arg(long, default_value_t = 32)]
    pub(crate) batch_size: usize,
    /// Step size of SGD
    #[arg(long, default_value_t = 0.2)]
    pub(crate) learning_rate: f64,
    /// Momentum of SGD
    #[arg(long, default_value_t = 0.0)]
    pub(crate) momentum: f64,
    /// Seed of topology, plan, split, model and minibatches
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Evaluate each N rounds
    #[arg(long, default_value_t = 30, value_name = "N")]
    pub(crate) evaluate_every: u64,
    /// Kill a peer's process (SIGKILL) when it reaches a round; may be given more than once
    #[arg(long, value_name = "PEER@ROUND", conflicts_with = "problem")]
    pub(crate) kill: Vec<String>,
    /// Start a killed peer again at once: it goes on from its records, with the weight it had
    #[arg(long, requires = "kill")]
    pub(crate) restart: bool,
    /// Whether peers keep their weight on disk; in the end the disks are audited [default: on with --restart, else off]
    #[arg(long, value_enum, value_name = "ON|OFF")]
    pub(crate) durability: Option<DurabilityName>,
    /// Whether to draw what each peer does when, as timeline.svg
    #[arg(long, value_enum, default_value_t = Switch::Off, value_name = "ON|OFF")]
    pub(crate) timeline: Switch,
    /// Where to compute: cpu, ndarray or wgpu
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
    /// Whom to wait for in each round: sync, bounded:STALENESS or async
    #[arg(long, default_value = "sync", value_name = "POLICY")]
    pub(crate) wait: String,
    /// How peers encode the models that they send: f32, bf16, f16 or int8
    #[arg(long, default_value_t = Codec::F32, value_name = "CODEC")]
    pub(crate) codec: Codec,
    /// Do not train each peer alone and all data in one place afterwards, to compare with
    #[arg(long)]
    pub(crate) no_comparison: bool,
    /// Where to write plan, models, events and plot; replaced if it exists
    #[arg(short, long, default_value = "mingle-demo", value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use clap::{CommandFactory, FromArgMatches};

    /// What `run` trains without flags.
    pub(crate) fn training_defaults() -> TrainingArgs {
        let matches = TrainingArgs::augment_args(clap::Command::new("run")).get_matches_from(["run"]);
        TrainingArgs::from_arg_matches(&matches).expect("all of them have defaults")
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
