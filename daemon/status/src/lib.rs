//! What a peer shows of itself: what happens, where it stands, and what it leaves.
//!
//! [`events`] go to any number of readers, as lines of JSON and as sentences; [`status`] is one snapshot, of which everybody sees the
//! newest; [`results`] stay in the home when a run is over, and [`last_run`] says how that was. [`warnings`] says which of them a person gets. `mingle-peer` gives all of them out.

pub mod events;
pub mod last_run;
pub mod results;
pub mod status;
pub mod warnings;
