//! Methods of learning in rounds compared over seeds: one problem, learned in several ways by all nodes of a plan in this process.
//!
//! ```text
//!   suite.toml (problem, clients or plan, seeds, methods) -> every seed x method -> runs.jsonl, a line a run -> report
//! ```
//!
//! A method is a name and lines that stand in place of those of the problem file; nothing here knows what they mean, or which kinds of
//! problems there are: whoever runs a suite makes a [`RoundTask`](mingle_solving::RoundTask) of each [`MethodRun::problem`]. Runs go over the
//! collectives of real peers, so what a row says is what a swarm would have come to. A run is known by a hash of the plan and of the
//! problem as it is with its method and seed; one that is there is not run again.

mod report;
mod runs;
mod suite;
mod summary;

pub use report::{html, markdown, text};
pub use runs::{MethodRecord, MethodRun, all_method_runs};
pub use suite::{MethodEntry, MethodSuite};
pub use summary::{Difference, MethodComparison, MethodRow, MetricTable, Moments, compare_methods};
