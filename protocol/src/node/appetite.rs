//! "Never starve yourself": whether a node has been fed since it last gave something away.

/// A node that was never sent anything splits all the same after this many hungry steps: parcels that would have fed it
/// may have died with a neighbour, and someone has to start again.
const LONGEST_FAST: u32 = 16;

/// Whether the node has been fed since it last split. A node that sends half of what it has and is sent nothing starves
/// within tens of rounds, and with it the denominator of its ratio.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Appetite {
    due: bool,
    fed: bool,
    /// A parcel was absorbed in the present step.
    pub(super) fed_in_step: bool,
    /// Anything was heard from an in-neighbour in the present step.
    pub(super) heard_in_step: bool,
    /// A parcel was sent in the present step.
    pub(super) gave_in_step: bool,
    fasts: u32,
}

impl Appetite {
    /// A parcel was absorbed.
    pub(super) fn feed(&mut self) {
        self.fed = true;
        self.fed_in_step = true;
        self.heard_in_step = true;
        self.fasts = 0;
    }

    /// An in-neighbour went on, with or without a parcel.
    pub(super) fn hear(&mut self) {
        self.heard_in_step = true;
    }

    /// Parcels sent to a neighbour died or left with it: they cannot come back, so sending once more is allowed.
    pub(super) fn excuse(&mut self) {
        self.fed = true;
    }

    /// A step is over; were parcels due in it?
    pub(super) fn end_step(&mut self, parcels_were_due: bool) {
        self.due |= parcels_were_due;
    }

    pub(super) fn is_hungry(&self) -> bool {
        self.due && !self.fed && self.fasts < LONGEST_FAST
    }

    /// Something was sent.
    pub(super) fn split(&mut self) {
        self.due = false;
        self.fed = false;
        self.gave_in_step = true;
        self.fasts = 0;
    }

    /// Nothing could be sent, or was allowed to be.
    pub(super) fn fast(&mut self) {
        self.fasts = self.fasts.saturating_add(1);
    }

    /// A step begins.
    pub(super) fn next_step(&mut self) {
        self.fed_in_step = false;
        self.heard_in_step = false;
        self.gave_in_step = false;
    }
}
