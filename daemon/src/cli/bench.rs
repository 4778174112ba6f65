//! Arguments of the measurements.

use clap::{Args, Subcommand};

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Send messages from one end to the other of this machine, over plain TCP, libp2p alone, and Mingle, in turn
    Wire(BenchWireArgs),
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
