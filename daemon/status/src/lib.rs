//! The observable state of a peer: its events, its status, and its results.
//!
//! [`events`] go to any number of readers, as lines of JSON and as sentences. [`status`] is one snapshot, of which
//! every reader sees the newest. [`results`] stay in the home when a run is over, and [`last_run`] summarises them.
//! [`openmetrics`] is the snapshot for Prometheus. [`stop`] has the requests to stop that a peer hears.
//! [`node_warnings`] has the words of warnings about a node's events, and [`warnings`] limits how many of each cause
//! reach a person. `mingle-peer` publishes all of them.

pub mod encodings;
pub mod events;
pub mod last_run;
pub mod latest_rounds;
pub mod node_warnings;
pub mod openmetrics;
pub mod overlap;
pub mod results;
pub mod snapshot_pace;
pub mod status;
pub mod stop;
pub mod warnings;
