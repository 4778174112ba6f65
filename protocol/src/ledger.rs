//! The books of a node: the mass it holds, and the parcels it sent and applied.
//!
//! Both ends of every link keep totals, so the survivors' books alone show what a dead neighbour held.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::mass::Mass;
use crate::schedule::NodeId;
use crate::window::Rejections;

/// A node's books at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerSummary {
    /// This life of the node.
    pub incarnation: u64,
    /// Mass it began this life with: 1 for a founder, 0 after a restart without state.
    pub initial: Mass,
    /// Mass it holds.
    pub mass: Mass,
    /// Its links from others, by sender.
    pub incoming: BTreeMap<NodeId, InLinkLedger>,
    /// Its links to others, by receiver.
    pub outgoing: BTreeMap<NodeId, OutLinkLedger>,
}

/// Largest total that books can honestly show on one link: 2^40 wholes. Far beyond any run, and small enough that the
/// totals of any number of nodes add up without overflow.
pub(crate) const LARGEST_TOTAL: u128 = 1 << 80;

impl LedgerSummary {
    /// Returns `true` if every total is one that a run could reach; books may come from a file or a stranger.
    pub(crate) fn is_plausible(&self) -> bool {
        let incoming = self.incoming.values().flat_map(|link| [link.applied_total, link.applied_from_earlier_lives]);
        let outgoing = self.outgoing.values().flat_map(|link| {
            [link.sent_total, link.acked_total, link.acked_by_earlier_lives, link.written_off, link.returned]
        });
        incoming.chain(outgoing).all(|total| total <= LARGEST_TOTAL)
    }
}

/// The receiver's books of one link. Totals are in units of 2^-40.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InLinkLedger {
    /// The life of the sender that `applied_total` and the numbers refer to; 0 before its first message.
    pub sender_incarnation: u64,
    /// Parcels up to this number have arrived.
    pub received_seq: u64,
    /// Parcels up to this number have been added to the node's mass.
    pub applied_seq: u64,
    /// The refused ones among the last of them, which were not added.
    pub rejected: Rejections,
    /// Parcels that arrived and wait for their step: number and mass.
    pub queued: Vec<(u64, Mass)>,
    /// Mass applied from this life of the sender.
    pub applied_total: u128,
    /// Mass applied from its earlier lives.
    pub applied_from_earlier_lives: u128,
}

/// The sender's books of one link. Totals are in units of 2^-40.
///
/// `sent_total` is always the sum of the two `acked` totals, the outbox, `written_off` and `returned`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutLinkLedger {
    /// The life of the receiver that `acked_total` and the outbox refer to; 0 before its first message.
    pub receiver_incarnation: u64,
    /// Parcels to this life of the receiver start after this number.
    pub base: u64,
    /// The number of the next parcel.
    pub next_seq: u64,
    /// Parcels up to this number are known to be applied.
    pub acked_seq: u64,
    /// Parcels not known to be applied: number and mass.
    pub outbox: Vec<(u64, Mass)>,
    /// Mass ever sent on this link.
    pub sent_total: u128,
    /// Mass this life of the receiver has confirmed.
    pub acked_total: u128,
    /// Mass its earlier lives had confirmed.
    pub acked_by_earlier_lives: u128,
    /// Mass given up when a life of the receiver ended.
    pub written_off: u128,
    /// Mass that came back: refused by the receiver, or not applied when it left.
    pub returned: u128,
}

impl InLinkLedger {
    /// Mass applied from all lives of the sender.
    pub fn applied_in_all(&self) -> u128 {
        self.applied_total + self.applied_from_earlier_lives
    }

    /// Mass that arrived and waits.
    pub fn queued_mass(&self) -> u128 {
        self.queued.iter().map(|(_, mass)| u128::from(mass.units())).sum()
    }
}

impl OutLinkLedger {
    /// Mass that the sender does not know to be applied.
    pub fn outstanding(&self) -> u128 {
        self.outbox.iter().map(|(_, mass)| u128::from(mass.units())).sum()
    }

    /// The part of the outstanding mass that the receiver has not applied by its own books.
    pub fn under_way_to(&self, receiver: &InLinkLedger) -> u128 {
        let is_under_way =
            |seq: u64| seq > receiver.applied_seq || receiver.rejected.contains(receiver.applied_seq, seq);
        self.outbox.iter().filter(|(seq, _)| is_under_way(*seq)).map(|(_, mass)| u128::from(mass.units())).sum()
    }
}
