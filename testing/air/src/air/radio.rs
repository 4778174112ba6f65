//! One radio: its queue, and its access to the channel.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::{counts::RadioCounts, frame::AirFrame};

/// The state of one node on the air.
#[derive(Debug, Clone)]
pub(super) struct Radio<P> {
    /// Frames to send; the first is the one that `phase` is about.
    pub(super) queue: VecDeque<AirFrame<P>>,
    pub(super) phase: AccessPhase,
    /// The transmission of this node that is on the air: its frame, or an acknowledgement.
    pub(super) sending: Option<u64>,
    /// The transmissions of others that arrive here.
    pub(super) arriving: Vec<u64>,
    /// Slots of back-off that are left.
    pub(super) backoff: Option<u32>,
    /// Tries of the first frame that failed.
    pub(super) failed_tries: u32,
    /// The number of the first frame.
    pub(super) serial: u64,
    /// The number of the last frame to this node, by its sender.
    pub(super) last_serials: BTreeMap<usize, u64>,
    /// Counts the changes that make scheduled events void.
    pub(super) epoch: u64,
    pub(super) counts: RadioCounts,
}

/// A radio's way to send the first frame of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessPhase {
    /// Nothing to send.
    Idle,
    /// The channel is taken.
    Waiting,
    /// The channel has been free since a time; the frame goes when back-off is over.
    CountingDown { since: Duration, due: Duration },
    /// The frame is on the air.
    Sending,
    /// The frame was sent and is not acknowledged.
    AwaitingAcknowledgement,
}

impl<P> Radio<P> {
    pub(super) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            phase: AccessPhase::Idle,
            sending: None,
            arriving: Vec::new(),
            backoff: None,
            failed_tries: 0,
            serial: 0,
            last_serials: BTreeMap::new(),
            epoch: 0,
            counts: RadioCounts::default(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.phase == AccessPhase::Idle
    }

    /// Makes all scheduled events of this radio void, and returns the epoch of new ones.
    pub(super) fn begin_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }
}
