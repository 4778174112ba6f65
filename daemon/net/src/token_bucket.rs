//! Token buckets: rate limits with a burst and a sustained rate.

use std::time::{Duration, Instant};

/// A rate limit: `capacity` events at once, then `per_second` events a second.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    capacity: f64,
    per_second: f64,
    tokens: f64,
    filled_at: Option<Instant>,
}

impl TokenBucket {
    /// A full bucket.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use mingle_net::token_bucket::TokenBucket;
    ///
    /// let (mut bucket, now) = (TokenBucket::new(2.0, 10.0), Instant::now());
    /// assert!(bucket.take(now) && bucket.take(now) && !bucket.take(now));
    /// assert_eq!(bucket.wait(now), Duration::from_millis(100));
    /// assert!(bucket.take(now + Duration::from_millis(101)));
    /// ```
    pub const fn new(capacity: f64, per_second: f64) -> Self {
        Self { capacity, per_second, tokens: capacity, filled_at: None }
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let is_there = self.tokens >= 1.0;
        if is_there {
            self.tokens -= 1.0;
        }
        is_there
    }

    /// Time until a token is available; zero if one is.
    pub fn wait(&mut self, now: Instant) -> Duration {
        self.fill(now);
        Duration::from_secs_f64((1.0 - self.tokens).max(0.0) / self.per_second)
    }

    fn fill(&mut self, now: Instant) {
        let since = self.filled_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.filled_at = Some(now);
        self.tokens = (self.tokens + since.as_secs_f64() * self.per_second).min(self.capacity);
    }
}
