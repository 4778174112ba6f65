//! Comparison of the records of the two ends of a link.
//!
//! Sums can agree by accident; chains cannot. The chain of a link at parcel k is a hash over all its parcels up to k,
//! so the receiver's chain at the last parcel it applied must be the sender's chain at that number. Where it is not,
//! one of the two was rolled back to an older state, or two processes went by the same name.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Books, Chain, InBooks, OutBooks};
use crate::schedule::NodeId;

/// A link whose two ends contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LinkBreak {
    /// The receiver confirmed parcels that it has not applied: its record is older than one it wrote.
    ReceiverBehind {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// The number up to which the sender has confirmations.
        acked: u64,
        /// The number up to which the receiver applied parcels.
        applied: u64,
    },
    /// The receiver applied parcels that the sender has not sent: the sender's record is older than one it wrote.
    SenderBehind {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// The number that the sender would give to its next parcel.
        next_seq: u64,
        /// The number up to which the receiver applied parcels.
        applied: u64,
    },
    /// The same numbers, but other parcels.
    Fork {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// The number at which the chains differ, if not before.
        seq: u64,
    },
    /// A neighbour knows a later life of a node than the node itself.
    EarlierLife {
        /// The node.
        id: NodeId,
        /// The life that its record is of.
        incarnation: u64,
        /// The neighbour.
        neighbour: NodeId,
        /// The life that the neighbour knows.
        known: u64,
    },
}

/// Compares both ends of every link between nodes whose books are here. Ascending by node, then by neighbour.
pub fn compare_links(books: &BTreeMap<NodeId, Books>) -> Vec<LinkBreak> {
    books.iter().flat_map(|(&id, own)| breaks_seen_by(id, own, books)).collect()
}

/// The contradictions to the books of one node: on its links to others, and in the lives of its neighbours it knows.
fn breaks_seen_by(id: NodeId, own: &Books, books: &BTreeMap<NodeId, Books>) -> Vec<LinkBreak> {
    let incoming = own.incoming.iter().map(|(&from, link)| (from, link.sender_incarnation, None));
    let outgoing = own.outgoing.iter().map(|(&to, link)| (to, link.receiver_incarnation, Some(link)));
    let mut breaks = Vec::new();
    for (neighbour, known, sends_on) in incoming.chain(outgoing) {
        let Some(other) = books.get(&neighbour) else {
            continue;
        };
        if known > other.incarnation {
            breaks.push(LinkBreak::EarlierLife { id: neighbour, incarnation: other.incarnation, neighbour: id, known });
        } else if let Some(link) = sends_on {
            breaks.extend(compare((id, own), link, (neighbour, other)));
        }
    }
    breaks
}

/// Compares the two ends of one link, if they are of the same lives.
fn compare((from, sender): (NodeId, &Books), link: &OutBooks, (to, receiver): (NodeId, &Books)) -> Option<LinkBreak> {
    if link.receiver_incarnation != receiver.incarnation {
        return None;
    }
    let &OutBooks { base, acked, next_seq, .. } = link;
    let other_end = receiver.incoming.get(&from);
    if other_end.is_some_and(|other| other.sender_incarnation > sender.incarnation) {
        return None;
    }
    let other_end = other_end.filter(|other| other.sender_incarnation == sender.incarnation);
    let Some(&InBooks { applied, chain, .. }) = other_end else {
        return (acked > base).then_some(LinkBreak::ReceiverBehind { from, to, acked, applied: base });
    };
    if applied < acked {
        return Some(LinkBreak::ReceiverBehind { from, to, acked, applied });
    }
    match link.chain_at(applied) {
        None => Some(LinkBreak::SenderBehind { from, to, next_seq, applied }),
        Some(own) if own != chain => Some(LinkBreak::Fork { from, to, seq: applied }),
        Some(_) => None,
    }
}

impl OutBooks {
    /// The chain at parcel `seq`, if that is the last one confirmed or in the outbox.
    pub fn chain_at(&self, seq: u64) -> Option<Chain> {
        if seq == self.acked {
            return Some(self.acked_chain);
        }
        self.outbox.iter().find(|parcel| parcel.seq == seq).map(|parcel| parcel.chain)
    }
}

impl fmt::Display for LinkBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReceiverBehind { from, to, acked, applied } => write!(
                f,
                "link {from} -> {to}: node {to} confirmed parcel {acked}, but has applied them up to {applied} only: its \
                 record is not its last"
            ),
            Self::SenderBehind { from, to, next_seq, applied } => write!(
                f,
                "link {from} -> {to}: node {to} has applied parcel {applied}, but node {from} would send {next_seq} next: \
                 its record is not its last"
            ),
            Self::Fork { from, to, seq } => {
                write!(
                    f,
                    "link {from} -> {to}: the parcels up to {seq} that node {to} applied are not those of node {from}"
                )
            }
            Self::EarlierLife { id, incarnation, neighbour, known } => {
                write!(f, "node {id}: its record is of life {incarnation}, but node {neighbour} knows life {known}")
            }
        }
    }
}

#[cfg(test)]
mod tests;
