//! The command line of `mingle`: its commands, options and help texts.

mod care;
mod communication;
mod config;
mod data;
mod demo;
mod documents;
mod duration;
mod fault_test;
mod follow;
mod graph;
mod model_files;
mod operator;
mod optimizer;
mod plan;
mod privacy;
mod run;
mod samples;
mod simulation;
mod solving;
mod topology;
mod watching;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use libp2p::PeerId;

pub(crate) use care::{BugreportArgs, DoctorArgs};
pub(crate) use communication::{CommunicationArgs, MediumArgs};
pub(crate) use config::{CONFIG_ENV, ConfigCheckArgs, ConfigCommand, ConfigPathArgs, ConfigShowArgs};
pub(crate) use data::{DataCardArgs, DataCommand, DataSumsArgs};
pub(crate) use demo::DemoArgs;
pub(crate) use documents::{CompletionsArgs, ManArgs};
pub(crate) use fault_test::{FaultProfile, FaultTestArgs, Profiles, ReplayArgs};
pub(crate) use follow::FollowArgs;
pub(crate) use graph::{GraphCommand, GraphShowArgs};
pub(crate) use mingle_net::written_address::{PeerAddress, multiaddrs, peer_address};
pub(crate) use model_files::{
    CkptCommand, CkptInspectArgs, CkptVerifyArgs, EvalArgs, ExportArgs, GenerateArgs, ModelArgs, PredictArgs,
    SampleSource,
};
pub(crate) use operator::{AcceptArgs, DelegateArgs, OperatorCommand, RecoverArgs, Until};
pub(crate) use optimizer::{ADAMW_LEARNING_RATE, OptimizerArgs};
pub(crate) use plan::{
    AirArgs, DesignArgs, LayoutName, PlanApplyArgs, PlanBindArgs, PlanCommand, PlanCompareArgs, PlanDiffArgs,
    PlanDrawArgs, PlanFileArgs, PlanMakeArgs, PlanShowArgs,
};
pub(crate) use privacy::PrivacyArgs;
pub(crate) use run::{DurabilityName, Given, JoinArgs, OF_BUILT_IN_MODELS, Planning, RunArgs};
pub(crate) use samples::SamplesArgs;
pub(crate) use simulation::{EvaluateArgs, LastRounds, SimulateArgs};
pub(crate) use solving::{ProblemKind, RecommendArgs, SolveArgs, SumArgs};
pub(crate) use topology::{TopologyCommand, TopologyConvertArgs, TopologyGenerateArgs, TopologyShowArgs};
pub(crate) use watching::{PingArgs, ProbeArgs, StopArgs, TimelineArgs, WaitArgs, WaitCondition};

/// The meaning of the exit codes, for `--help` and the manual pages.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done                       6    refused by the swarm, or training something else,
  1  unexpected failure              or a peer already runs in that home
  2  usage error                7    training failed
  3  no peer there, or a port   8    integrity: a checksum, a forecast or the ledger does not hold,
     is in use                       or a fault test failed
  4  bad settings, plan or data 10   plan diff: the plans differ
  5  not reached in time, or    130  forced by a second interrupt
     most rounds were skipped";

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

/// The command to execute.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole swarm on this machine, on data that the program carries
    Demo(Box<DemoArgs>),
    /// Create this peer's identity and a configuration file that explains itself; with --swarm, found a swarm
    Init(InitArgs),
    /// Print a ticket with which others can join the swarm that this peer operates
    Invite(InviteArgs),
    /// Expel peers from the swarm that this peer operates: no plan names them, and no invitation lets them in
    Expel(ExpelArgs),
    /// Say who may sign for a swarm, let another key do so for a while, and replace an operator's key that is lost or stolen
    #[command(subcommand)]
    Operator(OperatorCommand),
    /// Use a ticket, then run this peer until training is done
    Join(Box<JoinArgs>),
    /// Get the model of a swarm while it is trained, without taking part: for evaluation, dashboards, servers of answers
    Follow(FollowArgs),
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
    /// Test simulated swarms under faults, seed after seed: kills, partitions, lost disks, liars; the ledger is checked after every write
    FaultTest(FaultTestArgs),
    /// Train a simulated swarm by a plan, and count slots, bytes and accuracy
    Simulate(Box<SimulateArgs>),
    /// Solve a problem that nodes share, all nodes in this process: regressions, budgets, robust models, recommenders, or training over masked sums
    Solve(SolveArgs),
    /// Say what a recommender that this peer has learned with others has for a user
    Recommend(RecommendArgs),
    /// Look at a graph whose nodes have features and classes: its homophily, and what is wrong with it
    #[command(subcommand)]
    Graph(GraphCommand),
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
    /// Predict the class or quantity of samples for which it is unknown
    Predict(PredictArgs),
    /// Print text that a trained language model generates
    Generate(GenerateArgs),
    /// Write the model of a peer that does not run to a file that PyTorch reads
    Export(ExportArgs),
    /// List, inspect and verify model files and records
    #[command(subcommand)]
    Ckpt(CkptCommand),
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

/// The home of a peer.
#[derive(Args, Clone, Debug)]
pub(crate) struct HomeArgs {
    /// The folder of this peer's key, plan, model and records [default: the user's state folder]
    #[arg(long, env = "MINGLE_HOME", value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

/// A switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Do it.
    On,
    /// Leave it.
    Off,
}

/// Arguments of `init`.
#[derive(Args, Clone, Debug)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Found a swarm of this name; this peer's key signs its plans and invitations
    #[arg(long, value_name = "NAME")]
    pub(crate) swarm: Option<String>,
    /// Make a key that can name another operator when this one is lost or stolen, and write it to this new file, for a safe
    #[arg(long, value_name = "FILE", requires = "swarm")]
    pub(crate) recovery_key: Option<PathBuf>,
    /// Begin with this model, a safetensors file: it is copied into the home, and `mingle run` there needs no --begin-with
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
}

/// Arguments of `invite`.
#[derive(Args, Clone, Debug)]
pub(crate) struct InviteArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Number of peers that it lets in
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) uses: u32,
    /// Time for which it can be used, a year at most
    #[arg(long, default_value = "24h", value_name = "DURATION", value_parser = duration::duration)]
    pub(crate) expires: Duration,
    /// Where a member can be reached; may be given more than once [default: where this peer listens]
    #[arg(long, value_name = "ADDR", value_parser = peer_address)]
    pub(crate) address: Vec<PeerAddress>,
    /// Print the invitations that can still be used, instead of a new one
    #[arg(long, conflicts_with_all = ["uses", "expires", "address", "revoke"])]
    pub(crate) list: bool,
    /// Revoke this invitation, so that it lets no further peer in: its id, or how that begins
    #[arg(long, value_name = "ID", conflicts_with_all = ["uses", "expires", "address"])]
    pub(crate) revoke: Option<String>,
}

/// Arguments of `expel`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExpelArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// PeerIds
    #[arg(required = true, value_name = "PEER")]
    pub(crate) peers: Vec<PeerId>,
    /// Let them come back, with an invitation
    #[arg(long)]
    pub(crate) undo: bool,
}

/// Arguments of `audit`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AuditArgs {
    /// Homes of peers, their records folders, or a folder of several homes such as mingle-demo/peers
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// The plan, for the number and the names of its nodes [default: the one in the homes, else as far as the records
    /// know]
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_group_of_options_names_all_of_them() {
        fn of<A: Args>() -> Vec<String> {
            let command = A::augment_args(clap::Command::new("mingle"));
            command.get_arguments().map(|argument| argument.get_id().to_string()).collect()
        }
        assert_eq!(of::<SamplesArgs>(), SamplesArgs::NAMES);
        assert_eq!(of::<OptimizerArgs>(), OptimizerArgs::NAMES);
        assert_eq!(of::<PrivacyArgs>(), PrivacyArgs::NAMES);
        assert_eq!(of::<CommunicationArgs>(), CommunicationArgs::NAMES);
        assert_eq!(of::<MediumArgs>(), MediumArgs::NAMES);
    }
}
