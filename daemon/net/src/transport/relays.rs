//! The relays of this peer, and its relayed connections.

use std::collections::BTreeMap;

use libp2p::core::ConnectedPoint;
use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use libp2p::{Multiaddr, PeerId, Swarm, identify, relay};

use super::behaviour::Behaviour;

/// Relays at a time, so that one may fail.
const MAX_RELAYS: usize = 2;
/// Peers whose offers are remembered.
const MAX_OFFERS: usize = 64;

/// The relays that this peer knows and uses.
#[derive(Default)]
pub(super) struct Relays {
    /// Peers that this one could dial, with the address; they may relay.
    offers: BTreeMap<PeerId, Offer>,
    /// The reservations, by relay.
    reserved: BTreeMap<PeerId, ListenerId>,
    /// Relayed connections, by the peer at the other end.
    relayed: BTreeMap<PeerId, Vec<ConnectionId>>,
}

struct Offer {
    address: Multiaddr,
    relays: bool,
}

impl Offer {
    /// The address of reservations at this relay.
    fn circuit(&self, relay: PeerId) -> Multiaddr {
        self.address.clone().with(Protocol::P2p(relay)).with(Protocol::P2pCircuit)
    }
}

impl Relays {
    pub(super) fn note_connection(&mut self, peer: PeerId, connection: ConnectionId, endpoint: &ConnectedPoint) {
        if endpoint.is_relayed() {
            self.relayed.entry(peer).or_default().push(connection);
        } else if let ConnectedPoint::Dialer { address, .. } = endpoint
            && (self.offers.len() < MAX_OFFERS || self.offers.contains_key(&peer))
        {
            let address = address.iter().filter(|part| !matches!(part, Protocol::P2p(_))).collect();
            // A peer that was started again may listen elsewhere.
            let relays = self.offers.get(&peer).is_some_and(|offer| offer.relays);
            self.offers.insert(peer, Offer { address, relays });
        }
    }

    pub(super) fn note_disconnection(&mut self, peer: PeerId, connection: ConnectionId) {
        if let Some(connections) = self.relayed.get_mut(&peer) {
            connections.retain(|relayed| *relayed != connection);
        }
    }

    /// Records from identify whether a peer relays.
    pub(super) fn note_offer(&mut self, peer: PeerId, info: &identify::Info) {
        if let Some(offer) = self.offers.get_mut(&peer) {
            offer.relays = info.protocols.contains(&relay::HOP_PROTOCOL_NAME);
        }
    }

    /// Forgets a reservation that was refused or has ended.
    pub(super) fn note_end(&mut self, listener: ListenerId) {
        self.reserved.retain(|_, reserved| *reserved != listener);
    }

    /// Reserves places at relays once a peer has been unreachable for a while: through a relay it can reach this peer.
    pub(super) fn reserve_if_needed(&mut self, swarm: &mut Swarm<Behaviour>, somebody_is_unreachable: bool) {
        if somebody_is_unreachable && self.reserved.len() < MAX_RELAYS {
            self.reserve(swarm);
        }
    }

    fn reserve(&mut self, swarm: &mut Swarm<Behaviour>) {
        for (peer, offer) in &self.offers {
            if self.reserved.len() >= MAX_RELAYS {
                return;
            }
            if !offer.relays || self.reserved.contains_key(peer) || !swarm.is_connected(peer) {
                continue;
            }
            tracing::debug!(%peer, "asking this peer to relay");
            match swarm.listen_on(offer.circuit(*peer)) {
                Ok(listener) => drop(self.reserved.insert(*peer, listener)),
                Err(error) => tracing::debug!(%peer, %error, "cannot ask this peer to relay"),
            }
        }
    }

    /// Closes the relayed connections to `peer` after a direct one was found: its streams move there.
    pub(super) fn prefer(&mut self, swarm: &mut Swarm<Behaviour>, peer: PeerId, direct: ConnectionId) {
        for relayed in self.relayed.remove(&peer).unwrap_or_default() {
            if relayed != direct {
                swarm.close_connection(relayed);
            }
        }
    }
}
