//! The length of slots.

use std::time::Duration;

use crate::packet::symbol_bytes;
use crate::rate::AirRate;

/// Packets of a payload for each packet of repair that a slot has room for.
const REPAIR_PART: f64 = 4.0;
/// The guard: at least so long, and this part of the airtime of a payload.
const LEAST_GUARD: Duration = Duration::from_millis(4);
const GUARD_PART: f64 = 0.02;

/// The length of slots: the airtime of a payload with its repair symbols, and a guard for clocks and schedulers.
///
/// ```
/// use mingle_multicast::SlotLength;
/// // 86 packets of 1,200 bytes at 10 Mbit/s take 82.6 ms.
/// let length = SlotLength::of(100_000, 1_200, "10mbit".parse().unwrap());
/// assert_eq!(length.slot().as_micros(), 107_200);
/// assert_eq!(length.guard().as_millis(), 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLength {
    slot: Duration,
    guard: Duration,
}

impl SlotLength {
    /// Slots for payloads of so many bytes, in packets of this length, at a rate.
    pub fn of(payload_bytes: usize, packet_bytes: u16, rate: AirRate) -> Self {
        let packets = payload_bytes.div_ceil(usize::from(symbol_bytes(packet_bytes)).max(1));
        let airtime = packets as f64 * f64::from(packet_bytes) / rate.bytes_per_second();
        let guard = LEAST_GUARD.max(Duration::from_secs_f64(airtime * GUARD_PART));
        Self { slot: Duration::from_secs_f64(airtime * (1.0 + 1.0 / REPAIR_PART)) + guard, guard }
    }

    /// The whole.
    pub fn slot(self) -> Duration {
        self.slot
    }

    /// The part at its end that is left free.
    pub fn guard(self) -> Duration {
        self.guard
    }
}
