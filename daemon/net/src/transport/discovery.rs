//! Peer discovery: dials the bootstrap addresses, learns addresses from identify and from members, and queries Kademlia
//! where no member knows a peer.
//!
//! Of two peers that need each other, the later one asks a member that the earlier one has contacted, learns its
//! addresses, and dials it: one dial per link. The earlier one only waits.

mod events;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use libp2p::kad::QueryId;
use libp2p::swarm::DialError;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::{Multiaddr, PeerId, Swarm};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::NetworkEvent;
use super::address_book::{AddressBook, is_quic};
use super::behaviour::Behaviour;
use super::bootstraps::Bootstraps;
use super::counts::Counter;
use super::outlook::Outlook;
use super::relays::Relays;
use super::searches::{Attempt, Searches};
use crate::dial_error::DialAttempt;
use crate::known_peers::KnownPeers;

/// Lifetime of a search for a peer that is not a neighbour.
const ORDER_LIFETIME: Duration = Duration::from_secs(30);
const MAX_ORDERS: usize = 1024;
/// Addresses taken from one round of mDNS.
const MAX_MDNS_ADDRESSES: usize = 256;
/// Queries to the Kademlia table at a time.
const MAX_QUERIES: usize = 4;

/// The peers still sought, and the state of their searches.
pub(super) struct Discovery {
    local: PeerId,
    known: KnownPeers,
    counter: Counter,
    bootstraps: Bootstraps,
    sought: BTreeSet<PeerId>,
    /// Peers sought beside the neighbours.
    orders: Vec<DialOrder>,
    book: AddressBook,
    searches: Searches,
    /// Failed attempts of the last dial to each missing peer.
    attempts: BTreeMap<PeerId, Vec<DialAttempt>>,
    connected: BTreeSet<PeerId>,
    queries: Vec<QueryId>,
    relays: Relays,
    /// Events not yet delivered to the daemon.
    news: Vec<NetworkEvent>,
    outlook: watch::Sender<Outlook>,
}

/// A requested connection to a peer, with a deadline.
struct DialOrder {
    peer: PeerId,
    until: Instant,
    connected: oneshot::Sender<()>,
}

impl Discovery {
    /// Starts without any peer. Missing neighbours are shown through `outlook`.
    pub(super) fn new(local: PeerId, known: KnownPeers, counter: Counter, outlook: watch::Sender<Outlook>) -> Self {
        Self {
            local,
            known,
            counter,
            bootstraps: Bootstraps::new(),
            sought: BTreeSet::new(),
            orders: Vec::new(),
            book: AddressBook::default(),
            searches: Searches::new(Instant::now()),
            attempts: BTreeMap::new(),
            connected: BTreeSet::new(),
            queries: Vec::new(),
            relays: Relays::default(),
            news: Vec::new(),
            outlook,
        }
    }

    pub(super) fn bootstrap(&mut self, swarm: &mut Swarm<Behaviour>, addresses: Vec<Multiaddr>) {
        self.bootstraps.add(addresses);
        self.retry(swarm);
    }

    pub(super) fn seek(&mut self, swarm: &mut Swarm<Behaviour>, mut peers: BTreeSet<PeerId>) {
        peers.remove(&self.local);
        self.sought = peers;
        self.retry(swarm);
    }

    /// Seeks one more peer for a limited time, and notifies `connected` once it is.
    pub(super) fn connect(
        &mut self,
        swarm: &mut Swarm<Behaviour>,
        peer: PeerId,
        addresses: &[Multiaddr],
        connected: oneshot::Sender<()>,
    ) {
        if self.connected.contains(&peer) {
            // The requester may be gone.
            let _ = connected.send(());
        } else if peer != self.local && self.orders.len() < MAX_ORDERS {
            self.book.note_told(peer, addresses);
            self.orders.push(DialOrder { peer, until: Instant::now() + ORDER_LIFETIME, connected });
            self.searches.follow(Instant::now(), &self.missing());
            self.searches.press(Instant::now(), &peer);
            self.retry(swarm);
        }
    }

    /// Stores earlier addresses of peers.
    pub(super) fn remember(&mut self, known: &[(PeerId, Vec<Multiaddr>)]) {
        for (peer, addresses) in known {
            self.book.note_told(*peer, addresses);
        }
    }

    /// Takes addresses that another peer relayed, and dials the sought peers among them. For connected peers their own
    /// report counts: relayed addresses may be older, and would be passed on.
    pub(super) fn learn(&mut self, swarm: &mut Swarm<Behaviour>, found: &[(PeerId, Vec<Multiaddr>)]) {
        self.searches.note_told(Instant::now());
        for (peer, addresses) in found {
            let is_of_use = self.known.contains(peer) || self.searches.includes(peer);
            let is_connected = self.connected.contains(peer);
            tracing::debug!(%peer, ?addresses, is_of_use, is_connected, "somebody told where this peer listens");
            if is_of_use && !is_connected && *peer != self.local && self.book.note_told(*peer, addresses) {
                self.searches.hurry(Instant::now(), peer);
            }
        }
        self.retry(swarm);
    }

    /// Stores the addresses that a member reports for itself, and returns the known ones of `wanted`. Of two peers that
    /// ask for each other, the later one learns of the earlier one.
    pub(super) fn introduce(
        &mut self,
        swarm: &mut Swarm<Behaviour>,
        peer: PeerId,
        addresses: &[Multiaddr],
        wanted: &[PeerId],
    ) -> Vec<(PeerId, Vec<Multiaddr>)> {
        tracing::debug!(%peer, ?addresses, "a member says where it listens");
        let is_news = self.book.note_own(peer, addresses);
        // A peer that came as a stranger is known by now.
        self.put_into_table(swarm, peer);
        if is_news && self.searches.includes(&peer) {
            self.searches.hurry(Instant::now(), &peer);
            self.retry(swarm);
        }
        self.whereabouts(wanted.iter())
    }

    /// The known addresses of the neighbours.
    pub(super) fn neighbours(&self) -> Vec<(PeerId, Vec<Multiaddr>)> {
        self.whereabouts(self.sought.iter())
    }

    pub(super) fn whereabouts<'a>(&self, peers: impl Iterator<Item = &'a PeerId>) -> Vec<(PeerId, Vec<Multiaddr>)> {
        let known = peers.map(|peer| (*peer, self.book.best(peer).to_vec()));
        known.filter(|(_, addresses)| !addresses.is_empty()).collect()
    }

    /// The addresses at which others can reach a connected peer.
    pub(super) fn addresses(&self, peer: &PeerId) -> Vec<Multiaddr> {
        if self.connected.contains(peer) { self.book.own(peer).to_vec() } else { Vec::new() }
    }

    /// The addresses that the last failed dial of a missing peer tried.
    pub(super) fn attempts(&self, peer: &PeerId) -> Vec<DialAttempt> {
        self.attempts.get(peer).cloned().unwrap_or_default()
    }

    /// Takes the events for the daemon.
    pub(super) fn take_news(&mut self) -> Vec<NetworkEvent> {
        std::mem::take(&mut self.news)
    }

    /// Waits until the next attempt is due; for ever while nothing is missing.
    pub(super) async fn wait(&self) {
        match self.searches.next().into_iter().chain(self.bootstraps.next()).min() {
            Some(next) => tokio::time::sleep_until(next).await,
            None => std::future::pending().await,
        }
    }

    /// Dials the peers that are due, and queries Kademlia for those that remain unknown.
    pub(super) fn retry(&mut self, swarm: &mut Swarm<Behaviour>) {
        let now = Instant::now();
        self.orders.retain(|order| order.until > now);
        self.searches.follow(Instant::now(), &self.missing());
        let answered = self.bootstraps.dial(swarm, &self.counter);
        self.news.extend(answered.into_iter().map(|(peer, address)| NetworkEvent::Bootstrapped { peer, address }));
        for peer in self.searches.due(Instant::now()) {
            self.dial(swarm, peer);
        }
        self.relays.reserve_if_needed(swarm, self.searches.any_unreachable(Instant::now()));
        self.ask_table(swarm);
        self.show(swarm);
    }

    fn dial(&mut self, swarm: &mut Swarm<Behaviour>, peer: PeerId) {
        // A path through a relay is soon found, and would be taken although a direct one exists.
        let known = self.book.all(&peer, self.searches.is_unreachable(Instant::now(), &peer));
        let mut attempt = self.searches.attempt(&peer);
        tracing::debug!(%peer, ?attempt, ?known, "dialling");
        let wanted = |attempt| -> Vec<Multiaddr> {
            let is_wanted = |address: &&Multiaddr| match attempt {
                Attempt::Quic => is_quic(address),
                Attempt::Others => !is_quic(address),
                Attempt::All => true,
            };
            known.iter().filter(is_wanted).cloned().collect()
        };
        let mut addresses = wanted(attempt);
        if addresses.is_empty() {
            attempt = Attempt::All;
            addresses = wanted(Attempt::All);
        }
        let condition = match attempt {
            Attempt::Others => PeerCondition::Disconnected,
            Attempt::Quic | Attempt::All => PeerCondition::DisconnectedAndNotDialing,
        };
        let dial = DialOpts::peer_id(peer).condition(condition).addresses(addresses);
        let dial = if attempt == Attempt::All { dial.extend_addresses_through_behaviour() } else { dial };
        match swarm.dial(dial.build()) {
            Ok(()) => {
                self.counter.count_dial();
                self.searches.note_dial(Instant::now(), &peer, attempt);
            }
            // A dial under way goes on.
            Err(DialError::DialPeerConditionFalse(_)) => self.searches.note_dial(Instant::now(), &peer, attempt),
            Err(_) => {}
        }
    }

    fn ask_table(&mut self, swarm: &mut Swarm<Behaviour>) {
        if self.searches.is_empty() {
            swarm.behaviour_mut().kademlia.rest();
        }
        let room = MAX_QUERIES.saturating_sub(self.queries.len());
        for peer in self.searches.for_the_table(Instant::now(), room, !self.known.is_empty()) {
            self.counter.count_table_query();
            self.queries.push(swarm.behaviour_mut().kademlia.look_for(peer));
        }
    }

    /// Updates the outlook if it has changed.
    fn show(&self, swarm: &Swarm<Behaviour>) {
        self.outlook.send_if_modified(|outlook| {
            let missing: BTreeSet<PeerId> = self.sought.difference(&self.connected).copied().collect();
            // Most of the time no neighbour is missing, and the other fields are not needed.
            let now = if missing.is_empty() {
                Outlook::default()
            } else {
                let members = self.connected.iter().filter(|peer| self.known.contains(peer)).copied().collect();
                Outlook { missing, members, listening: swarm.listeners().cloned().collect() }
            };
            let is_news = *outlook != now;
            *outlook = now;
            is_news
        });
    }

    fn missing(&self) -> BTreeSet<PeerId> {
        let sought = self.sought.iter().chain(self.orders.iter().map(|order| &order.peer));
        sought.filter(|peer| !self.connected.contains(*peer)).copied().collect()
    }
}
