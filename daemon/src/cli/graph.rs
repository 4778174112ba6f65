//! Arguments of `mingle graph`.

use clap::{Args, Subcommand};

/// Subcommands of `graph`, for graphs whose nodes have features and classes.
#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Nodes, edges, classes, homophily, and what is wrong with it; with --clients of each part too
    Show(GraphShowArgs),
}

/// Arguments of `graph show`.
#[derive(Args, Debug)]
pub(crate) struct GraphShowArgs {
    /// A folder, a prefix of files, an .npz, or two-characters, the graph that the program carries (docs/graphs.md)
    #[arg(long, default_value = "two-characters", value_name = "GRAPH")]
    pub(crate) data: String,
    /// Deal it out to so many clients and show each
    #[arg(long, value_name = "N")]
    pub(crate) clients: Option<usize>,
    /// Seed of the partition
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}
