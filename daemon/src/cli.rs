//! The command line: what can be asked of `mingle`, and the words for it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use libp2p::Multiaddr;

const EXIT_CODES: &str = "\
Exit codes:
  0  done                       6    refused by the swarm, or training something else
  1  unexpected failure         7    training failed
  2  usage error                8    integrity: a checksum, a forecast or the ledger does not hold
  3  unreachable, port in use   130  forced by a second interrupt
  4  bad plan, topology or data    10   plan diff: the plans differ";

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
    /// Create this peer's identity
    Init(HomeArgs),
    /// Print this peer's PeerId
    Id(HomeArgs),
    /// Run this peer in the foreground until training is done
    #[command(visible_alias = "up")]
    Run(Box<RunArgs>),
    /// Make, compare, look at, check, draw and bind plans
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Look at, convert and generate topologies
    #[command(subcommand)]
    Topology(TopologyCommand),
}

/// What to do with a plan.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Design a plan for a topology and forecast what it costs
    Make(PlanMakeArgs),
    /// Design by every method and print the forecasts side by side
    Compare(PlanCompareArgs),
    /// Show a plan and its forecast
    Show(PlanFileArgs),
    /// Check a plan whole, its forecast too
    Check(PlanFileArgs),
    /// Say what differs between two plans: exit code 0 if nothing does, 10 if something does
    Diff(PlanDiffArgs),
    /// Draw a plan
    Draw(PlanDrawArgs),
    /// Say which peer runs which node
    Bind(PlanBindArgs),
}

/// Where a peer lives.
#[derive(Args, Clone, Debug)]
pub(crate) struct HomeArgs {
    /// The folder of this peer's key, plan, model and records [default: the user's state folder]
    #[arg(long, env = "MINGLE_HOME", value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

/// What a plan is made for.
#[derive(Args, Clone, Debug)]
pub(crate) struct DesignArgs {
    /// A file (JSON, edge list, GraphML, another plan) or a generator, such as rg:n=33,r=0.5,seed=0
    /// [default: all pairs that --links measured in both directions]
    #[arg(long, value_name = "FILE|GENERATOR", required_unless_present = "links")]
    pub(crate) topology: Option<String>,
    /// A topology with the same nodes whose edges say who disturbs whom, where more do than hear each other
    #[arg(long, value_name = "FILE")]
    pub(crate) interference: Option<PathBuf>,
    /// How links share the network: broadcast (slots, interference) or point-to-point
    #[arg(long, default_value = "broadcast")]
    pub(crate) medium: String,
    /// Link measurements (TOML), for a forecast in seconds and bytes
    #[arg(long, value_name = "FILE")]
    pub(crate) links: Option<PathBuf>,
    /// The size of the model on the wire; used with --links
    #[arg(long, default_value_t = 1_000_000, value_name = "BYTES")]
    pub(crate) payload_bytes: u64,
    /// A promise: no node sends more than this in a round; needs --links
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_upload: Option<u64>,
    /// The most slots a round may take
    #[arg(long, value_name = "SLOTS")]
    pub(crate) budget_slots: Option<usize>,
    /// The most receivers a node may have
    #[arg(long, value_name = "NODES")]
    pub(crate) max_out_degree: Option<usize>,
    /// How long to search, in units that do not depend on the machine
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) effort: u32,
    /// What auto chooses by: training (a round and a neper) or agreement (averaging to 1e-2)
    #[arg(long, default_value = "training")]
    pub(crate) objective: String,
    /// What the plan stays strongly connected without: none, any one link, or any one node
    #[arg(long, default_value = "none", value_name = "none|link|node")]
    pub(crate) survive: String,
    /// Seed of every random choice
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Gradient steps that each peer takes per round
    #[arg(long, default_value_t = 1, value_name = "H")]
    pub(crate) local_steps: u32,
}

/// Arguments of `plan make`.
#[derive(Args, Debug)]
pub(crate) struct PlanMakeArgs {
    #[command(flatten)]
    pub(crate) design: DesignArgs,
    /// The design; `mingle plan compare` shows what each would cost [default: auto, which takes the best of them]
    #[arg(long)]
    pub(crate) method: Option<String>,
    /// Edges beyond the spanning tree, for nguyen-he: a number, or auto to sweep
    #[arg(long, default_value = "auto", value_name = "K|auto")]
    pub(crate) extra_edges: String,
    /// Write the plan here [default: print it]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Arguments of `plan compare`.
#[derive(Args, Debug)]
pub(crate) struct PlanCompareArgs {
    #[command(flatten)]
    pub(crate) design: DesignArgs,
    /// The designs to compare [default: all]
    #[arg(long, value_delimiter = ',', value_name = "METHOD,...")]
    pub(crate) methods: Vec<String>,
}

/// Arguments of `plan diff`.
#[derive(Args, Debug)]
pub(crate) struct PlanDiffArgs {
    /// The plan to compare with
    pub(crate) before: PathBuf,
    /// The plan that is compared
    pub(crate) after: PathBuf,
}

/// Arguments of `plan draw`.
#[derive(Args, Debug)]
pub(crate) struct PlanDrawArgs {
    /// The plan file
    pub(crate) plan: PathBuf,
    /// Where to write; the ending says what: .svg, .dot or .graphml
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// A topology with places for the nodes of the plan [default: on a circle]
    #[arg(long, value_name = "FILE|GENERATOR")]
    pub(crate) positions: Option<String>,
}

/// What to do with a topology.
#[derive(Debug, Subcommand)]
pub(crate) enum TopologyCommand {
    /// Say what a topology looks like
    Show(TopologyArgs),
    /// Write a topology in another format
    Convert(TopologyWriteArgs),
    /// Write a generated topology
    Generate(TopologyWriteArgs),
}

/// A topology.
#[derive(Args, Debug)]
pub(crate) struct TopologyArgs {
    /// A file, or a generator such as rg:n=33,r=0.5,seed=0
    pub(crate) topology: String,
}

/// A topology, and where to write it.
#[derive(Args, Debug)]
pub(crate) struct TopologyWriteArgs {
    /// A file, or a generator such as rg:n=33,r=0.5,seed=0
    pub(crate) topology: String,
    /// Where to write; the ending says what: .json, .edges, .graphml or .dot [default: print JSON]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// A plan file.
#[derive(Args, Debug)]
pub(crate) struct PlanFileArgs {
    /// The plan file
    pub(crate) plan: PathBuf,
}

/// Arguments of `plan bind`.
#[derive(Args, Debug)]
pub(crate) struct PlanBindArgs {
    /// The plan file
    pub(crate) plan: PathBuf,
    /// A node, by name or index, and the PeerId that runs it
    #[arg(long = "peer", value_name = "NODE=PEERID", required = true)]
    pub(crate) peers: Vec<String>,
    /// Write the bound plan here [default: over PLAN]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// A peer that is up, such as /ip4/10.0.1.5/udp/4717/quic-v1; may be given more than once
    #[arg(long, value_name = "ADDR")]
    pub(crate) bootstrap: Vec<Multiaddr>,
    /// The plan [default: the one that a bootstrap peer gives, else the one of the last run in this home]
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Addresses to listen on; port 0 takes any that is free
    #[arg(
        long,
        value_name = "ADDR",
        default_values = ["/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0"]
    )]
    pub(crate) listen: Vec<Multiaddr>,
    /// Give up when no bootstrap peer answered with a plan for so long
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    pub(crate) bootstrap_timeout_s: u64,
    #[command(flatten)]
    pub(crate) training: TrainingArgs,
    /// Whom to wait for in each round: sync, bounded:STALENESS or async
    #[arg(long, default_value = "bounded:4", value_name = "POLICY")]
    pub(crate) wait: String,
    /// Go on without a late neighbour after at least so long; the deadline adapts upwards to the pace of the rounds
    #[arg(long, default_value_t = 2000, value_name = "MS")]
    pub(crate) deadline_ms: u64,
    /// When all rounds are done, wait this long at most for neighbours that do not answer
    #[arg(long, default_value_t = 10_000, value_name = "MS")]
    pub(crate) drain_ms: u64,
    /// Forget that this peer took part in a run that was cut off: begin anew, with weight. For all peers, or none
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Stop when standard input ends: for programs that start peers and must not leave one behind
    #[arg(long)]
    pub(crate) stop_with_stdin: bool,
}

/// What to train, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct TrainingArgs {
    /// digits, idx:DIR (MNIST, Fashion-MNIST) or csv:FILE
    #[arg(long, default_value = "digits")]
    pub(crate) data: String,
    /// softmax, mlp, mlp:hidden=N or cnn
    #[arg(long, default_value = "mlp")]
    pub(crate) model: String,
    /// Train on this node's part of the data: iid, label-sorted or dirichlet:ALPHA [default: all of it]
    #[arg(long, value_name = "SPLIT")]
    pub(crate) split: Option<String>,
    /// Rounds to train; all peers must agree
    #[arg(long, default_value_t = 200)]
    pub(crate) rounds: u64,
    /// Samples in a gradient step
    #[arg(long, default_value_t = 32)]
    pub(crate) batch_size: usize,
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
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(crate) evaluate_every: u64,
}

/// Arguments of `demo`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// Peer processes to start
    #[arg(long, default_value_t = 8)]
    pub(crate) peers: usize,
    /// digits, idx:DIR (MNIST, Fashion-MNIST) or csv:FILE
    #[arg(long, default_value = "digits")]
    pub(crate) data: String,
    /// softmax, mlp, mlp:hidden=N or cnn
    #[arg(long, default_value = "mlp")]
    pub(crate) model: String,
    /// How the data lie on the peers: iid, label-sorted or dirichlet:ALPHA
    #[arg(long, default_value = "dirichlet:0.3")]
    pub(crate) split: String,
    /// Rounds to train
    #[arg(long, default_value_t = 600)]
    pub(crate) rounds: u64,
    /// The design of the plan, as in `mingle plan make`
    #[arg(long, default_value = "nguyen-he")]
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
    #[arg(long, value_name = "PEER@ROUND")]
    pub(crate) kill: Vec<String>,
    /// Where to compute: cpu, ndarray or wgpu
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
    /// Whom to wait for in each round: sync, bounded:STALENESS or async
    #[arg(long, default_value = "sync", value_name = "POLICY")]
    pub(crate) wait: String,
    /// Do not train each peer alone and all data in one place afterwards, to compare with
    #[arg(long)]
    pub(crate) no_comparison: bool,
    /// Where to write plan, models, events and plot; replaced if it exists
    #[arg(short, long, default_value = "mingle-demo", value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
