//! Reaching peers that cannot be dialled: another peer passes the bytes on, until the two have found a direct way.
//!
//! Every peer relays for members of its swarm, and for those that wait to become one; nobody else may use it. Bytes that are
//! relayed are encrypted between the two ends. A peer asks others to relay for it only once somebody that it needs could
//! not be reached for a while.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use libp2p::relay::{self, RateLimiter};
use libp2p::{Multiaddr, PeerId};

const MAX_RESERVATIONS: usize = 128;
const MAX_CIRCUITS: usize = 64;
const MAX_CIRCUITS_PER_PEER: usize = 16;
/// A relayed stream may be needed for as long as the training takes; it is opened again afterwards.
const MAX_CIRCUIT_DURATION: Duration = Duration::from_secs(24 * 3600);
const MAX_CIRCUIT_BYTES: u64 = 1 << 40;

/// The peers that may be relayed.
#[derive(Clone, Debug, Default)]
pub struct Guests {
    peers: Arc<Mutex<BTreeSet<PeerId>>>,
}

impl Guests {
    /// Relays for these peers from now on, and no others.
    pub fn admit_only(&self, peers: BTreeSet<PeerId>) {
        *self.peers.lock().unwrap_or_else(PoisonError::into_inner) = peers;
    }

    /// Whether this peer knows no member.
    pub(super) fn is_empty(&self) -> bool {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether this peer is relayed.
    pub(super) fn has(&self, peer: &PeerId) -> bool {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).contains(peer)
    }
}

impl RateLimiter for Guests {
    fn try_next(&mut self, peer: PeerId, _: &Multiaddr, _: Instant) -> bool {
        self.has(&peer)
    }
}

/// Relays for guests, within limits that training does not meet.
pub(super) fn config(guests: &Guests) -> relay::Config {
    relay::Config {
        max_reservations: MAX_RESERVATIONS,
        max_circuits: MAX_CIRCUITS,
        max_circuits_per_peer: MAX_CIRCUITS_PER_PEER,
        max_circuit_duration: MAX_CIRCUIT_DURATION,
        max_circuit_bytes: MAX_CIRCUIT_BYTES,
        reservation_rate_limiters: vec![Box::new(guests.clone())],
        circuit_src_rate_limiters: vec![Box::new(guests.clone())],
        ..relay::Config::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_guests_are_relayed() {
        let guests = Guests::default();
        let [ana, stranger] = [PeerId::random(), PeerId::random()];
        guests.admit_only([ana].into());
        let mut limiter = guests.clone();
        let address = Multiaddr::empty();
        assert!(limiter.try_next(ana, &address, Instant::now()));
        assert!(!limiter.try_next(stranger, &address, Instant::now()));
        guests.admit_only(BTreeSet::new());
        assert!(!limiter.try_next(ana, &address, Instant::now()));
    }
}
