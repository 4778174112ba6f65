//! Payloads that links offer to the transmitter.

use std::time::Duration;

use mingle_multicast::ObjectName;
use mingle_protocol::Payload;
use tokio::sync::oneshot;

/// A payload of one link.
pub(super) struct PayloadOffer {
    pub(super) link: u64,
    pub(super) step: u64,
    pub(super) payload: Payload,
    pub(super) answer: oneshot::Sender<Option<ObjectName>>,
}

/// A payload that more links may offer.
pub(super) struct Gathering {
    pub(super) payload: Payload,
    /// The slot of these links in the step, and one of their receivers.
    pub(super) slot: Option<LinkSlot>,
    pub(super) offers: Vec<(u64, oneshot::Sender<Option<ObjectName>>)>,
    pub(super) until: Duration,
}

/// The slot of a link in a step, with the receiver of the link.
#[derive(Clone, Copy)]
pub(super) struct LinkSlot {
    pub(super) step: u64,
    pub(super) slot: u32,
    pub(super) receiver: u32,
}

impl LinkSlot {
    /// Step and slot: links with the same ones get one transmission.
    pub(super) fn number(self) -> (u64, u32) {
        (self.step, self.slot)
    }
}
