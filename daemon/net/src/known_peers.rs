//! The peers that a process knows: members of its plan, and those that were let in and wait for one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use libp2p::PeerId;

/// The peers that this process serves before all others. Copies share them.
#[derive(Clone, Debug, Default)]
pub struct KnownPeers {
    peers: Arc<Mutex<BTreeSet<PeerId>>>,
}

impl KnownPeers {
    /// These are known from now on, and no others.
    pub fn replace(&self, peers: BTreeSet<PeerId>) {
        *self.peers.lock().unwrap_or_else(PoisonError::into_inner) = peers;
    }

    /// Whether nobody is known.
    pub fn is_empty(&self) -> bool {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether this peer is known.
    pub fn contains(&self, peer: &PeerId) -> bool {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).contains(peer)
    }
}
