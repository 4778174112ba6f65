//! Bounds on the numbers of a training: values beyond them are slips of the finger, or invalid.

use std::ops::RangeInclusive;

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
