//! Arguments of the measurements.

use clap::{Args, Subcommand};

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Send messages from one end to the other of this machine, over plain TCP, libp2p alone, and Mingle, in turn
    Wire(BenchWireArgs),
    /// Count the iterations that solvers of coupled problems take, by step and mixing matrix; with pictures
    Solvers(BenchSolversArgs),
}

/// Arguments of `bench solvers`.
#[derive(Args, Clone, Debug)]
pub(crate) struct BenchSolversArgs {
    /// Problems of each kind, drawn at random; medians are printed
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) seeds: u32,
    /// A generator of topologies with 50 nodes, without its seed
    #[arg(long, value_name = "GENERATOR", default_value = "rg:n=50,r=0.5")]
    pub(crate) topology: String,
    /// Draw both, as geometric means, into this folder
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<std::path::PathBuf>,
}

/// Arguments of `bench wire`.
#[derive(Args, Clone, Debug)]
pub(crate) struct BenchWireArgs {
    /// Parameters of the model that is sent, four bytes each; may be given more than once
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_values_t = [1_663_370, 25_000_000],
        value_parser = clap::value_parser!(u32).range(1..=i64::from(u32::MAX >> 4))
    )]
    pub(crate) parameters: Vec<u32>,
    /// Messages of each size that each of them sends; medians are printed
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) turns: u32,
}
