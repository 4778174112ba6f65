//! Admission control for request-response protocols: concurrency permits, with a share reserved for members.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libp2p::PeerId;

use crate::known_peers::KnownPeers;

/// Limits on requests served at the same time.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionLimits {
    /// Requests of all known peers together.
    pub known: usize,
    /// Requests of all strangers together.
    pub strangers: usize,
    /// Requests of one peer.
    pub per_peer: usize,
}

/// Time within which a stranger must send its request, or lose its permit.
pub const STRANGER_TIMEOUT: Duration = Duration::from_secs(2);

/// The permits of one protocol.
#[derive(Clone, Debug)]
pub struct Places {
    peers: KnownPeers,
    limits: AdmissionLimits,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    known: usize,
    strangers: usize,
    by_peer: BTreeMap<PeerId, usize>,
}

/// A permit to be served; dropping it releases it.
#[derive(Debug)]
pub struct AdmissionPermit {
    peer: PeerId,
    is_known: bool,
    taken: Arc<Mutex<Taken>>,
}

impl Places {
    /// Permits under `limits`; those for known peers are reserved for `peers`.
    ///
    /// ```
    /// use mingle_net::known_peers::KnownPeers;
    /// use mingle_net::places::{AdmissionLimits, Places};
    /// use libp2p::PeerId;
    ///
    /// let (peers, ana) = (KnownPeers::default(), PeerId::random());
    /// peers.replace([ana].into());
    /// let places = Places::new(peers, AdmissionLimits { known: 1, strangers: 1, per_peer: 1 });
    /// let _strangers = places.take(PeerId::random()).unwrap();
    /// assert!(places.take(PeerId::random()).is_none(), "the only place of strangers is taken");
    /// assert!(places.take(ana).is_some());
    /// ```
    pub fn new(peers: KnownPeers, limits: AdmissionLimits) -> Self {
        Self { peers, limits, taken: Arc::default() }
    }

    /// Takes a permit for `peer`; `None` if its share or its own limit is used up.
    pub fn take(&self, peer: PeerId) -> Option<AdmissionPermit> {
        let is_known = self.peers.contains(&peer);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let most = if is_known { self.limits.known } else { self.limits.strangers };
        if *taken.of(is_known) >= most || taken.by_peer.get(&peer).is_some_and(|own| *own >= self.limits.per_peer) {
            return None;
        }
        *taken.of(is_known) += 1;
        *taken.by_peer.entry(peer).or_default() += 1;
        Some(AdmissionPermit { peer, is_known, taken: Arc::clone(&self.taken) })
    }
}

impl Taken {
    fn of(&mut self, is_known: bool) -> &mut usize {
        if is_known { &mut self.known } else { &mut self.strangers }
    }
}

impl AdmissionPermit {
    /// Returns `true` if the permit counts against the share of known peers.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Time that the holder has to send its request: `patience`, but at most `STRANGER_TIMEOUT` for strangers.
    pub fn patience(&self, patience: Duration) -> Duration {
        if self.is_known { patience } else { patience.min(STRANGER_TIMEOUT) }
    }
}

impl Drop for AdmissionPermit {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken.of(self.is_known) -= 1;
        if let Some(own) = taken.by_peer.get_mut(&self.peer) {
            *own -= 1;
            if *own == 0 {
                taken.by_peer.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_place_is_free_again_also_where_its_holder_became_known_meanwhile() {
        let (peers, peer) = (KnownPeers::default(), PeerId::random());
        let places = Places::new(peers.clone(), AdmissionLimits { known: 1, strangers: 1, per_peer: 2 });
        let first = places.take(peer).unwrap();
        assert!(places.take(peer).is_none(), "strangers have one place");
        peers.replace([peer].into());
        let second = places.take(peer).unwrap();
        assert_eq!(first.patience(Duration::from_secs(9)), STRANGER_TIMEOUT);
        assert_eq!(second.patience(Duration::from_secs(9)), Duration::from_secs(9));
        drop(first);
        assert!(places.take(PeerId::random()).is_some());
        assert!(places.take(peer).is_none(), "known peers have one");
        drop(second);
        assert!(places.take(peer).is_some());
        assert!(places.taken.lock().unwrap().by_peer.is_empty());
    }

    #[test]
    fn nobody_takes_more_places_than_one_peer_may() {
        let (peers, peer) = (KnownPeers::default(), PeerId::random());
        peers.replace([peer].into());
        let places = Places::new(peers, AdmissionLimits { known: 8, strangers: 8, per_peer: 2 });
        let held: Vec<_> = (0..3).map_while(|_| places.take(peer)).collect();
        assert_eq!(held.len(), 2);
    }
}
