//! The scheduler's lateness.

use std::time::Duration;

use serde::Serialize;

/// Buckets of powers of two microseconds: up to an hour.
const BUCKETS: usize = 32;

/// The lateness of many events, in seconds. Percentiles are upper ends of powers of two microseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// The number of events.
    pub events: u64,
    /// The mean.
    pub mean_s: f64,
    /// An upper bound of half of the events.
    pub median_s: f64,
    /// An upper bound of 99 of 100 events.
    pub p99_s: f64,
    /// The largest.
    pub max_s: f64,
}

/// Collects the lateness of events.
#[derive(Debug, Clone, Default)]
pub(super) struct LatenessCounter {
    events: u64,
    sum: Duration,
    max: Duration,
    /// By the bits of the lateness in microseconds.
    buckets: [u64; BUCKETS],
}

impl LatenessCounter {
    pub(super) fn add(&mut self, late: Duration) {
        self.events += 1;
        self.sum += late;
        self.max = self.max.max(late);
        let bits = u128::BITS - late.as_micros().leading_zeros();
        self.buckets[(bits as usize).min(BUCKETS - 1)] += 1;
    }

    pub(super) fn lateness(&self) -> Lateness {
        let bound = |share: f64| {
            let mut seen = 0;
            let mut bounds = self.buckets.iter().enumerate();
            let reaches = |count: u64| count as f64 >= share * self.events as f64;
            let bucket = bounds.find_map(|(bits, &count)| {
                seen += count;
                reaches(seen).then_some(bits)
            });
            bucket.map_or(0.0, |bits| (1_u64 << bits) as f64 * 1e-6).min(self.max.as_secs_f64())
        };
        Lateness {
            events: self.events,
            mean_s: self.sum.as_secs_f64() / self.events.max(1) as f64,
            median_s: bound(0.5),
            p99_s: bound(0.99),
            max_s: self.max.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_bound_what_was_seen() {
        let mut counter = LatenessCounter::default();
        assert_eq!(counter.lateness(), Lateness::default());
        (0..98).for_each(|_| counter.add(Duration::from_micros(50)));
        counter.add(Duration::from_micros(900));
        counter.add(Duration::from_millis(30));
        let lateness = counter.lateness();
        assert_eq!((lateness.events, lateness.median_s, lateness.p99_s), (100, 64e-6, 1_024e-6));
        assert!((lateness.max_s - 0.03).abs() < 1e-12);
        assert!((lateness.mean_s - 0.000_358).abs() < 1e-9, "{}", lateness.mean_s);
    }
}
