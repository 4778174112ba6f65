//! The neighbours that a peer lacks, and the members that it can ask for their addresses.

use std::collections::BTreeSet;

use libp2p::{Multiaddr, PeerId};

/// The state of the search for neighbours. Empty while every neighbour is connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Neighbours that are not connected.
    pub missing: BTreeSet<PeerId>,
    /// Members that are connected.
    pub members: BTreeSet<PeerId>,
    /// Addresses on which this peer listens now, including those through relays.
    pub listening: Vec<Multiaddr>,
}
