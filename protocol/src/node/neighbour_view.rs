//! A neighbour as people and metrics see it.

use crate::effect::Suspension;
use crate::mass::Mass;
use crate::peer::Peer;
use crate::schedule::NodeId;

use super::Node;

/// What a node knows of one neighbour at this instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourView {
    /// Which.
    pub id: NodeId,
    /// It is connected, and both have greeted each other.
    pub is_up: bool,
    /// It is neither waited for nor sent to, and why.
    pub suspended: Option<Suspension>,
    /// It has left the generation for good.
    pub has_left: bool,
    /// Its present life; 0 while it was never heard.
    pub incarnation: u64,
    /// Steps that it is through with, as far as is known.
    pub passed_steps: u64,
    /// The link to it, where the plan has one.
    pub outgoing: Option<OutgoingView>,
    /// The link from it, where the plan has one.
    pub incoming: Option<IncomingView>,
}

/// The sending end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingView {
    /// Parcels ever sent.
    pub parcels: u64,
    /// Parcels that the receiver has not acknowledged.
    pub unacknowledged_parcels: usize,
    /// The mass of these.
    pub unacknowledged: Mass,
}

/// The receiving end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncomingView {
    /// The number of the last parcel that arrived, which is how many the sender ever sent on the link.
    pub parcels: u64,
    /// Parcels that have arrived and wait for their step.
    pub queued_parcels: usize,
}

impl NeighbourView {
    fn of(peer: &Peer) -> Self {
        let outgoing = peer.outgoing.as_ref().map(|link| OutgoingView {
            parcels: link.next_seq() - 1,
            unacknowledged_parcels: link.outstanding_parcels(),
            unacknowledged: link.undelivered(),
        });
        let incoming = peer
            .incoming
            .as_ref()
            .map(|link| IncomingView { parcels: link.received(), queued_parcels: link.queued_parcels() });
        let passed = peer.incoming.as_ref().map_or(0, |link| link.passed());
        Self {
            id: peer.id,
            is_up: peer.link_up && peer.mutual,
            suspended: peer.suspended,
            has_left: peer.left,
            incarnation: peer.incarnation(),
            passed_steps: peer.passed.max(passed),
            outgoing,
            incoming,
        }
    }
}

impl Node {
    /// All neighbours as they stand now, ascending.
    pub fn neighbour_views(&self) -> impl Iterator<Item = NeighbourView> {
        self.peers.values().map(NeighbourView::of)
    }
}
