//! Comparison of methods of learning in rounds over seeds: all nodes of a plan in this process learn one problem in
//! several ways.
//!
//! ```text
//!   suite.toml (problem, clients or plan, seeds, methods) -> every seed x method -> runs.jsonl, a line a run -> report
//! ```
//!
//! A method is a name and lines that replace those of the problem file. Nothing here depends on their meaning, or on
//! the kinds of problems: the caller makes a [`RoundTask`](mingle_solving::RoundTask) of each [`MethodRun::problem`].
//! Runs go over the collectives of real peers, so a row is the result that a swarm would have had. A run is identified
//! by a hash of the plan and of the problem with its method and seed; one that has a result is not run again.

mod report;
mod runs;
mod suite;
mod summary;

pub use report::{html, markdown, text};
pub use runs::{MethodRecord, MethodRun, all_method_runs};
pub use suite::{MethodEntry, MethodSuite};
pub use summary::{Difference, MethodComparison, MethodRow, MetricTable, Moments, compare_methods};
