//! The rate of a sender: never a burst that a receiver cannot buffer, and slower where receivers lose.

use std::time::Duration;

use crate::rate::AirRate;

/// Packets at once. The receive buffer that Linux gives a socket by default holds about 90.
const BURST_PACKETS: f64 = 16.0;
/// The first rate, where none is given.
const FIRST_BITS: u64 = 50_000_000;
/// The bounds of a rate that adapts.
const LEAST_BITS: u64 = 4_000_000;
const MOST_BITS: u64 = 1_000_000_000;
/// Losses below which the rate grows, and above which it shrinks.
const FEW_LOST: f64 = 0.005;
const MANY_LOST: f64 = 0.03;
/// The part of a loss that is still expected after a pass without.
const LOSS_KEPT: f64 = 0.98;
/// Bounds of the share of repair symbols that is sent ahead. A slot has room for the larger one.
const LEAST_AHEAD: f64 = 1.0 / 32.0;
const MOST_AHEAD: f64 = 0.25;
const FASTER: f64 = 1.25;
const SLOWER: f64 = 0.7;

/// A bucket of bytes: holds packets back that would exceed the rate.
///
/// Symbols pass it; probes, and the first repair symbol after a question, do not.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    burst_bytes: f64,
    tokens: f64,
    filled_at: Duration,
}

impl Pacer {
    /// A full bucket, for packets of this length.
    pub fn new(packet_bytes: u16) -> Self {
        Self::of_burst(BURST_PACKETS * f64::from(packet_bytes))
    }

    /// A bucket for slots: two packets at once, so that none waits long in the interface, and beacons are of the present.
    pub fn in_slots(packet_bytes: u16) -> Self {
        Self::of_burst(2.0 * f64::from(packet_bytes))
    }

    fn of_burst(burst_bytes: f64) -> Self {
        Self { burst_bytes, tokens: burst_bytes, filled_at: Duration::ZERO }
    }

    /// Takes the bytes of a packet at a time since any fixed point. Returns the time to wait and ask again, if they
    /// cannot be had yet.
    pub fn take(&mut self, now: Duration, bytes: usize, rate: AirRate) -> Option<Duration> {
        let since = now.saturating_sub(self.filled_at).as_secs_f64();
        self.filled_at = now.max(self.filled_at);
        self.tokens = (self.tokens + since * rate.bytes_per_second()).min(self.burst_bytes);
        let lacking = bytes as f64 - self.tokens;
        if lacking > 0.0 {
            return Some(Duration::from_secs_f64(lacking / rate.bytes_per_second()));
        }
        self.tokens -= bytes as f64;
        None
    }
}

/// The rate of a sender: the given one, or one that grows until receivers lose more than random losses explain.
#[derive(Clone, Copy, Debug)]
pub struct RateControl {
    given: Option<AirRate>,
    rate: AirRate,
    /// The share of recent passes that receivers lost; it falls slowly.
    lost: f64,
}

impl RateControl {
    /// The given rate, or an adaptive one.
    pub fn new(given: Option<AirRate>) -> Self {
        Self { given, rate: given.unwrap_or(AirRate::of_bits_per_second(FIRST_BITS)), lost: 0.0 }
    }

    /// The present rate.
    pub fn rate(&self) -> AirRate {
        self.rate
    }

    /// The share of repair symbols to be sent with an object in a slot: what recent losses would have needed, and some more.
    pub fn repair_ahead(&self) -> f64 {
        let needed = self.lost / (1.0 - self.lost.min(0.5));
        (1.25 * needed).clamp(LEAST_AHEAD, MOST_AHEAD)
    }

    /// Learns the share of a pass that the receiver lost that lost most.
    pub fn learn(&mut self, lost: f64) {
        self.lost = lost.max(self.lost * LOSS_KEPT);
        if self.given.is_some() {
            return;
        }
        let factor = if lost < FEW_LOST {
            FASTER
        } else if lost > MANY_LOST {
            SLOWER
        } else {
            1.0
        };
        let bits = (self.rate.bits_per_second() as f64 * factor) as u64;
        self.rate = AirRate::of_bits_per_second(bits.clamp(LEAST_BITS, MOST_BITS));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_second_of_packets_takes_a_second() {
        let (mut pacer, rate) = (Pacer::new(1_200), "1mbit".parse().unwrap());
        let (mut now, mut sent) = (Duration::ZERO, 0);
        while now < Duration::from_secs(10) {
            match pacer.take(now, 1_200, rate) {
                None => sent += 1_200,
                Some(wait) => now += wait + Duration::from_nanos(1),
            }
        }
        assert!((1_250_000..1_250_000 + 20 * 1_200).contains(&sent), "{sent} bytes in 10 s at 125,000 bytes a second");
    }

    #[test]
    fn an_adaptive_rate_grows_without_losses_and_shrinks_with_them_and_a_given_one_stays() {
        let mut adaptive = RateControl::new(None);
        let first = adaptive.rate();
        adaptive.learn(0.0);
        assert!(adaptive.rate() > first);
        (0..100).for_each(|_| adaptive.learn(0.5));
        assert_eq!(adaptive.rate().bits_per_second(), LEAST_BITS);
        (0..100).for_each(|_| adaptive.learn(0.0));
        assert_eq!(adaptive.rate().bits_per_second(), MOST_BITS);
        let mut given = RateControl::new(Some("20mbit".parse().unwrap()));
        given.learn(0.9);
        assert_eq!(given.rate().to_string(), "20mbit");
    }
}
