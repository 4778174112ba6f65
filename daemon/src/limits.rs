//! Bounds on times on the command line: values beyond them are slips of the finger, or invalid.

use std::ops::RangeInclusive;
use std::time::Duration;

pub(crate) use mingle_builtin::limits::{MOST_LOCAL_STEPS, check};
use mingle_peer::{Error, ErrorKind, Result};

/// Shortest wait that is possible.
pub(crate) const SHORTEST_TIME: Duration = Duration::from_millis(1);
/// Longest wait in a round, or at its end.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
/// Longest wait for other peers, or for the training of a round: a week.
pub(crate) const LONGEST_JOIN: Duration = Duration::from_secs(604_800);
/// Shortest eviction time: a peer that is silent for less may be restarting.
pub(crate) const SHORTEST_EVICTION: Duration = Duration::from_secs(3_600);
/// Longest eviction time: a year.
pub(crate) const LONGEST_EVICTION: Duration = Duration::from_secs(8_760 * 3_600);
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
