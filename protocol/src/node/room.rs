//! Room: the most weight that there can be in a node, and the most that can come over its links.
//!
//! Every member brings a whole, and no more weight is ever made. So a node never holds more than all members brought. Nor
//! can more come out of a part of the plan that hangs on this node alone than its nodes brought and this node gave them:
//!
//! ```text
//!              +-- b            received from a and b  <=  what a and b were given, and the two wholes of these nodes
//!   ... -- this node
//!              +-- c -- d       received from c        <=  what c was given, and the two wholes of c and d
//! ```
//!
//! The parts are what the plan falls into without this node. In a tree each neighbour is in a part of its own. In most other
//! plans all neighbours are in a single part, and the second rule adds little to the first. What comes beyond that was made
//! up, by the sender or by a node behind it, and goes back.

use super::Node;
use crate::mass::{Mass, UNITS_PER_ONE};
use crate::schedule::NodeId;

/// The part of a plan that a neighbour is in, of those that the plan falls into without this node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    /// Its number among the parts.
    pub(super) number: u32,
    /// The nodes in it.
    pub(super) nodes: u32,
}

impl Node {
    /// Mass that all members brought, in units.
    pub(super) fn whole(&self) -> u128 {
        self.config.schedule.nodes() as u128 * u128::from(UNITS_PER_ONE)
    }

    /// Returns `true` if a parcel brings weight that nobody had: the node would hold more than all members brought, or more would
    /// have come from the part that its sender is in than there can be. Some member has claimed weight that it never had
    /// then, and the sender of this parcel may have received it from there: the parcel goes back, without counting as an
    /// offence.
    pub(super) fn has_no_room_for(&self, from: NodeId, mass: Mass) -> bool {
        let units = u128::from(mass.units());
        let here = u128::from(self.mass().units()) + self.queued_mass();
        here + units > self.whole() || self.room_from(from).is_some_and(|room| units > room)
    }

    /// The weight that can still come from the part that a neighbour is in; `None` where that is not known: a node that lost
    /// its records does not know what it gave.
    fn room_from(&self, from: NodeId) -> Option<u128> {
        if self.config.identity.incarnation > 1 {
            return None;
        }
        let part = self.peers.get(&from)?.part;
        let peers = || self.peers.values().filter(|peer| peer.part.number == part.number);
        let received: u128 = peers().filter_map(|peer| peer.incoming.as_ref()).map(|link| link.received_ever()).sum();
        let given: u128 = peers().filter_map(|peer| peer.outgoing.as_ref()).map(|link| link.given_units()).sum();
        Some((u128::from(part.nodes) * u128::from(UNITS_PER_ONE) + given).saturating_sub(received))
    }

    pub(super) fn queued_mass(&self) -> u128 {
        self.peers.values().filter_map(|peer| peer.incoming.as_ref()).map(|link| link.queued_mass()).sum()
    }
}
