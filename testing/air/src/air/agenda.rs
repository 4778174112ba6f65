//! Events to come, in their order.

use std::collections::BTreeMap;
use std::time::Duration;

/// An event of the medium. Those of a node that carry an epoch are void once the node's epoch has moved on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AirEvent {
    /// A transmission ends.
    TransmissionEnds { id: u64 },
    /// A node acknowledges a frame.
    AcknowledgementDue { node: usize, to: usize, serial: u64 },
    /// The time to wait for an acknowledgement is over.
    AcknowledgementLate { node: usize, epoch: u64 },
    /// A node sends the first frame of its queue.
    Access { node: usize, epoch: u64 },
}

/// Events by time. At one time, ends come before beginnings, and else the first scheduled first.
#[derive(Debug, Clone, Default)]
pub(super) struct AirAgenda {
    events: BTreeMap<(Duration, bool, u64), AirEvent>,
    scheduled: u64,
}

impl AirAgenda {
    pub(super) fn add(&mut self, at: Duration, event: AirEvent) {
        let is_beginning = !matches!(event, AirEvent::TransmissionEnds { .. });
        self.events.insert((at, is_beginning, self.scheduled), event);
        self.scheduled += 1;
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.events.first_key_value().map(|(&(at, ..), _)| at)
    }

    pub(super) fn pop_until(&mut self, limit: Duration) -> Option<(Duration, AirEvent)> {
        self.next().filter(|&at| at <= limit)?;
        self.events.pop_first().map(|((at, ..), event)| (at, event))
    }
}
