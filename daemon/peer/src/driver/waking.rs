//! Times at which the driver wakes.

use std::time::{Duration, Instant};

use super::Driver;

impl Driver<'_> {
    /// The time at which the node needs a tick.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let deadline = self.node.next_deadline()?;
        self.member.started.checked_add(Duration::from_micros(deadline.micros()))
    }
}

/// Sleeps until a time; for ever without one.
pub(super) async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
