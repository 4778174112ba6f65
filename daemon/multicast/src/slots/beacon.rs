//! The packet before a payload that keeps the slots of neighbours together.

use serde::{Deserialize, Serialize};

use super::pauses::Pauses;

/// The sender's times. They are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotBeacon {
    /// The step of the payload.
    pub step: u64,
    /// Time since the slots of that step began.
    pub elapsed: u64,
    /// Length of a slot.
    pub slot: u32,
    /// Pauses of the present epoch.
    pub pauses: Pauses,
    /// The longest pauses that are wanted for the next epoch, as far as the sender knows.
    pub wanted: Pauses,
    /// The node whose times the sender follows.
    pub root: u32,
    /// Links between that node and the sender.
    pub hops: u16,
    /// The newest round of that node that the sender knows of.
    pub beat: u64,
}

impl SlotBeacon {
    /// The beacon as bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Numbers alone: growing a vector is all that encoding them can do.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// The beacon at the start of these bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::take_from_bytes(bytes).ok().map(|(beacon, _)| beacon)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn beacons_are_read_as_they_are_written_and_changed_ones_do_not_panic() {
        let pauses = Pauses { round: 40_000, step: 3 };
        let wanted = Pauses { round: u32::MAX, step: 0 };
        let beacon = SlotBeacon { step: u64::MAX, elapsed: 7, slot: 92_000, pauses, wanted, root: 3, hops: 9, beat: 1 };
        let bytes = beacon.encode();
        assert_eq!(SlotBeacon::decode(&bytes), Some(beacon));
        assert_eq!(SlotBeacon::decode(&bytes[1..bytes.len() - 1]), None);
        mingle_mutations::for_each_input("beacons of slots", &[bytes], |input| {
            let _ = SlotBeacon::decode(input);
        });
    }
}
