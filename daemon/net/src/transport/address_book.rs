//! Addresses of peers: those that a peer reports itself, and those relayed by others.
//!
//! Swarms of some hundred peers fit as a whole. A Kademlia table does not hold them: a bucket takes 20 peers, and half
//! of all peers belong into the same bucket.

use std::collections::BTreeMap;

use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};

/// Addresses kept of one peer: so many self-reported, and as many relayed.
const MAX_ADDRESSES_PER_PEER: usize = 16;
/// Peers whose addresses are kept.
const MAX_PEERS: usize = 8192;

/// The addresses of peers.
#[derive(Debug, Default)]
pub(super) struct AddressBook {
    entries: BTreeMap<PeerId, AddressEntry>,
}

#[derive(Debug, Default)]
struct AddressEntry {
    /// Addresses that the peer reported itself.
    own: Vec<Multiaddr>,
    /// Addresses that others relayed.
    told: Vec<Multiaddr>,
}

impl AddressBook {
    /// Stores the addresses that a peer reports for itself. Returns `true` if they are new.
    pub(super) fn note_own(&mut self, peer: PeerId, addresses: &[Multiaddr]) -> bool {
        let addresses = bounded(addresses);
        let Some(entry) = self.entry(peer) else { return false };
        let is_news = entry.own != addresses;
        if is_news {
            // A self-reported address supersedes relayed ones, which are older.
            entry.own = addresses;
            entry.told = Vec::new();
        }
        is_news
    }

    /// Stores addresses of a peer that another one relayed. Returns `true` if any is new.
    pub(super) fn note_told(&mut self, peer: PeerId, addresses: &[Multiaddr]) -> bool {
        let addresses = bounded(addresses);
        if addresses.is_empty() {
            return false;
        }
        let Some(entry) = self.entry(peer) else { return false };
        let is_news = addresses.iter().any(|address| !entry.own.contains(address) && !entry.told.contains(address));
        if is_news {
            entry.told = addresses;
        }
        is_news
    }

    /// The addresses that a peer reports for itself.
    pub(super) fn own(&self, peer: &PeerId) -> &[Multiaddr] {
        self.entries.get(peer).map_or(&[], |entry| &entry.own)
    }

    /// The addresses to relay to others.
    pub(super) fn best(&self, peer: &PeerId) -> &[Multiaddr] {
        match self.entries.get(peer) {
            Some(entry) if entry.told.is_empty() => &entry.own,
            // Relayed after the peer's own report, which did not lead to a connection.
            Some(entry) => &entry.told,
            None => &[],
        }
    }

    /// Every address of a peer, without repetition; those through relays only `with_relays`.
    pub(super) fn all(&self, peer: &PeerId, with_relays: bool) -> Vec<Multiaddr> {
        let Some(entry) = self.entries.get(peer) else { return Vec::new() };
        let mut found: Vec<Multiaddr> = Vec::new();
        for address in entry.told.iter().chain(&entry.own) {
            if (with_relays || !is_relayed(address)) && !found.contains(address) {
                found.push(address.clone());
            }
        }
        found
    }

    /// Forgets a peer.
    pub(super) fn forget(&mut self, peer: &PeerId) {
        self.entries.remove(peer);
    }

    fn entry(&mut self, peer: PeerId) -> Option<&mut AddressEntry> {
        let has_room = self.entries.len() < MAX_PEERS || self.entries.contains_key(&peer);
        has_room.then(|| self.entries.entry(peer).or_default())
    }
}

/// Returns `true` if an address leads through a relay.
fn is_relayed(address: &Multiaddr) -> bool {
    address.iter().any(|part| part == Protocol::P2pCircuit)
}

/// Returns `true` for a QUIC address without a relay.
pub(super) fn is_quic(address: &Multiaddr) -> bool {
    !is_relayed(address) && address.iter().any(|part| part == Protocol::QuicV1)
}

/// At most `MAX_ADDRESSES_PER_PEER` of these addresses, without those that lead through one relay to another: these
/// cannot be dialled.
fn bounded(addresses: &[Multiaddr]) -> Vec<Multiaddr> {
    let relays = |address: &&Multiaddr| address.iter().filter(|part| *part == Protocol::P2pCircuit).count();
    addresses.iter().filter(|address| relays(address) <= 1).take(MAX_ADDRESSES_PER_PEER).cloned().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn address(port: u16) -> Multiaddr {
        format!("/ip4/10.0.0.1/tcp/{port}").parse().unwrap()
    }

    #[test]
    fn what_a_peer_says_itself_replaces_all_that_was_known_of_it() {
        let (mut book, peer) = (AddressBook::default(), PeerId::random());
        assert!(book.note_told(peer, &[address(1)]));
        assert!(!book.note_told(peer, &[address(1)]), "no news");
        assert_eq!((book.best(&peer), book.own(&peer)), (&[address(1)][..], &[][..]));
        assert!(book.note_own(peer, &[address(2)]));
        assert_eq!(book.all(&peer, true), [address(2)]);
        assert!(book.note_told(peer, &[address(3)]), "it may have moved");
        assert_eq!(book.all(&peer, true), [address(3), address(2)]);
        assert_eq!(book.best(&peer), [address(3)]);
        assert!(!book.note_told(peer, &[]), "who does not know takes nothing back");
        book.forget(&peer);
        assert!(book.all(&peer, true).is_empty());
    }

    #[test]
    fn ways_through_relays_are_given_only_to_who_asks_for_them() {
        let (mut book, peer, relay) = (AddressBook::default(), PeerId::random(), PeerId::random());
        let circuit: Multiaddr = format!("/ip4/10.0.0.9/tcp/4/p2p/{relay}/p2p-circuit").parse().unwrap();
        book.note_own(peer, &[circuit.clone(), address(1)]);
        assert_eq!(book.all(&peer, false), [address(1)]);
        assert_eq!(book.all(&peer, true), [circuit.clone(), address(1)]);
        let twice = circuit.with(Protocol::P2p(relay)).with(Protocol::P2pCircuit);
        assert!(!book.note_told(peer, &[twice]), "nobody can dial that");
    }

    #[test]
    fn a_peer_cannot_fill_the_book() {
        let (mut book, peer) = (AddressBook::default(), PeerId::random());
        let many: Vec<Multiaddr> = (0..100).map(address).collect();
        book.note_own(peer, &many);
        book.note_told(peer, &many[50..]);
        assert_eq!(book.all(&peer, true).len(), 2 * MAX_ADDRESSES_PER_PEER);
    }
}
