//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use mingle_air::{Acknowledgements, AirLoss, AirSettings, CarrierSense, live, parse_rate};
use mingle_planner::Method;

/// An emulated shared half-duplex radio, for tests.
///
/// A base graph says which nodes are in range of each other. A frame occupies its sender's neighbourhood for its airtime;
/// frames that overlap at a receiver are both lost there. Such a radio shows slots, collisions, hidden senders and the
/// cost of one transmission for each link. It cannot show capture, fading, noise that changes, rates that adapt, the
/// lowest rate at which Wi-Fi sends multicast, power, or antennas: see docs/air.md.
#[derive(Debug, Parser)]
#[command(name = "mingle-air", max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) task: AirTask,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AirTask {
    /// Carry frames between network namespaces, in real time; needs root, iproute2 and /dev/net/tun.
    ///
    /// Makes a namespace for each node of the graph, with an interface air0, the address 10.83.0.(number + 1) and a route
    /// for multicast. With a COMMAND, runs it outside of the namespaces, with the name of this air in MINGLE_AIR, and
    /// ends with its status. Without, prints a line for each node (number, namespace, address, name) and runs until
    /// SIGTERM or an interrupt. Namespaces are removed at the end, with the processes in them, even after a SIGKILL.
    Run(RunArguments),
    /// Run a command in the namespace of a node.
    Exec(ExecArguments),
    /// Remove the namespaces of airs whose process is gone.
    Clean,
    /// Measure a round of several designs on several graphs, in virtual time, and print a table in Markdown.
    ///
    /// Senders are of three kinds. Slotted ones transmit once in each slot of the plan. Multicast without slots senses the
    /// carrier and repairs by reports of the receivers, with ideal repair packets, until all have everything. Unicast
    /// streams sense the carrier, and each frame is acknowledged and repeated. Nodes without slots begin within one slot
    /// length of each other. The column of least slots has a transmission for each link, without collisions.
    Compare(CompareArguments),
    /// Draw one round of a design, as the three kinds of senders play it, with a lane for each node.
    Draw(DrawArguments),
    /// Remove the namespaces of an air when the process at the other end of standard input is gone.
    #[command(hide = true)]
    Janitor { prefix: String },
}

/// The medium, in real and in virtual time.
#[derive(Debug, Clone, Args)]
pub(crate) struct MediumArguments {
    /// Rate of all radios.
    #[arg(long, default_value = "10mbit", value_parser = parse_rate)]
    rate: u64,
    /// Time of each transmission beside its bytes.
    #[arg(long, default_value = "100us", value_parser = humantime::parse_duration)]
    overhead: Duration,
    /// Share of transmissions that chance takes, on each link.
    #[arg(long, default_value_t = 0.0)]
    loss: f64,
    /// Let the loss grow with the square of the distance, up to --loss on the longest link.
    #[arg(long)]
    loss_by_distance: bool,
    /// Seed of losses and back-offs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Base graph: a generator such as rg:n=6,r=0.7,seed=1, or a file with edges.
    #[arg(long)]
    pub(crate) graph: String,
    #[command(flatten)]
    medium: MediumArguments,
    /// Sense the carrier and back off, as IEEE 802.11 does.
    #[arg(long)]
    carrier_sense: bool,
    /// Acknowledge frames to one node, and repeat them up to seven times.
    #[arg(long)]
    acknowledge: bool,
    /// MTU of the interfaces.
    #[arg(long, default_value_t = live::DEFAULT_MTU)]
    pub(crate) mtu: usize,
    /// File for the counts of all nodes, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Command to run on the air.
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArguments {
    /// Air, such as mair4711; the only one where there is one.
    #[arg(long, env = super::AIR_VARIABLE)]
    pub(crate) air: Option<String>,
    /// Number of the node, from 0.
    pub(crate) node: usize,
    /// Command to run there.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
}

/// A round in virtual time.
#[derive(Debug, Args)]
pub(crate) struct RoundArguments {
    #[command(flatten)]
    pub(crate) medium: MediumArguments,
    /// Bytes of a payload.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) payload: usize,
    /// Payload bytes of a packet.
    #[arg(long, default_value_t = 1_200)]
    pub(crate) packet: usize,
    /// Time in each slot beside that of the payload.
    #[arg(long, default_value = "1ms", value_parser = humantime::parse_duration)]
    pub(crate) guard: Duration,
    /// Largest error of a clock; up to half of the guard, nothing is lost.
    #[arg(long, default_value = "500us", value_parser = humantime::parse_duration)]
    pub(crate) clock_error: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct DrawArguments {
    /// Graph.
    #[arg(long, default_value = "rg:n=8,r=0.6,seed=1")]
    pub(crate) graph: String,
    /// Design with a plan of one step.
    #[arg(long, default_value = "d-psgd")]
    pub(crate) design: Method,
    #[command(flatten)]
    pub(crate) round: RoundArguments,
    /// File for the SVG document.
    #[arg(long, short, value_name = "FILE", default_value = "air.svg")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Graph; repeat it for several.
    #[arg(long = "graph", required = true)]
    pub(crate) graphs: Vec<String>,
    /// Design, as `mingle plan make` names them; repeat it for several.
    #[arg(long = "design", required = true)]
    pub(crate) designs: Vec<Method>,
    #[command(flatten)]
    pub(crate) round: RoundArguments,
    /// Runs of senders without slots; their median counts.
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: u32,
    /// File for all numbers, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl MediumArguments {
    pub(crate) fn settings(&self) -> AirSettings {
        AirSettings {
            rate: self.rate,
            frame_overhead: self.overhead,
            loss: if self.loss_by_distance { AirLoss::AtRange(self.loss) } else { AirLoss::Uniform(self.loss) },
            seed: self.seed,
            ..AirSettings::default()
        }
    }
}

impl RunArguments {
    pub(crate) fn settings(&self) -> AirSettings {
        AirSettings {
            carrier_sense: self.carrier_sense.then(CarrierSense::default),
            acknowledgements: self.acknowledge.then(Acknowledgements::default),
            ..self.medium.settings()
        }
    }
}
