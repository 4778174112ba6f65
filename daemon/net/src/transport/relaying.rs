//! Relaying for peers that cannot be dialled: another peer passes the bytes on until the two have found a direct path.
//!
//! Every peer relays for members of its swarm and for pending peers, and for no others. Relayed bytes are encrypted
//! between the two ends. A peer reserves a place at a relay only after a peer that it needs has been unreachable for a
//! while.

use std::time::{Duration, Instant};

use libp2p::relay::{self, RateLimiter};
use libp2p::{Multiaddr, PeerId};

use crate::known_peers::KnownPeers;

const MAX_RESERVATIONS: usize = 128;
const MAX_CIRCUITS: usize = 64;
const MAX_CIRCUITS_PER_PEER: usize = 16;
/// A relayed stream may be needed for as long as the training takes; it is opened again afterwards.
const MAX_CIRCUIT_DURATION: Duration = Duration::from_secs(24 * 3600);
const MAX_CIRCUIT_BYTES: u64 = 1 << 40;

impl RateLimiter for KnownPeers {
    fn try_next(&mut self, peer: PeerId, _: &Multiaddr, _: Instant) -> bool {
        self.contains(&peer)
    }
}

/// Relays for known peers, within limits that training does not reach.
pub(super) fn config(known: &KnownPeers) -> relay::Config {
    relay::Config {
        max_reservations: MAX_RESERVATIONS,
        max_circuits: MAX_CIRCUITS,
        max_circuits_per_peer: MAX_CIRCUITS_PER_PEER,
        max_circuit_duration: MAX_CIRCUIT_DURATION,
        max_circuit_bytes: MAX_CIRCUIT_BYTES,
        reservation_rate_limiters: vec![Box::new(known.clone())],
        circuit_src_rate_limiters: vec![Box::new(known.clone())],
        ..relay::Config::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn only_known_peers_are_relayed() {
        let known = KnownPeers::default();
        let [ana, stranger] = [PeerId::random(), PeerId::random()];
        known.replace([ana].into());
        let mut limiter = known.clone();
        let address = Multiaddr::empty();
        assert!(limiter.try_next(ana, &address, Instant::now()));
        assert!(!limiter.try_next(stranger, &address, Instant::now()));
        known.replace(BTreeSet::new());
        assert!(!limiter.try_next(ana, &address, Instant::now()));
    }
}
