//! Transmissions: their beginning and end at each node that they reach.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt;

use super::{Air, agenda::AirEvent};
use crate::{
    frame::{FrameOutcome, Recipient},
    kept_transmission::KeptTransmission,
};

/// A transmission that is on the air.
#[derive(Debug, Clone)]
pub(super) struct Transmission {
    sender: usize,
    kind: TransmissionKind,
    recipient: Recipient,
    began: Duration,
    /// The nodes at which it is lost, with the first cause.
    spoiled: BTreeMap<usize, Spoil>,
}

/// The content of a transmission.
#[derive(Debug, Clone, Copy)]
pub(super) enum TransmissionKind {
    /// The first frame of the sender's queue.
    Frame { serial: u64 },
    /// The acknowledgement of the recipient's frame.
    Acknowledgement { serial: u64 },
}

/// The cause of a loss.
#[derive(Debug, Clone, Copy)]
enum Spoil {
    /// Another transmission overlapped.
    Collided,
    /// The node was sending.
    Missed,
}

impl Transmission {
    pub(super) const fn new(sender: usize, kind: TransmissionKind, recipient: Recipient, began: Duration) -> Self {
        Self { sender, kind, recipient, began, spoiled: BTreeMap::new() }
    }

    fn kept(&self, ended: Duration) -> KeptTransmission {
        KeptTransmission {
            sender: self.sender,
            recipient: self.recipient,
            is_acknowledgement: matches!(self.kind, TransmissionKind::Acknowledgement { .. }),
            began: self.began,
            ended,
            spoiled_at: self.spoiled.keys().copied().collect(),
        }
    }

    fn spoil(&mut self, node: usize, cause: Spoil) {
        self.spoiled.entry(node).or_insert(cause);
    }
}

impl<P: Clone> Air<P> {
    pub(super) fn begin_transmission(&mut self, mut transmission: Transmission, airtime: Duration) {
        let id = self.transmissions;
        self.transmissions += 1;
        let sender = transmission.sender;
        for earlier in &self.radios[sender].arriving {
            self.on_air.get_mut(earlier).into_iter().for_each(|other| other.spoil(sender, Spoil::Missed));
        }
        for &node in &self.disturbed[sender] {
            let radio = &mut self.radios[node];
            if radio.sending.is_some() {
                transmission.spoil(node, Spoil::Missed);
            }
            for earlier in &radio.arriving {
                transmission.spoil(node, Spoil::Collided);
                self.on_air.get_mut(earlier).into_iter().for_each(|other| other.spoil(node, Spoil::Collided));
            }
            radio.arriving.push(id);
        }
        if self.on_air.is_empty() {
            self.busy_since = self.now;
        }
        self.on_air.insert(id, transmission);
        self.radios[sender].sending = Some(id);
        self.agenda.add(self.now + airtime, AirEvent::TransmissionEnds { id });
        self.suspend(sender);
        for index in 0..self.disturbed[sender].len() {
            self.suspend(self.disturbed[sender][index]);
        }
    }

    pub(super) fn end_transmission(&mut self, id: u64) {
        let Some(transmission) = self.on_air.remove(&id) else {
            return;
        };
        if self.on_air.is_empty() {
            self.busy += self.now - self.busy_since;
        }
        let sender = transmission.sender;
        if self.settings.keeps_transmissions {
            self.kept.push(transmission.kept(self.now));
        }
        self.radios[sender].sending = None;
        self.radios[sender].counts.airtime += self.now - transmission.began;
        for &node in &self.disturbed[sender] {
            self.radios[node].arriving.retain(|&arriving| arriving != id);
        }
        for index in 0..self.in_range[sender].len() {
            let (node, loss) = self.in_range[sender][index];
            self.arrive(&transmission, node, loss);
        }
        if let TransmissionKind::Frame { .. } = transmission.kind {
            self.after_frame(sender, transmission.recipient);
        }
        self.count_down(sender);
        for index in 0..self.disturbed[sender].len() {
            self.count_down(self.disturbed[sender][index]);
        }
    }

    /// Decides the fate of a transmission at a node in range.
    fn arrive(&mut self, transmission: &Transmission, node: usize, loss: f64) {
        let is_lost = loss > 0.0 && self.random.random_bool(loss);
        let counts = &mut self.radios[node].counts;
        match transmission.spoiled.get(&node) {
            Some(Spoil::Collided) => counts.collided += 1,
            Some(Spoil::Missed) => counts.missed += 1,
            None if is_lost => counts.lost += 1,
            None if ![Recipient::All, Recipient::One(node)].contains(&transmission.recipient) => counts.overheard += 1,
            None => {
                counts.received += 1;
                self.receive(transmission, node);
            }
        }
    }

    fn receive(&mut self, transmission: &Transmission, node: usize) {
        let from = transmission.sender;
        let serial = match transmission.kind {
            TransmissionKind::Acknowledgement { serial } => return self.on_acknowledgement(node, serial),
            TransmissionKind::Frame { serial } => serial,
        };
        let radio = &mut self.radios[node];
        if let Some(acknowledgements) =
            self.settings.acknowledgements.filter(|_| transmission.recipient != Recipient::All)
        {
            let due = self.now + acknowledgements.space;
            self.agenda.add(due, AirEvent::AcknowledgementDue { node, to: from, serial });
            if radio.last_serials.insert(from, serial) == Some(serial) {
                radio.counts.repeated += 1;
                return;
            }
        }
        if let Some(frame) = self.radios[from].queue.front() {
            let frame = frame.clone();
            self.outcomes.push(FrameOutcome::Received { at: self.now, node, from, frame });
        }
    }
}
