//! Counts of one radio.

use std::time::Duration;

use serde::Serialize;

/// Counts of one radio since the start of the air.
///
/// Each transmission that ends in range of a node is counted there once: as received, overheard, collided, missed or
/// lost. Times are in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RadioCounts {
    /// Transmissions begun: first tries and retries, without acknowledgements.
    pub frames: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Frames among these to all nodes in range.
    pub group_frames: u64,
    /// Bytes of these.
    pub group_bytes: u64,
    /// Transmissions after the first of a frame.
    pub retries: u64,
    /// Frames to one node that were given up after the last retry.
    pub given_up: u64,
    /// Acknowledgements sent.
    pub acknowledgements: u64,
    /// Time of all transmissions, acknowledgements included.
    #[serde(rename = "airtime_s", serialize_with = "seconds")]
    pub airtime: Duration,
    /// Time of the transmissions to all nodes in range.
    #[serde(rename = "group_airtime_s", serialize_with = "seconds")]
    pub group_airtime: Duration,
    /// Transmissions in range that arrived whole and were meant for this node, repetitions and acknowledgements
    /// included.
    pub received: u64,
    /// Transmissions in range that arrived whole and were meant for another node.
    pub overheard: u64,
    /// Frames of which this node had a copy already, because their acknowledgement was lost.
    pub repeated: u64,
    /// Transmissions in range that were lost here because another one overlapped.
    pub collided: u64,
    /// Transmissions in range that were lost here because this node was sending.
    pub missed: u64,
    /// Transmissions in range that were lost here by chance.
    pub lost: u64,
    /// Frames that found the queue full.
    pub dropped: u64,
}

impl RadioCounts {
    /// The number of transmissions in range that have ended.
    #[must_use]
    pub fn in_range(&self) -> u64 {
        self.received + self.overheard + self.collided + self.missed + self.lost
    }
}

/// Writes a time as a number of seconds.
pub(crate) fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}
