//! Access to the channel: at once, or by carrier sense with random back-off; acknowledgements and retries.

use std::time::Duration;

use rand::RngExt;

use super::{
    Air,
    agenda::AirEvent,
    radio::AccessPhase,
    transmission::{Transmission, TransmissionKind},
};
use crate::{
    frame::{FrameOutcome, Recipient},
    settings::CarrierSense,
};

/// The most doublings of the wait for a retry without carrier sense.
const MAX_DOUBLINGS: u32 = 6;

impl<P: Clone> Air<P> {
    /// Begins to seek access for the first frame of a node's queue.
    pub(super) fn contend(&mut self, node: usize) {
        self.radios[node].phase = AccessPhase::Waiting;
        let most = match self.settings.carrier_sense {
            Some(sense) => window(&sense, self.radios[node].failed_tries),
            None => (1 << self.radios[node].failed_tries.min(MAX_DOUBLINGS)) - 1,
        };
        // A first try without carrier sense needs no draw.
        let backoff = if most == 0 { 0 } else { self.random.random_range(0..=most) };
        self.radios[node].backoff = Some(backoff);
        self.count_down(node);
    }

    /// Counts the back-off of a waiting node down, if the channel is free for it.
    pub(super) fn count_down(&mut self, node: usize) {
        if self.radios[node].phase != AccessPhase::Waiting || !self.is_free_for(node) {
            return;
        }
        let Some(frame) = self.radios[node].queue.front() else {
            return;
        };
        let (space, slot) = match self.settings.carrier_sense {
            Some(sense) => (sense.space, sense.slot),
            None => (Duration::ZERO, self.settings.airtime(frame.bytes)),
        };
        let now = self.now;
        let radio = &mut self.radios[node];
        let due = now + space + slot * radio.backoff.unwrap_or(0);
        radio.phase = AccessPhase::CountingDown { since: now, due };
        let epoch = radio.begin_epoch();
        self.agenda.add(due, AirEvent::Access { node, epoch });
    }

    /// Stops the count of a node at which a transmission begins, its own or another's. It is too late within
    /// the last slot.
    pub(super) fn suspend(&mut self, node: usize) {
        let Some(sense) = self.settings.carrier_sense else {
            return;
        };
        let now = self.now;
        let radio = &mut self.radios[node];
        let AccessPhase::CountingDown { since, due } = radio.phase else {
            return;
        };
        if due < now + sense.slot {
            return;
        }
        let counted = (now - since).saturating_sub(sense.space).as_nanos() / sense.slot.as_nanos();
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        radio.backoff = radio.backoff.map(|left| left.saturating_sub(counted));
        radio.phase = AccessPhase::Waiting;
        radio.begin_epoch();
    }

    /// Sends the first frame of a node's queue, unless the node has begun an acknowledgement meanwhile.
    pub(super) fn on_access(&mut self, node: usize, epoch: u64) {
        let radio = &mut self.radios[node];
        if radio.epoch != epoch {
            return;
        }
        if radio.sending.is_some() {
            radio.phase = AccessPhase::Waiting;
            return;
        }
        let Some(frame) = radio.queue.front() else {
            return;
        };
        radio.phase = AccessPhase::Sending;
        radio.backoff = None;
        let bytes = frame.bytes;
        let transmission =
            Transmission::new(node, TransmissionKind::Frame { serial: radio.serial }, frame.recipient, self.now);
        let airtime = self.settings.airtime(bytes);
        let is_group = frame.recipient == Recipient::All;
        let counts = &mut radio.counts;
        counts.frames += 1;
        counts.bytes += bytes as u64;
        counts.retries += u64::from(radio.failed_tries > 0);
        if is_group {
            counts.group_frames += 1;
            counts.group_bytes += bytes as u64;
            counts.group_airtime += airtime;
        }
        self.begin_transmission(transmission, airtime);
    }

    /// Goes on after the first frame of a node was on the air: waits for its acknowledgement, or takes the next.
    pub(super) fn after_frame(&mut self, node: usize, recipient: Recipient) {
        let acknowledgements = self.settings.acknowledgements.filter(|_| recipient != Recipient::All);
        let Some(acknowledgements) = acknowledgements else {
            self.leave_queue(node, true);
            return;
        };
        let slot = self.settings.carrier_sense.unwrap_or_default().slot;
        let due = self.now + acknowledgements.space + self.settings.airtime(acknowledgements.bytes) + slot;
        self.radios[node].phase = AccessPhase::AwaitingAcknowledgement;
        let epoch = self.radios[node].begin_epoch();
        self.agenda.add(due, AirEvent::AcknowledgementLate { node, epoch });
    }

    /// Sends an acknowledgement, whatever else is on the air; a node that is sending leaves it out.
    pub(super) fn acknowledge(&mut self, node: usize, to: usize, serial: u64) {
        let Some(acknowledgements) = self.settings.acknowledgements else {
            return;
        };
        if self.radios[node].sending.is_some() {
            return;
        }
        self.radios[node].counts.acknowledgements += 1;
        let kind = TransmissionKind::Acknowledgement { serial };
        let transmission = Transmission::new(node, kind, Recipient::One(to), self.now);
        self.begin_transmission(transmission, self.settings.airtime(acknowledgements.bytes));
    }

    /// Takes an acknowledgement that arrived whole.
    pub(super) fn on_acknowledgement(&mut self, node: usize, serial: u64) {
        let radio = &self.radios[node];
        if radio.phase == AccessPhase::AwaitingAcknowledgement && radio.serial == serial {
            self.leave_queue(node, true);
        }
    }

    /// Tries the first frame of a node again, or gives it up.
    pub(super) fn on_late_acknowledgement(&mut self, node: usize, epoch: u64) {
        let retries = self.settings.acknowledgements.map_or(0, |acknowledgements| acknowledgements.retries);
        let radio = &mut self.radios[node];
        if radio.epoch != epoch {
            return;
        }
        radio.failed_tries += 1;
        if radio.failed_tries > retries {
            radio.counts.given_up += 1;
            self.leave_queue(node, false);
        } else {
            self.contend(node);
        }
    }

    fn leave_queue(&mut self, node: usize, is_sent: bool) {
        let at = self.now;
        let radio = &mut self.radios[node];
        radio.begin_epoch();
        radio.phase = AccessPhase::Idle;
        radio.failed_tries = 0;
        radio.serial += 1;
        if let Some(frame) = radio.queue.pop_front() {
            self.outcomes.push(FrameOutcome::Left { at, node, is_sent, frame });
        }
        if !self.radios[node].queue.is_empty() {
            self.contend(node);
        }
    }

    fn is_free_for(&self, node: usize) -> bool {
        let radio = &self.radios[node];
        radio.sending.is_none() && (self.settings.carrier_sense.is_none() || radio.arriving.is_empty())
    }
}

/// The most slots of back-off after so many failed tries.
fn window(sense: &CarrierSense, failed_tries: u32) -> u32 {
    let doubled = (u64::from(sense.first_window) + 1) << failed_tries.min(32);
    u32::try_from(doubled - 1).unwrap_or(u32::MAX).min(sense.last_window)
}
