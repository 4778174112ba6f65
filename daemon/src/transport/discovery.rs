//! Finding peers: dial the bootstrap addresses, learn addresses from identify, ask Kademlia for the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use libp2p::kad::{self, GetClosestPeersError, GetClosestPeersOk, QueryId, QueryResult};
use libp2p::multiaddr::Protocol;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::swarm::{ConnectionId, SwarmEvent};
use libp2p::{Multiaddr, PeerId, Swarm, dcutr, identify, mdns, ping};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::NetworkEvent;
use super::behaviour::{Behaviour, BehaviourEvent, IDENTIFY_PROTOCOL};
use super::dial_error::{self, DialAttempt};
use super::relays::Relays;

/// The first pause between attempts; it doubles up to [`LONGEST_PAUSE`] while nothing changes.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Who is looked for beside the neighbours is looked for so long.
const ORDER_LIFETIME: Duration = Duration::from_secs(30);
const MAX_ORDERS: usize = 1024;
/// Addresses taken from one round of mDNS.
const MAX_MDNS_ADDRESSES: usize = 256;
/// Addresses taken from one peer's description of itself.
const MAX_ADDRESSES_PER_PEER: usize = 16;

/// What is still looked for, and when to look again.
pub(super) struct Discovery {
    local: PeerId,
    bootstrap: Vec<Bootstrap>,
    sought: BTreeSet<PeerId>,
    /// Who is looked for as well.
    orders: Vec<Order>,
    /// What connected peers said of where they listen.
    addresses: BTreeMap<PeerId, Vec<Multiaddr>>,
    /// Why those that are missing could not be reached.
    attempts: BTreeMap<PeerId, Vec<DialAttempt>>,
    connected: BTreeSet<PeerId>,
    queries: BTreeMap<PeerId, QueryId>,
    pause: Duration,
    retry_at: Instant,
    relays: Relays,
}

/// A bootstrap address and the dial under way to it.
struct Bootstrap {
    address: Multiaddr,
    dialling: Option<ConnectionId>,
    /// Who answered there.
    peer: Option<PeerId>,
}

/// A peer that somebody wants connected, until then.
struct Order {
    peer: PeerId,
    /// Where it may be, by the word of somebody who is connected to it.
    addresses: Vec<Multiaddr>,
    until: Instant,
    connected: oneshot::Sender<()>,
}

impl Discovery {
    pub(super) fn new(local: PeerId) -> Self {
        Self {
            local,
            bootstrap: Vec::new(),
            sought: BTreeSet::new(),
            orders: Vec::new(),
            addresses: BTreeMap::new(),
            attempts: BTreeMap::new(),
            connected: BTreeSet::new(),
            queries: BTreeMap::new(),
            pause: FIRST_PAUSE,
            retry_at: Instant::now(),
            relays: Relays::default(),
        }
    }

    pub(super) fn bootstrap(&mut self, swarm: &mut Swarm<Behaviour>, addresses: Vec<Multiaddr>) {
        let new = addresses.into_iter().map(|address| Bootstrap { address, dialling: None, peer: None });
        self.bootstrap.extend(new);
        self.start_over(swarm);
    }

    pub(super) fn seek(&mut self, swarm: &mut Swarm<Behaviour>, mut peers: BTreeSet<PeerId>) {
        peers.remove(&self.local);
        self.sought = peers;
        self.start_over(swarm);
    }

    /// Looks for one peer more, for a while, and tells when it is connected.
    pub(super) fn connect(
        &mut self,
        swarm: &mut Swarm<Behaviour>,
        peer: PeerId,
        mut addresses: Vec<Multiaddr>,
        connected: oneshot::Sender<()>,
    ) {
        if self.connected.contains(&peer) {
            // Whoever asked may have gone.
            let _ = connected.send(());
        } else if peer != self.local && self.orders.len() < MAX_ORDERS {
            addresses.truncate(MAX_ADDRESSES_PER_PEER);
            self.orders.push(Order { peer, addresses, until: Instant::now() + ORDER_LIFETIME, connected });
            self.start_over(swarm);
        }
    }

    /// Where a connected peer can be reached by others.
    pub(super) fn addresses(&self, peer: &PeerId) -> Vec<Multiaddr> {
        self.addresses.get(peer).cloned().unwrap_or_default()
    }

    /// The addresses that the last failed dial of a missing peer tried.
    pub(super) fn attempts(&self, peer: &PeerId) -> Vec<DialAttempt> {
        self.attempts.get(peer).cloned().unwrap_or_default()
    }

    /// Returns when it is time to look again; never, while nothing is missing.
    pub(super) async fn wait(&self) {
        if self.complete() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep_until(self.retry_at).await;
    }

    /// Dials what is known and asks Kademlia for what is not, then waits longer than the last time.
    pub(super) fn retry(&mut self, swarm: &mut Swarm<Behaviour>) {
        let now = Instant::now();
        self.orders.retain(|order| order.until > now);
        self.retry_at = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.dial_bootstrap(swarm);
        let missing = self.missing();
        self.relays.reserve_if_needed(swarm, !missing.is_empty());
        for peer in missing {
            let orders = self.orders.iter().filter(|order| order.peer == peer);
            let told = orders.flat_map(|order| order.addresses.iter().cloned());
            let dial = DialOpts::peer_id(peer)
                .condition(PeerCondition::DisconnectedAndNotDialing)
                .addresses(told.chain(self.relays.ways_to(swarm, peer)).collect())
                .extend_addresses_through_behaviour()
                .build();
            // No address yet, or a dial under way: the query below, or that dial, goes on.
            let _ = swarm.dial(dial);
            self.queries.entry(peer).or_insert_with(|| swarm.behaviour_mut().kademlia.get_closest_peers(peer));
        }
    }

    /// Takes in what happened below; returns what the daemon should know.
    pub(super) fn on_swarm_event(
        &mut self,
        swarm: &mut Swarm<Behaviour>,
        event: SwarmEvent<BehaviourEvent>,
    ) -> Option<NetworkEvent> {
        match event {
            SwarmEvent::ConnectionEstablished { peer_id, endpoint, connection_id, .. } => {
                self.connected.insert(peer_id);
                self.relays.note_connection(peer_id, connection_id, &endpoint);
                self.attempts.remove(&peer_id);
                self.carry_out_orders(peer_id);
                self.retry_soon();
                let address = endpoint.get_remote_address().clone();
                let is_bootstrap = self.note_bootstrap_answer(connection_id, peer_id);
                is_bootstrap.then_some(NetworkEvent::Bootstrapped { peer: peer_id, address })
            }
            SwarmEvent::ListenerClosed { listener_id, .. } => {
                self.relays.note_end(listener_id);
                None
            }
            SwarmEvent::Behaviour(BehaviourEvent::HolePunching(dcutr::Event {
                remote_peer_id,
                result: Ok(direct),
            })) => {
                self.relays.prefer(swarm, remote_peer_id, direct);
                None
            }
            SwarmEvent::Behaviour(BehaviourEvent::Mdns(mdns::Event::Discovered(found))) => {
                for (peer, address) in found.into_iter().take(MAX_MDNS_ADDRESSES) {
                    swarm.behaviour_mut().kademlia.add_address(&peer, address);
                }
                self.retry_soon();
                None
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, num_established, .. } if num_established > 0 => {
                self.relays.note_disconnection(peer_id, connection_id);
                None
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, .. } => {
                self.relays.note_disconnection(peer_id, connection_id);
                self.connected.remove(&peer_id);
                self.addresses.remove(&peer_id);
                self.retry_soon();
                for bootstrap in &mut self.bootstrap {
                    if bootstrap.peer == Some(peer_id) {
                        bootstrap.peer = None;
                    }
                }
                None
            }
            SwarmEvent::Behaviour(BehaviourEvent::Ping(ping::Event { connection, result: Err(_), .. })) => {
                // A host that lost its power says nothing; TCP alone would believe in it for a quarter of an hour.
                swarm.close_connection(connection);
                None
            }
            SwarmEvent::Behaviour(BehaviourEvent::Ping(ping::Event { peer, result: Ok(time), .. })) => {
                Some(NetworkEvent::RoundTrip { peer, time })
            }
            SwarmEvent::OutgoingConnectionError { peer_id, error, connection_id } => {
                self.note_bootstrap_failure(connection_id);
                let attempts = dial_error::attempts(&error);
                self.note_attempts(peer_id, &attempts);
                (!attempts.is_empty()).then_some(NetworkEvent::DialFailed { peer: peer_id, attempts })
            }
            SwarmEvent::Behaviour(BehaviourEvent::Identify(identify::Event::Received { peer_id, info, .. })) => {
                self.learn_addresses(swarm, peer_id, &info);
                self.relays.note_offer(peer_id, &info);
                self.retry_soon();
                None
            }
            SwarmEvent::Behaviour(BehaviourEvent::Kademlia(kad::Event::OutboundQueryProgressed {
                id,
                result: QueryResult::GetClosestPeers(result),
                step,
                ..
            })) => {
                self.on_closest_peers(swarm, id, result, step.last);
                None
            }
            _ => None,
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
        let missing = self.missing();
        for info in found.into_iter().filter(|info| missing.contains(&info.peer_id)) {
            let dial = DialOpts::peer_id(info.peer_id)
                .condition(PeerCondition::DisconnectedAndNotDialing)
                .addresses(info.addrs)
                .extend_addresses_through_behaviour()
                .build();
            let _ = swarm.dial(dial);
        }
        if last {
            self.queries.retain(|_, under_way| *under_way != query);
        }
    }

    fn dial_bootstrap(&mut self, swarm: &mut Swarm<Behaviour>) {
        for bootstrap in &mut self.bootstrap {
            if bootstrap.peer.is_some() || bootstrap.dialling.is_some() {
                continue;
            }
            let address = bootstrap.address.clone();
            let dial = match named_peer(&address) {
                // Also when that peer is connected already: it is to be known as a bootstrap peer.
                Some(peer) => DialOpts::peer_id(peer).condition(PeerCondition::Always).addresses(vec![address]).build(),
                None => DialOpts::unknown_peer_id().address(address).build(),
            };
            bootstrap.dialling = Some(dial.connection_id());
            if swarm.dial(dial).is_err() {
                bootstrap.dialling = None;
            }
        }
    }

    /// Whether the new connection is the answer of a bootstrap address.
    fn note_bootstrap_answer(&mut self, connection: ConnectionId, peer: PeerId) -> bool {
        let answered = self.bootstrap.iter_mut().find(|bootstrap| bootstrap.dialling == Some(connection));
        let is_bootstrap = answered.is_some();
        if let Some(bootstrap) = answered {
            bootstrap.dialling = None;
            bootstrap.peer = Some(peer);
        }
        is_bootstrap
    }

    fn note_bootstrap_failure(&mut self, connection: ConnectionId) {
        for bootstrap in &mut self.bootstrap {
            if bootstrap.dialling == Some(connection) {
                bootstrap.dialling = None;
            }
        }
    }

    /// Keeps a Mingle peer's own addresses, and puts them into the table, so that others can ask for them.
    fn learn_addresses(&mut self, swarm: &mut Swarm<Behaviour>, peer: PeerId, info: &identify::Info) {
        if info.protocol_version != IDENTIFY_PROTOCOL {
            return;
        }
        let addresses: Vec<Multiaddr> = info.listen_addrs.iter().take(MAX_ADDRESSES_PER_PEER).cloned().collect();
        for address in &addresses {
            swarm.behaviour_mut().kademlia.add_address(&peer, address.clone());
        }
        if self.connected.contains(&peer) {
            self.addresses.insert(peer, addresses);
        }
    }

    fn carry_out_orders(&mut self, peer: PeerId) {
        for order in self.orders.extract_if(.., |order| order.peer == peer) {
            let _ = order.connected.send(());
        }
    }

    /// Keeps why a missing peer could not be reached.
    fn note_attempts(&mut self, peer: Option<PeerId>, attempts: &[DialAttempt]) {
        let missing = self.missing();
        self.attempts.retain(|peer, _| missing.contains(peer));
        if let Some(peer) = peer.filter(|peer| !attempts.is_empty() && missing.contains(peer)) {
            self.attempts.insert(peer, attempts.to_vec());
        }
    }

    fn start_over(&mut self, swarm: &mut Swarm<Behaviour>) {
        self.pause = FIRST_PAUSE;
        self.retry(swarm);
    }

    /// Something changed: what failed before may work now.
    fn retry_soon(&mut self) {
        self.pause = FIRST_PAUSE;
        self.retry_at = self.retry_at.min(Instant::now() + FIRST_PAUSE);
    }

    fn complete(&self) -> bool {
        self.bootstrap.iter().all(|bootstrap| bootstrap.peer.is_some()) && self.missing().is_empty()
    }

    fn missing(&self) -> BTreeSet<PeerId> {
        let sought = self.sought.iter().chain(self.orders.iter().map(|order| &order.peer));
        sought.filter(|peer| !self.connected.contains(*peer)).copied().collect()
    }
}

/// The PeerId at the end of an address.
fn named_peer(address: &Multiaddr) -> Option<PeerId> {
    address.iter().find_map(|part| match part {
        Protocol::P2p(peer) => Some(peer),
        _ => None,
    })
}
