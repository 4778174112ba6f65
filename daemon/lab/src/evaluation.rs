//! Comparing designs by experiment: a suite of simulations, their records, and a report that can be read without any program
//! but a browser.
//!
//! ```text
//!   suite.toml -> every design x topology x split x seed -> runs.jsonl, a line a run -> report.html
//! ```
//!
//! A run is known by a hash of all that decides about its result, so a suite that was interrupted, or changed in part, goes on
//! with what is missing.

mod figures;
mod page;
mod records;
mod runs;
mod suite;
mod summary;
mod tables;

pub(crate) use page::{STYLE, escaped};
pub use page::{page, summary};
pub use records::{Keyed, Record, Records, RecordsError};
pub use runs::{Run, all_runs};
pub use suite::{DesignEntry, SplitEntry, Suite, SuiteError, TopologyEntry, Training};
