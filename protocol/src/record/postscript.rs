//! Acknowledgements that came after a record, written behind it.
//!
//! The newest record on a disk owes payloads that may have been acknowledged since. Their slots stay protected until the
//! next record is complete, so that one needs a slot of its own: of a large model, another copy on the disk. A
//! postscript to the newest record frees them before:
//!
//! ```text
//!   record n owes the payloads of k and n; k is acknowledged; record n + 1 is to be written, and no slot is free
//!     1. write behind record n: parcels up to ... are acknowledged; wait until that is on the disk
//!     2. write record n + 1 over record k
//! ```
//!
//! A record with its postscript is the state that the node had when the acknowledgements came: nothing else of it may
//! have changed by them, so a parcel that came back is never in one. A receiver acknowledges only what its own disk has,
//! so it will not ask for these parcels again.
//!
//! ```text
//!   at the next multiple of 4096 bytes behind the record:
//!   magic [8]   number: u64   links: u32   (receiver: u32   acknowledged: u64) of each link   BLAKE3
//! ```
//!
//! The checksum covers that of the record too. A postscript that was cut off counts as none, and the record is whole
//! without it: slots are written over only once it is on the disk. A record gets one at most. A second one would have to
//! be written over the first.

use std::collections::BTreeMap;

use super::Books;
use crate::schedule::NodeId;

const MAGIC: [u8; 8] = *b"mgl-acks";
const HEAD_BYTES: usize = MAGIC.len() + size_of::<u64>() + size_of::<u32>();
const LINK_BYTES: usize = size_of::<u32>() + size_of::<u64>();
const CHECKSUM_BYTES: usize = 32;
/// No unit in which disks write has bytes of both the record and its postscript.
const ALIGNMENT: u64 = 4096;

/// The acknowledgements since the newest record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Postscript {
    /// The number of the record.
    number: u64,
    /// The last parcel that each receiver has acknowledged since.
    acked: BTreeMap<NodeId, u64>,
}

impl Postscript {
    /// The acknowledgements that came between two records of a node; `None` without any.
    pub(super) fn between(newest: &Books, next: &Books) -> Option<Self> {
        let life = |books: &Books| (books.generation, books.task, books.id, books.incarnation);
        if life(newest) != life(next) {
            return None;
        }
        let mut acked = BTreeMap::new();
        for (&to, link) in &newest.outgoing {
            let Some(later) = next.outgoing.get(&to) else { continue };
            let is_undisturbed = (later.receiver_incarnation, later.base) == (link.receiver_incarnation, link.base)
                && (later.returned, later.written_off) == (link.returned, link.written_off)
                && later.acked_by_earlier_lives == link.acked_by_earlier_lives;
            let last = later.acked.min(link.next_seq - 1);
            if is_undisturbed && last > link.acked {
                acked.insert(to, last);
            }
        }
        (!acked.is_empty()).then_some(Self { number: newest.number, acked })
    }

    /// The position of a postscript in a slot, behind a record of this length.
    pub const fn offset(record_bytes: u64) -> u64 {
        record_bytes.next_multiple_of(ALIGNMENT)
    }

    /// The bytes of a postscript to the record with this checksum, its last 32 bytes.
    pub fn encode(&self, record_checksum: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.acked.len() * LINK_BYTES + CHECKSUM_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.number.to_le_bytes());
        // A node has fewer links than there are nodes.
        bytes.extend_from_slice(&(self.acked.len() as u32).to_le_bytes());
        for (to, acked) in &self.acked {
            bytes.extend_from_slice(&to.0.to_le_bytes());
            bytes.extend_from_slice(&acked.to_le_bytes());
        }
        let checksum = checksum(&bytes, record_checksum);
        bytes.extend_from_slice(&checksum);
        bytes
    }

    /// Reads the postscript to a record with these books; `None` if there is none, or not all of it.
    pub(super) fn read(bytes: &[u8], record_checksum: &[u8], books: &Books) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let (magic, rest_of_head) = head.split_first_chunk::<8>()?;
        let (number, links) = rest_of_head.split_first_chunk::<8>()?;
        let links = u32::from_le_bytes(links.try_into().ok()?) as usize;
        if *magic != MAGIC || u64::from_le_bytes(*number) != books.number || links > books.outgoing.len() {
            return None;
        }
        let (links, rest) = rest.split_at_checked(links * LINK_BYTES)?;
        let sum = rest.first_chunk::<CHECKSUM_BYTES>()?;
        if checksum(&bytes[..HEAD_BYTES + links.len()], record_checksum) != *sum {
            return None;
        }
        let mut acked = BTreeMap::new();
        for link in links.as_chunks::<LINK_BYTES>().0 {
            let [a, b, c, d, last @ ..] = *link;
            let to = NodeId(u32::from_le_bytes([a, b, c, d]));
            let last = u64::from_le_bytes(last);
            let owed = books.outgoing.get(&to)?;
            if last <= owed.acked || last >= owed.next_seq || acked.insert(to, last).is_some() {
                return None;
            }
        }
        Some(Self { number: books.number, acked })
    }

    /// Makes the books those that the node had when the acknowledgements came.
    pub(crate) fn apply(&self, books: &mut Books) {
        for (to, &last) in &self.acked {
            let Some(link) = books.outgoing.get_mut(to) else { continue };
            let outbox = std::mem::take(&mut link.outbox);
            let (settled, owed): (Vec<_>, Vec<_>) = outbox.into_iter().partition(|parcel| parcel.seq <= last);
            for parcel in settled {
                link.acked = parcel.seq;
                link.acked_chain = parcel.chain;
                link.acked_total += u128::from(parcel.mass.units());
            }
            link.outbox = owed;
        }
    }
}

fn checksum(content: &[u8], record_checksum: &[u8]) -> [u8; CHECKSUM_BYTES] {
    *blake3::Hasher::new().update(record_checksum).update(content).finalize().as_bytes()
}

#[cfg(test)]
mod tests;
