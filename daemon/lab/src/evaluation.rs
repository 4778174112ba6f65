//! Comparison of designs by experiment: a suite of simulations, their records, and a report that needs only a browser.
//!
//! ```text
//!   suite.toml -> every design x topology x split x seed -> runs.jsonl, a line a run -> report.html
//! ```
//!
//! A run is identified by a hash of everything that determines its result. So a suite that was interrupted, or changed
//! in part, goes on with the runs that are missing.

mod figures;
mod page;
mod records;
mod runs;
mod suite;
mod summary;
mod table;

pub use page::{page, summary};
pub use records::{Keyed, Records, RecordsError, RunRecord};
pub use runs::{Run, all_runs};
pub(crate) use suite::read_suite_text;
pub use suite::{DesignEntry, SplitEntry, Suite, SuiteError, TopologyEntry, Training};
