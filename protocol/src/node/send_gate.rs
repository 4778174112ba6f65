//! The send gate, a guard against starvation: a node sends only if it has received a parcel since it last sent.
//!
//! A node that sends half of its weight in every step and receives none is left with next to nothing within tens of
//! steps, and so is the denominator of its ratio. So a split costs a permit, and an absorbed parcel gives one. A permit
//! can be lost for good with a neighbour that dies: after [`MOST_SKIPPED_SPLITS`] splits without a permit the gate opens
//! once regardless. It also opens where a receiver of the step has been passed over [`MOST_PASSED_OVER`] times: a node that
//! gets a parcel in the same step of every period would else send in that step alone.

use super::Node;
use super::peer::Neighbour;
use crate::schedule::OutShare;

/// Largest number of consecutive splits that a node without a permit skips: the parcels that would have given it one
/// may have died with a neighbour, and some node has to start again.
const MOST_SKIPPED_SPLITS: u32 = 16;

/// Largest number of times in a row that a receiver gets nothing for want of a permit.
const MOST_PASSED_OVER: u32 = 4;

/// Permission to send, and what happened to the node's mass in the present step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendGate {
    /// Set when parcels were due from others since the last split: only then their absence closes the gate.
    parcels_were_due: bool,
    has_permit: bool,
    /// Set when a parcel was absorbed in the present step.
    pub(super) absorbed_in_step: bool,
    /// Set when an in-neighbour went on in the present step, with or without a parcel.
    pub(super) heard_in_step: bool,
    /// Set when a parcel was sent in the present step.
    pub(super) sent_in_step: bool,
    skipped: u32,
}

impl SendGate {
    /// Notes that a parcel was absorbed.
    pub(super) fn absorb(&mut self) {
        self.has_permit = true;
        self.absorbed_in_step = true;
        self.heard_in_step = true;
        self.skipped = 0;
    }

    /// Notes that an in-neighbour went on, with or without a parcel.
    pub(super) fn hear(&mut self) {
        self.heard_in_step = true;
    }

    /// Allows one more split: parcels sent to a neighbour died or left with it, and cannot come back.
    pub(super) fn grant_permit(&mut self) {
        self.has_permit = true;
    }

    /// Ends a step in which parcels were due or not.
    pub(super) fn end_step(&mut self, parcels_were_due: bool) {
        self.parcels_were_due |= parcels_were_due;
    }

    /// Returns `true` if the node must not send now.
    pub(super) fn is_closed(&self) -> bool {
        self.parcels_were_due && !self.has_permit && self.skipped < MOST_SKIPPED_SPLITS
    }

    /// Notes that parcels were sent.
    pub(super) fn send(&mut self) {
        self.parcels_were_due = false;
        self.has_permit = false;
        self.sent_in_step = true;
        self.skipped = 0;
    }

    /// Notes that no parcel could be sent, or was allowed to be.
    pub(super) fn skip(&mut self) {
        self.skipped = self.skipped.saturating_add(1);
    }

    /// Begins a step.
    pub(super) fn next_step(&mut self) {
        self.absorbed_in_step = false;
        self.heard_in_step = false;
        self.sent_in_step = false;
    }
}

impl Node {
    /// Returns `true` if the gate keeps the node from sending to these receivers.
    pub(super) fn is_held_up(&self, links: &[OutShare]) -> bool {
        // One that can take no parcel now would hold the gate open for the others.
        let was_passed_over = |peer: &Neighbour| peer.passed_over >= MOST_PASSED_OVER && peer.can_take_parcel();
        let is_due = |link: &OutShare| self.peers.get(&link.to).is_some_and(was_passed_over);
        self.send_gate.is_closed() && !links.iter().any(is_due)
    }

    /// Notes that these receivers got nothing for want of a permit. Splits in a row count once: what counts is that others
    /// had the permits in between.
    pub(super) fn pass_over(&mut self, links: &[OutShare]) {
        if self.send_gate.skipped > 0 {
            return;
        }
        for link in links {
            self.peers.entry(link.to).and_modify(|peer| peer.passed_over = peer.passed_over.saturating_add(1));
        }
    }
}
