//! The words of `mingle graph`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What to do with a graph of nodes that have features and classes.
#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Nodes, edges, classes, homophily, and what is wrong with it; with --clients of each part too
    Show(GraphShowArgs),
    /// Compare learning alone, federated averaging and personal weights over seeds, with paired tests
    Compare(GraphCompareArgs),
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

/// Arguments of `graph compare`.
#[derive(Args, Debug)]
pub(crate) struct GraphCompareArgs {
    /// A problem of kind node-classification, whose data are one graph
    #[arg(long, value_name = "FILE")]
    pub(crate) problem: PathBuf,
    /// Clients that the graph is dealt out to
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(crate) clients: usize,
    /// Runs of each, with seeds from that of the problem on
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) seeds: u64,
}
