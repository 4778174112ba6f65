//! Sending the bytes of models: at a common rate for all followers, and to none that hardly reads.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{AsyncWrite, AsyncWriteExt};

/// Bytes written at a time.
const CHUNK: usize = 64 << 10;
/// Slowest follower, in bytes a second: 2 Mbit/s. A slower one would keep old versions in memory.
const SLOWEST: u64 = 250_000;
/// Time beyond that.
const GRACE: Duration = Duration::from_secs(20);

/// The rate at which all followers together are sent bytes.
#[derive(Debug)]
pub(super) struct SendingRate {
    bytes_per_second: u64,
    free_at: Mutex<Option<Instant>>,
}

impl SendingRate {
    pub(super) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), free_at: Mutex::new(None) }
    }

    /// Reserves the line for so many bytes. Returns the time to wait for them.
    fn reserve(&self, bytes: usize, now: Instant) -> Duration {
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = free_at.unwrap_or(now).max(now);
        *free_at = Some(begins + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64));
        begins - now
    }
}

/// Sends `bytes` at the common rate.
///
/// # Errors
/// The follower has gone, or reads less than it must.
pub(super) async fn send<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8], rate: &SendingRate) -> io::Result<()> {
    let mut may_take = GRACE + Duration::from_millis(bytes.len() as u64 * 1000 / SLOWEST);
    for chunk in bytes.chunks(CHUNK) {
        // The wait for the line is not the fault of the follower.
        tokio::time::sleep(rate.reserve(chunk.len(), Instant::now())).await;
        let began = Instant::now();
        tokio::time::timeout(may_take, stream.write_all(chunk)).await??;
        may_take = may_take.saturating_sub(began.elapsed());
    }
    tokio::time::timeout(may_take, stream.flush()).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn followers_share_one_rate() {
        let (rate, now) = (SendingRate::new(1_000_000), Instant::now());
        assert_eq!(rate.reserve(500_000, now), Duration::ZERO);
        assert_eq!(rate.reserve(250_000, now), Duration::from_millis(500));
        assert_eq!(rate.reserve(1, now + Duration::from_millis(250)), Duration::from_millis(500));
        assert_eq!(rate.reserve(1, now + Duration::from_secs(60)), Duration::ZERO, "nothing is saved up");
    }
}
