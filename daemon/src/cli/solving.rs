//! Arguments of `mingle solve` and `mingle recommend`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use mingle_peer::solving::SumPolicy;

use super::{HomeArgs, Switch};

/// Options of the sums of a problem.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SumArgs {
    /// Of a problem: add numbers up in clear, all members or none; else sums are masked from 3 members on (docs/privacy.md)
    #[arg(long, value_enum, default_value_t = Switch::Off, num_args = 0..=1, default_missing_value = "on", value_name = "ON|OFF")]
    pub(crate) plain_sums: Switch,
    /// Of a problem: take part in no sum of fewer members, 3 or more [default: 3, and 2 members add up in clear]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..))]
    pub(crate) least_members: Option<u32>,
}

impl From<SumArgs> for SumPolicy {
    fn from(arguments: SumArgs) -> Self {
        Self {
            plain: arguments.plain_sums == Switch::On,
            least_members: arguments.least_members.map(|least| least as usize),
        }
    }
}

/// Arguments of `solve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SolveArgs {
    /// The problem: a TOML file of the kind sparse-regression, resource-allocation, clique-coupling or network-lasso
    /// (docs/solving.md), robust-classification or robust-regression (docs/robust-models.md); recommendation (docs/recommendations.md),
    /// node-classification (docs/graphs.md) or training (docs/private-training.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) problem: PathBuf,
    /// The plan that its nodes solve it along
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: PathBuf,
    /// Of a training with model = "trainer": start this command for each node, with its number for {node}, and train its model over sums
    #[arg(long, value_name = "COMMAND", conflicts_with = "compare")]
    pub(crate) trainer: Option<String>,
    /// Lose this share of all messages on the way; the solution does not depend on it
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) loss: f64,
    #[command(flatten)]
    pub(crate) sums: SumArgs,
    /// Seed of delays, losses and the noise of --compare
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Of a robust model: compare it with its competitors on these test data, a table that is dealt out or one for each node with
    /// {node} in its name, under noise of which --seed decides
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<String>,
    /// Write solution.json, residuals.jsonl and residuals.svg into this folder, of learning in rounds learned.json and a folder for each node with its model; with --compare comparison.json and
    /// comparison.svg too
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// Arguments of `recommend`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecommendArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The recommender [default: that of the home]
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Option<PathBuf>,
    /// The user, as its interactions call it
    #[arg(long, value_name = "ID")]
    pub(crate) user: String,
    /// Number of items
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) top: usize,
}

/// A problem of `demo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProblemKind {
    /// Hospitals find out together which findings indicate a heart disease; each keeps its patients.
    SparseRegression,
    /// Wards share out beds; neighbouring groups of wards have a budget each.
    ResourceAllocation,
    /// Hospitals find a model together that still recognises the ill when measuring devices drift.
    RobustClassification,
    /// Shops learn a recommender each, from interactions with a planted structure that stay where they are.
    Recommendation,
    /// Clients with parts of a planted graph learn to distinguish the classes of their nodes, each with a filter of its
    /// own.
    NodeClassification,
    /// Members train one model on digits over masked sums, and share the noise of differential privacy.
    Training,
}
