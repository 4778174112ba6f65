//! What a peer lacks, and whom it could ask: for those who find out.

use std::collections::BTreeSet;

use libp2p::{Multiaddr, PeerId};

/// Empty while every neighbour is connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Neighbours that are not connected.
    pub missing: BTreeSet<PeerId>,
    /// Members that are.
    pub members: BTreeSet<PeerId>,
    /// Where this peer listens now, through relays too.
    pub listening: Vec<Multiaddr>,
}
