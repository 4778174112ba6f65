//! The bounds of numbers on the command line: beyond them a number is a slip of the finger, or means nothing.

use std::ops::RangeInclusive;
use std::time::Duration;

use mingle_peer::{Error, ErrorKind, Result};

/// Rounds of a run: a round a millisecond for thirty years.
pub(crate) const MOST_ROUNDS: u64 = 1_000_000_000_000;
/// Samples in a gradient step.
pub(crate) const LARGEST_BATCH: u64 = 1 << 20;
/// Gradient steps in a round.
pub(crate) const MOST_LOCAL_STEPS: u64 = 1_000_000;
/// The shortest wait where there is to be one.
pub(crate) const SHORTEST_TIME: Duration = Duration::from_millis(1);
/// The longest wait in a round, or at its end.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
/// The longest wait for others to come, or for the training of a round: a week.
pub(crate) const LONGEST_JOIN: Duration = Duration::from_secs(604_800);
/// Who is silent for less may only be restarting.
pub(crate) const SHORTEST_EVICTION: Duration = Duration::from_secs(3_600);
/// A year.
pub(crate) const LONGEST_EVICTION: Duration = Duration::from_secs(8_760 * 3_600);
/// Rounds that a neighbour may lag behind.
pub(crate) const LARGEST_STALENESS: u64 = 1_000_000;

/// Refuses a value of `--option` outside of `bounds`.
///
/// # Errors
/// The value and both bounds, in a sentence.
pub(crate) fn check(option: &str, value: u64, bounds: RangeInclusive<u64>) -> Result {
    if bounds.contains(&value) {
        return Ok(());
    }
    let message = format!("--{option} {value}: it must be between {} and {}", bounds.start(), bounds.end());
    Err(Error::new(ErrorKind::BadInput, message))
}

/// Refuses a time of `--option` outside of `bounds`.
///
/// # Errors
/// The value and both bounds, in a sentence.
pub(crate) fn check_time(option: &str, value: Duration, bounds: RangeInclusive<Duration>) -> Result {
    if bounds.contains(&value) {
        return Ok(());
    }
    let [value, shortest, longest] = [value, *bounds.start(), *bounds.end()].map(humantime::format_duration);
    let message = format!("--{option} {value}: it must be between {shortest} and {longest}");
    Err(Error::new(ErrorKind::BadInput, message))
}
