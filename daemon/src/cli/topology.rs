//! Arguments of `mingle topology`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Subcommands of `topology`.
#[derive(Debug, Subcommand)]
pub(crate) enum TopologyCommand {
    /// Nodes, edges, degrees, diameter, and what would split it
    Show(TopologyShowArgs),
    /// Write a topology in another format
    Convert(TopologyConvertArgs),
    /// Make a topology: random geometric, grid, windmill and others
    Generate(TopologyGenerateArgs),
}

/// Arguments of `topology show`.
#[derive(Args, Debug)]
pub(crate) struct TopologyShowArgs {
    /// A file (JSON, node-link data, edge list, GraphML, GML, a plan) or a generator, such as rg:n=33,r=0.5,seed=0
    #[arg(value_name = "FILE|GENERATOR")]
    pub(crate) topology: String,
}

/// Arguments of `topology convert`.
#[derive(Args, Debug)]
pub(crate) struct TopologyConvertArgs {
    /// A file (JSON, node-link data, edge list, GraphML, GML, a plan) or a generator
    #[arg(value_name = "FILE|GENERATOR")]
    pub(crate) topology: String,
    /// Where to write it: x.json, x.graphml, x.edges or x.dot
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// Arguments of `topology generate`.
#[derive(Args, Debug)]
pub(crate) struct TopologyGenerateArgs {
    /// rg:n=33,r=0.5,seed=0, erdos-renyi:n=20,p=0.3,seed=1, windmill:cliques=3,size=21, ring:n=8, grid:rows=4,cols=4,
    /// star:n=6 or complete:n=6
    #[arg(value_name = "GENERATOR")]
    pub(crate) generator: String,
    /// Where to write it: x.json, x.graphml, x.edges or x.dot [default: print it as JSON]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
