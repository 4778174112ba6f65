//! The bounds of times on the command line: beyond them a number is a slip of the finger, or means nothing.

use std::ops::RangeInclusive;
use std::time::Duration;

pub(crate) use mingle_builtin::limits::{MOST_LOCAL_STEPS, check};
use mingle_peer::{Error, ErrorKind, Result};

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
