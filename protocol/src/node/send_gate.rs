//! The send gate, a starvation guard: a node sends only when it has received something since it last sent.
//!
//! A node that sends half of its weight in every step and receives none is left with next to nothing within tens of steps,
//! and with it the denominator of its ratio. So a split takes a credit, and a parcel that is absorbed gives one. Credit can be
//! lost for good with a neighbour that dies: after [`MOST_SKIPPED_SPLITS`] splits without credit the gate opens once all the same.

/// Splits that a node without credit skips at most, one after the other: the parcels that would have given it credit may
/// have died with a neighbour, and someone has to start again.
const MOST_SKIPPED_SPLITS: u32 = 16;

/// Whether a node may send, and what happened to its mass in the present step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendGate {
    /// Parcels were due from others since the last split: only then their absence closes the gate.
    parcels_were_due: bool,
    has_credit: bool,
    /// A parcel was absorbed in the present step.
    pub(super) absorbed_in_step: bool,
    /// Anything was heard from an in-neighbour in the present step.
    pub(super) heard_in_step: bool,
    /// A parcel was sent in the present step.
    pub(super) sent_in_step: bool,
    skipped: u32,
}

impl SendGate {
    /// A parcel was absorbed.
    pub(super) fn absorb(&mut self) {
        self.has_credit = true;
        self.absorbed_in_step = true;
        self.heard_in_step = true;
        self.skipped = 0;
    }

    /// An in-neighbour went on, with or without a parcel.
    pub(super) fn hear(&mut self) {
        self.heard_in_step = true;
    }

    /// Parcels sent to a neighbour died or left with it: they cannot come back, so sending once more is allowed.
    pub(super) fn grant_credit(&mut self) {
        self.has_credit = true;
    }

    /// A step is over; were parcels due in it?
    pub(super) fn end_step(&mut self, parcels_were_due: bool) {
        self.parcels_were_due |= parcels_were_due;
    }

    /// Whether the node is not to send now.
    pub(super) fn is_closed(&self) -> bool {
        self.parcels_were_due && !self.has_credit && self.skipped < MOST_SKIPPED_SPLITS
    }

    /// Something was sent.
    pub(super) fn send(&mut self) {
        self.parcels_were_due = false;
        self.has_credit = false;
        self.sent_in_step = true;
        self.skipped = 0;
    }

    /// Nothing could be sent, or was allowed to be.
    pub(super) fn skip(&mut self) {
        self.skipped = self.skipped.saturating_add(1);
    }

    /// A step begins.
    pub(super) fn next_step(&mut self) {
        self.absorbed_in_step = false;
        self.heard_in_step = false;
        self.sent_in_step = false;
    }
}
