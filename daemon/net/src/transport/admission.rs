//! Admission of connections. Members always find room: strangers share a limited number of connections, of which one
//! network address may hold only a part.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::task::{Context, Poll};

use libp2p::core::transport::PortUse;
use libp2p::core::{ConnectedPoint, Endpoint};
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent, THandlerOutEvent, ToSwarm,
    dummy,
};
use libp2p::{Multiaddr, PeerId};

use super::handshakes::Handshakes;
use crate::known_peers::KnownPeers;

/// When both sides dial at once, each over QUIC and TCP, four connections to a peer arise for a moment; a relayed one
/// and those of a process that has ended may still be there. More have no use.
const MOST_PER_PEER: usize = 8;
/// Most connections opened by strangers.
const MOST_STRANGERS: usize = 256;
/// Most of them from one network address: a site behind one address, or many processes on one machine.
const MOST_STRANGERS_PER_ADDRESS: usize = 128;

/// The open connections, with the limits on further ones.
pub(super) struct Admission {
    known: KnownPeers,
    handshakes: Handshakes,
    connections: HashMap<ConnectionId, Connection>,
    per_peer: BTreeMap<PeerId, usize>,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    peer: PeerId,
    /// Address from which the other side opened it; `None` for relayed connections and those that this peer opened.
    from: Option<IpAddr>,
    is_incoming: bool,
}

/// The limit that a refused connection would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    Peer,
    Strangers,
    Address(IpAddr),
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer => write!(f, "at most {MOST_PER_PEER} connections with one peer"),
            Self::Strangers => write!(f, "at most {MOST_STRANGERS} connections from peers that are not members"),
            Self::Address(address) => {
                write!(
                    f,
                    "at most {MOST_STRANGERS_PER_ADDRESS} connections from peers at {address} that are not members"
                )
            }
        }
    }
}

impl std::error::Error for Full {}

impl Admission {
    pub(super) fn new(known: KnownPeers) -> Self {
        let handshakes = Handshakes::new(known.clone());
        Self { known, handshakes, connections: HashMap::new(), per_peer: BTreeMap::new() }
    }

    fn check(&self, peer: &PeerId, incoming: Option<&Multiaddr>) -> Result<(), Full> {
        if self.per_peer.get(peer).is_some_and(|count| *count >= MOST_PER_PEER) {
            return Err(Full::Peer);
        }
        let Some(remote) = incoming.filter(|_| !self.known.contains(peer)) else { return Ok(()) };
        let strangers =
            || self.connections.values().filter(|held| held.is_incoming && !self.known.contains(&held.peer));
        if strangers().count() >= MOST_STRANGERS {
            return Err(Full::Strangers);
        }
        match network_address(remote) {
            Some(from) if strangers().filter(|held| held.from == Some(from)).count() >= MOST_STRANGERS_PER_ADDRESS => {
                Err(Full::Address(from))
            }
            _ => Ok(()),
        }
    }

    fn note_opened(&mut self, id: ConnectionId, connection: Connection) {
        self.connections.insert(id, connection);
        *self.per_peer.entry(connection.peer).or_default() += 1;
    }

    fn note_closed(&mut self, id: ConnectionId) {
        let Some(Connection { peer, .. }) = self.connections.remove(&id) else { return };
        if let Some(count) = self.per_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.per_peer.remove(&peer);
            }
        }
    }
}

/// The remote network address of a connection; `None` for a relayed one, as the relay's address is not that of the
/// peer.
fn network_address(remote: &Multiaddr) -> Option<IpAddr> {
    if remote.iter().any(|part| matches!(part, Protocol::P2pCircuit)) {
        return None;
    }
    remote.iter().find_map(|part| match part {
        Protocol::Ip4(address) => Some(address.into()),
        Protocol::Ip6(address) => Some(address.into()),
        _ => None,
    })
}

impl NetworkBehaviour for Admission {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = std::convert::Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        id: ConnectionId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.handshakes.begin(id, network_address(remote)).map_err(ConnectionDenied::new)
    }

    fn handle_established_inbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.handshakes.end(id);
        self.check(&peer, Some(remote)).map_err(ConnectionDenied::new)?;
        Ok(dummy::ConnectionHandler)
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.check(&peer, None).map_err(ConnectionDenied::new)?;
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(opened) => {
                let remote = network_address(opened.endpoint.get_remote_address());
                if let Some(address) = remote {
                    self.handshakes.note_connected(opened.peer_id, address);
                }
                let is_incoming = matches!(opened.endpoint, ConnectedPoint::Listener { .. });
                let from = remote.filter(|_| is_incoming);
                self.note_opened(opened.connection_id, Connection { peer: opened.peer_id, from, is_incoming });
            }
            FromSwarm::ConnectionClosed(closed) => self.note_closed(closed.connection_id),
            FromSwarm::ListenFailure(failed) => self.handshakes.end(failed.connection_id),
            _ => {}
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Opens connections from this address, each of another peer, until one is refused.
    fn fill(admission: &mut Admission, remote: &Multiaddr) -> (Vec<ConnectionId>, Full) {
        let mut opened = Vec::new();
        loop {
            let peer = PeerId::random();
            if let Err(full) = admission.check(&peer, Some(remote)) {
                return (opened, full);
            }
            let id = ConnectionId::new_unchecked(1000 * admission.per_peer.len() + opened.len());
            let from = network_address(remote);
            admission.note_opened(id, Connection { peer, from, is_incoming: true });
            opened.push(id);
        }
    }

    #[test]
    fn members_find_room_however_many_strangers_there_are() {
        let (known, member) = (KnownPeers::default(), PeerId::random());
        let mut admission = Admission::new(known.clone());
        let addresses = ["/ip4/192.0.2.1/udp/1/quic-v1", "/ip4/192.0.2.2/tcp/1", "/ip4/192.0.2.3/tcp/1"];
        let [first, second, third] = addresses.map(|text| text.parse::<Multiaddr>().unwrap());
        let (opened, full) = fill(&mut admission, &first);
        assert_eq!((opened.len(), full), (MOST_STRANGERS_PER_ADDRESS, Full::Address("192.0.2.1".parse().unwrap())));
        let (more, full) = fill(&mut admission, &second);
        assert_eq!((more.len(), full), (MOST_STRANGERS - MOST_STRANGERS_PER_ADDRESS, Full::Strangers));
        assert_eq!(admission.check(&member, Some(&third)), Err(Full::Strangers));
        known.replace([member].into());
        assert_eq!(admission.check(&member, Some(&first)), Ok(()));
        assert_eq!(admission.check(&PeerId::random(), None), Ok(()), "whom this peer dials");
        admission.note_closed(opened[0]);
        assert_eq!(admission.check(&PeerId::random(), Some(&third)), Ok(()));
    }

    #[test]
    fn one_peer_holds_few_connections_also_where_it_is_known() {
        let (known, peer) = (KnownPeers::default(), PeerId::random());
        known.replace([peer].into());
        let mut admission = Admission::new(known);
        for id in 0..MOST_PER_PEER {
            assert_eq!(admission.check(&peer, None), Ok(()));
            let connection = Connection { peer, from: None, is_incoming: false };
            admission.note_opened(ConnectionId::new_unchecked(id), connection);
        }
        assert_eq!(admission.check(&peer, None), Err(Full::Peer));
        admission.note_closed(ConnectionId::new_unchecked(3));
        assert_eq!(admission.check(&peer, None), Ok(()));
    }

    #[test]
    fn what_is_relayed_is_not_counted_at_the_address_of_the_relay() {
        let relayed = "/ip4/192.0.2.9/tcp/1/p2p-circuit".parse().unwrap();
        assert_eq!(network_address(&relayed), None);
    }
}
