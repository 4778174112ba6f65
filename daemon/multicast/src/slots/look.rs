//! What people and senders ask of a rhythm.

use std::time::Duration;

use super::rhythm::{Rhythm, time};

impl Rhythm {
    /// The length of a slot.
    pub fn slot(&self) -> Duration {
        time(self.layout.slot)
    }

    /// The mean length of a round, with its pauses.
    pub fn round(&self) -> Duration {
        time(self.mean_round())
    }

    /// The pause before a round.
    pub fn pause(&self) -> Duration {
        time(i64::from(self.pauses().round))
    }

    /// The slot of the link to a receiver in a step.
    pub fn slot_to(&self, receiver: u32, step: u64) -> Option<u32> {
        self.layout.table.slot_to(receiver, step)
    }
}
