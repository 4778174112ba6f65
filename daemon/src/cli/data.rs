//! Arguments of `mingle data`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use mingle_models::ObjectiveKind;

/// Subcommands of `data`.
#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Write down which columns, classes and scaling the data have, for peers that train together with other files
    Card(DataCardArgs),
    /// Add a table up, so that several sites have one card over the rows of all: exact sums of each column, and no row
    Sums(DataSumsArgs),
}

/// Arguments of `data card`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DataCardArgs {
    /// digits, idx:DIR (MNIST, Fashion-MNIST), cifar10:DIR, csv:FILE[,label=NAME|INDEX], text or text:FILE, of which the last two take ,tokens=bytes too
    #[arg(long, default_value = "digits")]
    pub(crate) data: String,
    /// Make the card of several sites, over the rows of all, of the files that each of them wrote with `mingle data sums`
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["data", "task", "seed"])]
    pub(crate) sums: Vec<PathBuf>,
    /// The objective: classification, or regression, where the label of csv:FILE is a number to predict
    #[arg(long, default_value_t = ObjectiveKind::Classification, value_name = "TASK")]
    pub(crate) task: ObjectiveKind,
    /// The card to write, as JSON; peers take it with `mingle run --card FILE` [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Seed of the run: it decides which samples of a table are held out, and take no part in the scaling
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Arguments of `data sums`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DataSumsArgs {
    /// csv:FILE[,label=NAME|INDEX]
    #[arg(long)]
    pub(crate) data: String,
    /// The objective: classification, or regression, where the label is a number to predict
    #[arg(long, default_value_t = ObjectiveKind::Classification, value_name = "TASK")]
    pub(crate) task: ObjectiveKind,
    /// The sums to write, as JSON; with those of all sites, `mingle data card --sums FILE...` makes their card
    /// [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Seed of the run: it decides which samples are held out, and take no part in the sums
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}
