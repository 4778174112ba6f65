//! The words of `mingle solve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `solve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SolveArgs {
    /// The problem: a TOML file of the kind sparse-regression or resource-allocation (docs/solving.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) problem: PathBuf,
    /// The plan that its nodes solve it along
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: PathBuf,
    /// Lose this share of all messages on the way; the solution does not depend on it
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) loss: f64,
    /// Seed of delays and losses
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write solution.json, residuals.jsonl and residuals.svg into this folder
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// A problem that `demo` solves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProblemKind {
    /// Hospitals find out together which findings tell of a heart disease; each keeps its patients.
    SparseRegression,
    /// Wards share out beds; neighbouring groups of wards have a budget each.
    ResourceAllocation,
}
