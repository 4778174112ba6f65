//! Arguments of `mingle plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use libp2p::PeerId;
use mingle_net::multicast::{AirForecast, AirRate};
use mingle_net::written_address::{PeerAddress, peer_address};
use mingle_peer::{Result, medium};
use mingle_planner::Plan;
use mingle_protocol::CodecChoice;

use super::HomeArgs;
use super::duration::duration;

/// Subcommands of `plan`.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Design a plan for a topology and forecast what it costs
    Make(Box<PlanMakeArgs>),
    /// Forecast all designs for a topology, side by side
    Compare(Box<PlanCompareArgs>),
    /// Show a plan and its forecast
    Show(PlanShowArgs),
    /// Say what differs between two plans; exit code 10 if anything does
    Diff(PlanDiffArgs),
    /// Draw a plan (SVG), or write it for other programs (DOT, GraphML)
    Draw(PlanDrawArgs),
    /// Check a plan whole, its forecast too
    Check(PlanFileArgs),
    /// Say which peer runs which node
    Bind(PlanBindArgs),
    /// Give the swarm that this peer operates this plan, also while it trains
    Apply(PlanApplyArgs),
}

/// Input and options of a design.
#[derive(Args, Clone, Debug)]
pub(crate) struct DesignArgs {
    /// A file (JSON, node-link data, edge list, GraphML, GML, another plan) or a generator, such as rg:n=33,r=0.5,seed=0
    /// [default: all pairs that --links measured in both directions]
    #[arg(long, value_name = "FILE|GENERATOR", required_unless_present = "links")]
    pub(crate) topology: Option<String>,
    /// Nodes of the topology to leave out, by name or number
    #[arg(long, value_delimiter = ',', value_name = "NODE,...")]
    pub(crate) without: Vec<String>,
    /// A topology with the same nodes whose edges are the interference, where that reaches further than the links
    #[arg(long, value_name = "FILE")]
    pub(crate) interference: Option<PathBuf>,
    /// Sharing of the network by the links: broadcast (slots, interference) or point-to-point
    #[arg(long, default_value = "broadcast")]
    pub(crate) medium: String,
    /// Link measurements (TOML), for a forecast in seconds and bytes
    #[arg(long, value_name = "FILE")]
    pub(crate) links: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) air: AirArgs,
    /// A promise: no node sends more than this in a round; needs --links
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_upload: Option<u64>,
    /// The most slots a round may take
    #[arg(long, value_name = "SLOTS")]
    pub(crate) budget_slots: Option<usize>,
    /// The most receivers a node may have
    #[arg(long, value_name = "NODES")]
    pub(crate) max_out_degree: Option<usize>,
    /// Effort of the search, in units that do not depend on the machine
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) effort: u32,
    /// The criterion of auto: training (gradient steps, and drift between them) or agreement (averaging to 1e-2)
    /// [default: training]
    #[arg(long)]
    pub(crate) objective: Option<String>,
    /// Losses after which the plan stays strongly connected: none, any one link, or any one node
    #[arg(long, default_value = "none", value_name = "none|link|node")]
    pub(crate) fault_tolerance: String,
    /// Seed of every random choice
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Gradient steps that each peer takes per round; swarms by ticket begin with 10, and measure
    #[arg(long, default_value_t = 1, value_name = "H")]
    pub(crate) local_steps: u32,
    /// Difference of the peers' data, for auto: 0 if all look alike, 1 if each has a class or two
    #[arg(long, default_value_t = 1.0, value_name = "0..1")]
    pub(crate) heterogeneity: f64,
}

/// The model on the wire, and the rate of a shared channel.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct AirArgs {
    /// The size of the model on the wire, in f32; used with --links, --codec and --air-rate
    #[arg(long, default_value_t = 1_000_000, value_name = "BYTES")]
    pub(crate) payload_bytes: u64,
    /// The rate of a shared channel, such as 20mbit, for a forecast of the seconds that slots take there, as peers with the
    /// same --air-rate keep them
    #[arg(long, value_name = "RATE")]
    pub(crate) air_rate: Option<AirRate>,
}

impl AirArgs {
    /// The forecast of a plan on the air; `None` without a rate.
    pub(crate) fn forecast(self, plan: &Plan, codec: CodecChoice) -> Result<Option<AirForecast>> {
        let dimension = usize::try_from(self.payload_bytes / 4).unwrap_or(usize::MAX);
        self.air_rate.map(|rate| medium::air_forecast(plan, rate, codec, dimension)).transpose()
    }
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
    /// Leave out step 4 of Algorithm 1, the links that fit into the slots of the others, to see what it is worth; for nguyen-he
    #[arg(long)]
    pub(crate) no_augment: bool,
    /// The codec of the peers, for the price on a point-to-point medium and the seconds of --air-rate: auto is four bits where the plan has exact averages
    #[arg(long, default_value_t = CodecChoice::Auto, value_name = "CODEC")]
    pub(crate) codec: CodecChoice,
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
    /// Also show the bytes of a round in these codecs (auto for what each plan takes by default), over all links, for a model of --payload-bytes in f32.
    /// The seconds of --air-rate are those of the first
    #[arg(long, value_delimiter = ',', value_name = "CODEC,...")]
    pub(crate) codec: Vec<CodecChoice>,
}

/// Arguments of `plan show`.
#[derive(Args, Debug)]
pub(crate) struct PlanShowArgs {
    #[command(flatten)]
    pub(crate) file: PlanFileArgs,
    #[command(flatten)]
    pub(crate) air: AirArgs,
    /// The codec of the peers, for the seconds of --air-rate: auto is four bits where the plan has exact averages
    #[arg(long, default_value_t = CodecChoice::Auto, value_name = "CODEC")]
    pub(crate) codec: CodecChoice,
}

/// A plan file.
#[derive(Args, Debug)]
pub(crate) struct PlanFileArgs {
    /// The plan file
    pub(crate) plan: PathBuf,
}

/// Arguments of `plan diff`.
#[derive(Args, Debug)]
pub(crate) struct PlanDiffArgs {
    /// The first plan file
    pub(crate) before: PathBuf,
    /// The second plan file
    pub(crate) after: PathBuf,
}

/// Arguments of `plan draw`.
#[derive(Args, Debug)]
pub(crate) struct PlanDrawArgs {
    /// The plan file
    pub(crate) plan: PathBuf,
    /// Where to draw it: x.svg, x.dot or x.graphml
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// A topology file or generator with a place for each node, by name
    #[arg(long, value_name = "TOPOLOGY")]
    pub(crate) positions: Option<String>,
    /// Where the nodes stand [default: positions if they are given, else circle]
    #[arg(long)]
    pub(crate) layout: Option<LayoutName>,
}

/// Layout of the nodes in a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutName {
    /// On a circle, in an order with few crossings
    Circle,
    /// At the places that --positions gives
    Positions,
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

/// Arguments of `plan apply`.
#[derive(Args, Debug)]
pub(crate) struct PlanApplyArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The plan file. Nodes that are not bound go to the operator, to members, then to those who wait
    #[arg(required_unless_present = "without")]
    pub(crate) plan: Option<PathBuf>,
    /// Instead of a plan file: the plan that the swarm follows, designed anew without these members
    #[arg(long, value_name = "PEERID,...", value_delimiter = ',', conflicts_with_all = ["plan", "expect"])]
    pub(crate) without: Vec<PeerId>,
    /// Go on only if the file is this plan: its hash, or the first 8 digits of it or more
    #[arg(long, value_name = "HASH")]
    pub(crate) expect: Option<String>,
    /// Let an operator's peer that runs with --planning auto replace it when somebody comes or goes [default: it stays until another is applied]
    #[arg(long)]
    pub(crate) replaceable: bool,
    /// A member that is up; may be given more than once [default: the peer of this home]
    #[arg(long, value_name = "ADDR", value_parser = peer_address)]
    pub(crate) via: Vec<PeerAddress>,
    /// Time to look for members
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Duration,
}
