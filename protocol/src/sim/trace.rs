//! A running hash of all events, so that two runs can be compared by one line.

use crate::schedule::NodeId;
use crate::time::Time;

/// Hashing is several times as fast in pieces of this size as event by event.
const BUFFERED_BYTES: usize = 1 << 16;

/// BLAKE3 over the events of a run.
#[derive(Debug, Default)]
pub(super) struct Trace {
    hasher: blake3::Hasher,
    /// Bytes that are not hashed yet.
    buffer: Vec<u8>,
    events: u64,
}

/// The kind of a trace entry.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Entry {
    Delivered = 1,
    Trained = 2,
    Ticked = 3,
    Faulted = 4,
    Reported = 5,
    Sent = 6,
    Written = 7,
    Persisted = 8,
    Replanned = 9,
    Reserved = 10,
}

impl Trace {
    pub(super) fn record(&mut self, now: Time, node: NodeId, entry: Entry, content: &[u8]) {
        self.events += 1;
        self.buffer.extend_from_slice(&now.micros().to_le_bytes());
        self.buffer.extend_from_slice(&node.0.to_le_bytes());
        self.buffer.push(entry as u8);
        self.buffer.extend_from_slice(&(content.len() as u64).to_le_bytes());
        self.buffer.extend_from_slice(content);
        if self.buffer.len() >= BUFFERED_BYTES {
            self.hasher.update(&self.buffer);
            self.buffer.clear();
        }
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        *self.hasher.clone().update(&self.buffer).finalize().as_bytes()
    }
}
