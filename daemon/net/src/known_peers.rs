//! The set of known peers of a process: members of its plan, and admitted peers that wait for one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use libp2p::PeerId;

/// The peers that this process serves before all others. Clones share one set.
#[derive(Clone, Debug, Default)]
pub struct KnownPeers {
    peers: Arc<Mutex<BTreeSet<PeerId>>>,
}

impl KnownPeers {
    /// Replaces the set.
    pub fn replace(&self, peers: BTreeSet<PeerId>) {
        *self.peers.lock().unwrap_or_else(PoisonError::into_inner) = peers;
    }

    /// Returns `true` if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns `true` if `peer` is known.
    pub fn contains(&self, peer: &PeerId) -> bool {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).contains(peer)
    }
}
