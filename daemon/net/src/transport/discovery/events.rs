//! Handlers of discovery for events of the swarm: connections, identify, mDNS, results of Kademlia queries.

use libp2p::core::ConnectedPoint;
use libp2p::kad::{self, GetClosestPeersError, GetClosestPeersOk, QueryId, QueryResult};
use libp2p::swarm::{ConnectionId, SwarmEvent};
use libp2p::{PeerId, Swarm, dcutr, identify, mdns, ping};
use tokio::time::Instant;

use super::super::NetworkEvent;
use super::super::behaviour::{Behaviour, BehaviourEvent, IDENTIFY_PROTOCOL};
use super::{Discovery, MAX_MDNS_ADDRESSES};
use crate::dial_error::{self, DialAttempt};

impl Discovery {
    /// Handles an event of the swarm.
    pub(in crate::transport) fn on_swarm_event(
        &mut self,
        swarm: &mut Swarm<Behaviour>,
        event: SwarmEvent<BehaviourEvent>,
    ) {
        self.counter.note(&event);
        match event {
            SwarmEvent::ConnectionEstablished { peer_id, endpoint, connection_id, .. } => {
                tracing::debug!(peer = %peer_id, %connection_id, address = %endpoint.get_remote_address(), "connected");
                self.on_connection(swarm, peer_id, connection_id, &endpoint);
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, num_established, cause, .. } => {
                tracing::debug!(peer = %peer_id, %connection_id, num_established, ?cause, "disconnected");
                self.relays.note_disconnection(peer_id, connection_id);
                if num_established == 0 {
                    self.on_disconnection(peer_id);
                }
            }
            SwarmEvent::NewListenAddr { listener_id, address } => {
                tracing::debug!(?listener_id, %address, "listening");
            }
            SwarmEvent::ListenerClosed { listener_id, reason, .. } => {
                tracing::debug!(?listener_id, ?reason, "listening no more");
                self.relays.note_end(listener_id);
            }
            SwarmEvent::OutgoingConnectionError { peer_id, error, connection_id } => {
                tracing::debug!(peer = ?peer_id, %connection_id, %error, "a dial has failed");
                self.on_failed_dial(peer_id, connection_id, &dial_error::attempts(&error));
            }
            SwarmEvent::Behaviour(event) => self.on_behaviour_event(swarm, event),
            _ => {}
        }
        self.searches.follow(Instant::now(), &self.missing());
        self.show(swarm);
    }

    fn on_connection(
        &mut self,
        swarm: &mut Swarm<Behaviour>,
        peer: PeerId,
        connection: ConnectionId,
        endpoint: &ConnectedPoint,
    ) {
        self.connected.insert(peer);
        self.relays.note_connection(peer, connection, endpoint);
        if !endpoint.is_relayed() {
            self.relays.prefer(swarm, peer, connection);
        }
        self.attempts.remove(&peer);
        for order in self.orders.extract_if(.., |order| order.peer == peer) {
            let _ = order.connected.send(());
        }
        for _ in 0..self.bootstraps.note_connection(connection, peer) {
            let address = endpoint.get_remote_address().clone();
            self.news.push(NetworkEvent::Bootstrapped { peer, address });
        }
    }

    fn on_disconnection(&mut self, peer: PeerId) {
        self.connected.remove(&peer);
        self.bootstraps.note_disconnection(peer);
        if !self.known.contains(&peer) && !self.sought.contains(&peer) {
            self.book.forget(&peer);
        }
    }

    fn on_failed_dial(&mut self, peer: Option<PeerId>, connection: ConnectionId, attempts: &[DialAttempt]) {
        self.bootstraps.note_failure(connection);
        peer.iter().for_each(|peer| self.searches.note_failure(Instant::now(), peer));
        if attempts.is_empty() {
            return;
        }
        let missing = self.missing();
        self.attempts.retain(|peer, _| missing.contains(peer));
        if let Some(peer) = peer.filter(|peer| missing.contains(peer)) {
            self.attempts.insert(peer, attempts.to_vec());
        }
        self.news.push(NetworkEvent::DialFailed { peer, attempts: attempts.to_vec() });
    }

    fn on_behaviour_event(&mut self, swarm: &mut Swarm<Behaviour>, event: BehaviourEvent) {
        match event {
            BehaviourEvent::HolePunching(dcutr::Event { remote_peer_id: peer, result }) => match result {
                Ok(direct) => self.relays.prefer(swarm, peer, direct),
                Err(error) => tracing::debug!(%peer, %error, "no hole could be punched"),
            },
            BehaviourEvent::Mdns(mdns::Event::Discovered(found)) => {
                for (peer, address) in found.into_iter().take(MAX_MDNS_ADDRESSES) {
                    swarm.behaviour_mut().kademlia.add_address(&peer, address);
                    self.searches.hurry(Instant::now(), &peer);
                }
                self.bootstraps.retry_soon();
            }
            // A host that lost power sends nothing; TCP alone would consider it connected for a quarter of an hour.
            BehaviourEvent::Ping(ping::Event { connection, result: Err(_), .. }) => {
                swarm.close_connection(connection);
            }
            BehaviourEvent::Ping(ping::Event { peer, result: Ok(time), .. }) => {
                self.news.push(NetworkEvent::RoundTrip { peer, time });
            }
            BehaviourEvent::Identify(identify::Event::Received { peer_id, info, .. }) => {
                self.learn_own_addresses(swarm, peer_id, &info);
                self.relays.note_offer(peer_id, &info);
            }
            BehaviourEvent::Kademlia(kad::Event::OutboundQueryProgressed {
                id,
                result: QueryResult::GetClosestPeers(result),
                step,
                ..
            }) => self.on_closest_peers(swarm, id, result, step.last),
            _ => {}
        }
    }

    fn on_closest_peers(
        &mut self,
        swarm: &mut Swarm<Behaviour>,
        query: QueryId,
        result: Result<GetClosestPeersOk, GetClosestPeersError>,
        last: bool,
    ) {
        let found = match result {
            Ok(GetClosestPeersOk { peers, .. }) | Err(GetClosestPeersError::Timeout { peers, .. }) => peers,
        };
        for info in found {
            if self.searches.includes(&info.peer_id) && self.book.note_told(info.peer_id, &info.addrs) {
                self.dial(swarm, info.peer_id);
            }
        }
        if last {
            self.queries.retain(|under_way| *under_way != query);
        }
    }

    /// Stores a Mingle peer's own addresses, and puts them into the table so that others can query them.
    fn learn_own_addresses(&mut self, swarm: &mut Swarm<Behaviour>, peer: PeerId, info: &identify::Info) {
        if info.protocol_version != IDENTIFY_PROTOCOL || !self.connected.contains(&peer) {
            return;
        }
        self.book.note_own(peer, &info.listen_addrs);
        self.put_into_table(swarm, peer);
    }

    /// Puts the addresses of a known peer into the table. While no peer is known, all are; otherwise strangers do not
    /// enter.
    pub(super) fn put_into_table(&self, swarm: &mut Swarm<Behaviour>, peer: PeerId) {
        if self.known.contains(&peer) || self.known.is_empty() {
            for address in self.book.own(&peer) {
                swarm.behaviour_mut().kademlia.add_address(&peer, address.clone());
            }
        }
    }
}
