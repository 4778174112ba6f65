//! The room that the records of a node take on the disk.

use mingle_protocol::record::MAX_HOST_BYTES;
use mingle_protocol::{Record, RecordRoom};

use super::StoreError;
use crate::records::folder::MAX_SLOTS;

/// The most bytes of slots that are made before they are needed, for the worst that can be owed.
const MOST_BYTES_MADE_BEFORE: u64 = 32 << 20;
/// The slots of a node with a larger model, while its neighbours acknowledge what they get: one for the newest record,
/// and one for the next.
const LEAST_SLOTS: usize = 2;

/// The number and the length of the slots that a node needs.
///
/// Slots of small models are all made at the start, for the worst case. Those of larger models would take many times the
/// model, for a case that is rare: a start makes two slots of the usual length. Each further one is made when all others
/// hold something that is owed, however late its acknowledgement counts ([`Postscript`]), and removed when it is free
/// again.
///
/// [`Postscript`]: mingle_protocol::record::Postscript
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Number of slots in the worst case: [`SlotMap::worst_case`](mingle_protocol::record::SlotMap::worst_case) of the
    /// node's receivers.
    pub(super) slots: usize,
    /// Length of the longest record: [`Record::largest_bytes`].
    longest_bytes: u64,
    /// Length of a record of a split in f32, without its remainder.
    usual_bytes: u64,
}

impl Room {
    /// Adds room for up to `state_bytes` of the host's state in each record.
    #[must_use]
    pub fn with_state(self, state_bytes: usize) -> Self {
        let more = state_bytes.saturating_sub(MAX_HOST_BYTES) as u64;
        Self { longest_bytes: self.longest_bytes + more, usual_bytes: self.usual_bytes + more, ..self }
    }

    /// Room for records with this many parameters and links, and next to nothing of the host's.
    ///
    /// # Errors
    /// No record is that long, or a peer may not have that many slots.
    pub fn new(dimension: usize, links: RecordRoom) -> Result<Self, StoreError> {
        let RecordRoom { slots, senders, receivers } = links;
        let longest_bytes = Record::largest_bytes(dimension, senders, receivers)
            .ok_or(StoreError::TooLong { dimension, links: senders + receivers })?;
        if slots > MAX_SLOTS {
            return Err(StoreError::TooManySlots { slots });
        }
        let vector = 4 * dimension as u64;
        // Numerator, ratio and payload are in the longest one. What a remainder takes is not known before.
        let usual_bytes = longest_bytes - 2 * vector;
        Ok(Self { slots, longest_bytes, usual_bytes })
    }

    /// Returns `true` if slots are made when they are needed, beyond those of a start.
    pub fn is_made_as_needed(&self) -> bool {
        self.longest_bytes.saturating_mul(self.slots as u64) > MOST_BYTES_MADE_BEFORE
    }

    /// Number of slots that a start makes.
    pub fn first_slots(&self) -> usize {
        if self.is_made_as_needed() { self.slots.min(LEAST_SLOTS) } else { self.slots }
    }

    /// Bytes that a start needs on the disk.
    pub fn first_bytes(&self) -> u64 {
        self.slot_bytes().saturating_mul(self.first_slots() as u64)
    }

    /// Length of each of them.
    pub fn slot_bytes(&self) -> u64 {
        if self.is_made_as_needed() { self.usual_bytes } else { self.longest_bytes }
    }
}
