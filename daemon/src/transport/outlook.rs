//! What a peer lacks, and whom it could ask: for those who find out.

use std::collections::BTreeSet;

use libp2p::{Multiaddr, PeerId};

/// Empty while every neighbour is connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outlook {
    /// Neighbours that are not connected.
    pub(crate) missing: BTreeSet<PeerId>,
    /// Members that are.
    pub(crate) members: BTreeSet<PeerId>,
    /// Where this peer listens now, through relays too.
    pub(crate) listening: Vec<Multiaddr>,
}
