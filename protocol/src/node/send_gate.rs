//! The send gate, a guard against starvation: a node sends only if it has received a parcel since it last sent.
//!
//! A node that sends half of its weight in every step and receives none is left with next to nothing within tens of
//! steps, and so is the denominator of its ratio. So a split costs a permit, and the first parcel of a step gives one,
//! also if it is late: of two parcels that were absorbed between two splits the second would else be lost as a permit, and
//! two nodes that fell out of step once would send each other half of their parcels from then on.
//!
//! A permit can die with a neighbour: after [`MOST_SKIPPED_SPLITS`] splits without a permit the gate opens once
//! regardless. It also opens where a receiver of the step has been passed over [`MOST_PASSED_OVER`] times: a node that gets
//! a parcel in the same step of every period would else send in that step alone. A node with [`PLENTY`] needs no permit:
//! where weight was made up, nodes refuse each other's parcels, and would all wait for one. Nor does a node with
//! [`NEARLY_ALL`] of its usual weight that hands a ratio down a tree: all weight is there, or above, and others have none to
//! give it a permit with.

use super::Node;
use super::peer::Neighbour;
use crate::config::WaitPolicy;
use crate::schedule::OutShare;

/// Largest number of consecutive splits that a node without a permit skips: the parcels that would have given it one
/// may have died with a neighbour, and some node has to start again.
const MOST_SKIPPED_SPLITS: u32 = 16;

/// Largest number of times in a row that a receiver gets nothing for want of a permit.
const MOST_PASSED_OVER: u32 = 4;

/// Largest number of permits of a node that does not wait for all parcels. One that could save more of them would give its
/// weight away where most messages are lost.
const MOST_PERMITS: u32 = 2;

/// Multiple of its usual weight with which a node needs no permit.
const PLENTY: f64 = 1.5;

/// Part of its usual weight with which a node that hands a ratio down a tree needs no permit.
const NEARLY_ALL: f64 = 15.0 / 16.0;

/// Permission to send, and what happened to the node's mass in the present step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendGate {
    /// Set when parcels were due from others since the last split: only then their absence closes the gate.
    parcels_were_due: bool,
    permits: u32,
    /// Set where the node waits for all parcels of a step: it saves no permit.
    is_in_step: bool,
    /// The steps whose parcels have given a permit.
    permitted: RecentSteps,
    /// Set when a parcel was absorbed in the present step.
    pub(super) absorbed_in_step: bool,
    /// Set when an in-neighbour went on in the present step, with or without a parcel.
    pub(super) heard_in_step: bool,
    /// Set when a parcel was sent in the present step.
    pub(super) sent_in_step: bool,
    skipped: u32,
}

impl SendGate {
    /// The gate of a node that has received and sent nothing.
    pub(super) fn new(policy: WaitPolicy) -> Self {
        Self { is_in_step: policy == WaitPolicy::Sync, ..Self::default() }
    }

    /// Notes that a parcel of this step of its sender was absorbed.
    pub(super) fn absorb(&mut self, step: u64) {
        if self.permitted.insert(step) || self.permits == 0 {
            self.grant_permit();
        }
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
        self.permits = (self.permits + 1).min(if self.is_in_step { 1 } else { MOST_PERMITS });
    }

    /// Ends a step in which parcels were due or not.
    pub(super) fn end_step(&mut self, parcels_were_due: bool) {
        self.parcels_were_due |= parcels_were_due;
    }

    /// Returns `true` if the node must not send now.
    pub(super) fn is_closed(&self) -> bool {
        self.parcels_were_due && self.permits == 0 && self.skipped < MOST_SKIPPED_SPLITS
    }

    /// Notes that parcels were sent.
    pub(super) fn send(&mut self) {
        self.parcels_were_due = false;
        self.permits = self.permits.saturating_sub(1);
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

/// A set of steps, of which the newest 64 are told apart: older ones count as in it.
#[derive(Clone, Copy, Debug, Default)]
struct RecentSteps {
    newest: u64,
    /// Bit k is set if step `newest - k` is in the set.
    members: u64,
}

impl RecentSteps {
    /// Adds a step. Returns `true` if it was not in the set.
    fn insert(&mut self, step: u64) -> bool {
        if let Some(by) = step.checked_sub(self.newest).filter(|by| *by > 0) {
            self.newest = step;
            self.members = u32::try_from(by).ok().and_then(|by| self.members.checked_shl(by)).unwrap_or(0);
        }
        let age = u32::try_from(self.newest - step).ok();
        let Some(bit) = age.and_then(|age| 1_u64.checked_shl(age)) else {
            return false;
        };
        let is_new = self.members & bit == 0;
        self.members |= bit;
        is_new
    }
}

impl Node {
    /// Returns `true` if the gate keeps the node from sending to these receivers.
    pub(super) fn is_held_up(&self, links: &[OutShare]) -> bool {
        // One that can take no parcel now would hold the gate open for the others.
        let was_passed_over = |peer: &Neighbour| peer.passed_over >= MOST_PASSED_OVER && peer.can_take_parcel();
        let is_due = |link: &OutShare| self.peers.get(&link.to).is_some_and(was_passed_over);
        let hands_down = self.config.schedule.hands_down(self.config.id, self.step);
        let plenty = if hands_down { NEARLY_ALL } else { PLENTY };
        let has_plenty = self.own_share().is_some_and(|share| share >= plenty);
        self.send_gate.is_closed() && !has_plenty && !links.iter().any(is_due)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn gate_with_parcels_due() -> SendGate {
        SendGate { parcels_were_due: true, ..SendGate::default() }
    }

    #[test]
    fn late_parcels_give_permits_of_their_own_and_several_of_a_step_one() {
        let mut gate = gate_with_parcels_due();
        assert!(gate.is_closed());
        // Of two neighbours each; the parcels of step 3 are late.
        [3, 4, 4, 3].into_iter().for_each(|step| gate.absorb(step));
        assert_eq!(gate.permits, 2);
        for permits in [1, 0] {
            gate.send();
            gate.end_step(true);
            assert_eq!((gate.permits, gate.is_closed()), (permits, permits == 0));
        }
        // Whatever its step, a parcel opens a closed gate.
        gate.absorb(3);
        assert!(!gate.is_closed());
    }

    #[test]
    fn permits_are_few_however_many_parcels_come() {
        let mut gate = gate_with_parcels_due();
        (0..100).for_each(|step| gate.absorb(step));
        assert_eq!(gate.permits, MOST_PERMITS);
    }

    #[test]
    fn steps_are_told_apart_until_they_are_old() {
        let mut steps = RecentSteps::default();
        let added: Vec<bool> = [0, 0, 5, 3, 5, 67, 4, 3, u64::MAX, 67].map(|step| steps.insert(step)).to_vec();
        assert_eq!(added, [true, false, true, true, false, true, true, false, true, false]);
    }
}
