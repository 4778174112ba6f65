//! Bounds on the numbers of a training, and on times on the command line: values beyond them are slips of the finger, or
//! invalid.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Rounds of a run.
pub use mingle_peer::plan_apply::MOST_ROUNDS;
use mingle_peer::{Error, ErrorKind, Result};

/// Samples in a gradient step.
pub const LARGEST_BATCH: u64 = 1 << 20;
/// Gradient steps in a round.
pub const MOST_LOCAL_STEPS: u64 = 1_000_000;

/// Rounds that a neighbour may lag behind.
pub const LARGEST_STALENESS: u64 = 1_000_000;

/// Refuses a value of `--option` outside of `bounds`.
///
/// # Errors
/// Contains the value and both bounds, in a sentence.
pub fn check(option: &str, value: u64, bounds: RangeInclusive<u64>) -> Result {
    if bounds.contains(&value) {
        return Ok(());
    }
    let message = format!("--{option} {value}: it must be between {} and {}", bounds.start(), bounds.end());
    Err(Error::new(ErrorKind::BadInput, message))
}

/// Shortest wait that is possible.
pub const SHORTEST_TIME: Duration = Duration::from_millis(1);
/// Longest wait in a round, or at its end.
pub const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
/// Longest wait for other peers, or for the training of a round: a week.
pub const LONGEST_JOIN: Duration = Duration::from_secs(604_800);
/// Shortest eviction time: a peer that is silent for less may be restarting.
pub const SHORTEST_EVICTION: Duration = Duration::from_secs(3_600);
/// Shortest eviction time where a problem is solved, whose peers all wait for a silent one.
pub const SHORTEST_EVICTION_FROM_PROBLEM: Duration = Duration::from_secs(15);
/// Longest eviction time: a year.
pub const LONGEST_EVICTION: Duration = Duration::from_secs(8_760 * 3_600);

/// Refuses a time of `--option` outside of `bounds`.
///
/// # Errors
/// The value and both bounds, in a sentence.
pub fn check_time(option: &str, value: Duration, bounds: RangeInclusive<Duration>) -> Result {
    if bounds.contains(&value) {
        return Ok(());
    }
    let [value, shortest, longest] = [value, *bounds.start(), *bounds.end()].map(humantime::format_duration);
    let message = format!("--{option} {value}: it must be between {shortest} and {longest}");
    Err(Error::new(ErrorKind::BadInput, message))
}
