//! Kademlia, kept quiet while it is not needed.
//!
//! A peer learns the addresses that it needs from other members. Left to itself, Kademlia would dial some twenty
//! further peers, whenever its table grows and for every query; in a swarm that is forming, every peer would connect to
//! every other. So it answers queries of others, and works by itself only during a search for a peer that no member
//! knew.
//!
//! It answers known peers, and peers that this process has dialled: other peers receive no addresses of members.

use std::collections::BTreeSet;
use std::task::{Context, Poll};

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::kad::{self, QueryId, QueryInfo, store::MemoryStore};
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, DialError, DialFailure, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};

use crate::known_peers::KnownPeers;

/// Kademlia, which dials and refreshes its table only while it is needed.
pub(super) struct LastResort {
    kademlia: kad::Behaviour<MemoryStore>,
    known: KnownPeers,
    /// Connections that others have opened.
    incoming: BTreeSet<ConnectionId>,
    is_needed: bool,
}

impl LastResort {
    pub(super) fn new(kademlia: kad::Behaviour<MemoryStore>, known: KnownPeers) -> Self {
        Self { kademlia, known, incoming: BTreeSet::new(), is_needed: false }
    }

    /// Adds an address that a member reported, which others may query.
    pub(super) fn add_address(&mut self, peer: &PeerId, address: Multiaddr) {
        self.kademlia.add_address(peer, address);
    }

    /// Starts a query for a peer.
    pub(super) fn look_for(&mut self, peer: PeerId) -> QueryId {
        self.is_needed = true;
        self.kademlia.get_closest_peers(peer)
    }

    /// Ends the searches: Kademlia is not needed until the next query.
    pub(super) fn rest(&mut self) {
        self.is_needed = false;
    }

    /// Finishes Kademlia's own bootstrap queries.
    fn calm(&mut self) {
        for mut query in self.kademlia.iter_queries_mut() {
            if matches!(query.info(), QueryInfo::Bootstrap { .. }) {
                query.finish();
            }
        }
    }
}

impl NetworkBehaviour for LastResort {
    type ConnectionHandler = <kad::Behaviour<MemoryStore> as NetworkBehaviour>::ConnectionHandler;
    type ToSwarm = kad::Event;

    fn handle_pending_inbound_connection(
        &mut self,
        connection: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.kademlia.handle_pending_inbound_connection(connection, local, remote)
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.kademlia.handle_established_inbound_connection(connection, peer, local, remote)
    }

    fn handle_pending_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: Option<PeerId>,
        addresses: &[Multiaddr],
        role: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        self.kademlia.handle_pending_outbound_connection(connection, peer, addresses, role)
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port_use: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.kademlia.handle_established_outbound_connection(connection, peer, address, role, port_use)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match &event {
            FromSwarm::ConnectionEstablished(opened) if opened.endpoint.is_listener() => {
                self.incoming.insert(opened.connection_id);
            }
            FromSwarm::ConnectionClosed(closed) => {
                self.incoming.remove(&closed.connection_id);
            }
            _ => {}
        }
        self.kademlia.on_swarm_event(event);
    }

    fn on_connection_handler_event(&mut self, peer: PeerId, connection: ConnectionId, event: THandlerOutEvent<Self>) {
        // Queries of strangers are ignored; they time out.
        if self.known.contains(&peer) || !self.incoming.contains(&connection) {
            self.kademlia.on_connection_handler_event(peer, connection, event);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        loop {
            if !self.is_needed {
                self.calm();
            }
            match self.kademlia.poll(cx) {
                Poll::Ready(ToSwarm::Dial { opts }) if !self.is_needed => {
                    // Reported as a failed dial.
                    self.kademlia.on_swarm_event(FromSwarm::DialFailure(DialFailure {
                        peer_id: opts.get_peer_id(),
                        error: &DialError::Aborted,
                        connection_id: opts.connection_id(),
                    }));
                }
                other => return other,
            }
        }
    }
}
