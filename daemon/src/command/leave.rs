//! `mingle leave`: hand over all weight, and go for good.

use crate::cli::RunArgs;
use crate::failure::Outcome;

/// Starts the peer with the options that it was run with; as soon as its neighbours are there, it leaves.
pub(super) fn execute(arguments: RunArgs, json: bool) -> Outcome {
    super::run::execute(&RunArgs { leaves: true, ..arguments }, json)
}
