//! Bootstrap addresses: a peer's way into its swarm, dialled also if the PeerId is unknown.

use std::time::Duration;

use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::{Multiaddr, PeerId, Swarm};
use tokio::time::Instant;

use super::behaviour::Behaviour;
use super::counts::Counter;

/// The first pause between attempts; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The bootstrap addresses, and the peers that answer there.
pub(super) struct Bootstraps {
    all: Vec<Bootstrap>,
    pause: Duration,
    next: Instant,
}

/// A bootstrap address and the dial under way to it.
struct Bootstrap {
    address: Multiaddr,
    /// The expected peer, if the address names one.
    name: Option<PeerId>,
    dialling: Option<ConnectionId>,
    /// The peer that answered.
    peer: Option<PeerId>,
}

impl Bootstraps {
    pub(super) fn new() -> Self {
        Self { all: Vec::new(), pause: FIRST_PAUSE, next: Instant::now() }
    }

    pub(super) fn add(&mut self, addresses: Vec<Multiaddr>) {
        let new = addresses.into_iter().map(|address| Bootstrap {
            name: named_peer(&address),
            address,
            dialling: None,
            peer: None,
        });
        self.all.extend(new);
        self.retry_soon();
    }

    /// Time of the next dial; `None` while all have answered.
    pub(super) fn next(&self) -> Option<Instant> {
        self.all.iter().any(|bootstrap| bootstrap.peer.is_none()).then_some(self.next)
    }

    /// Resets the back-off after a change, as dials that failed before may succeed now.
    pub(super) fn retry_soon(&mut self) {
        self.pause = FIRST_PAUSE;
        self.next = self.next.min(Instant::now() + FIRST_PAUSE);
    }

    /// Dials the addresses that have not answered, all those of a peer together. Returns the peers that are connected
    /// already, each with one of its bootstrap addresses.
    pub(super) fn dial(&mut self, swarm: &mut Swarm<Behaviour>, counter: &Counter) -> Vec<(PeerId, Multiaddr)> {
        let now = Instant::now();
        if self.next().is_none_or(|next| next > now) {
            return Vec::new();
        }
        self.next = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        let mut answered = Vec::new();
        for index in 0..self.all.len() {
            let bootstrap = &mut self.all[index];
            if bootstrap.peer.is_some() || bootstrap.dialling.is_some() {
                continue;
            }
            match bootstrap.name {
                Some(name) if swarm.is_connected(&name) => {
                    bootstrap.peer = Some(name);
                    answered.push((name, bootstrap.address.clone()));
                }
                Some(name) => self.dial_named(swarm, name, counter),
                None => {
                    let dial = DialOpts::unknown_peer_id().address(bootstrap.address.clone()).build();
                    let connection = dial.connection_id();
                    if swarm.dial(dial).is_ok() {
                        counter.count_dial();
                        bootstrap.dialling = Some(connection);
                    }
                }
            }
        }
        answered
    }

    fn dial_named(&mut self, swarm: &mut Swarm<Behaviour>, name: PeerId, counter: &Counter) {
        let of_it = |bootstrap: &&mut Bootstrap| bootstrap.name == Some(name);
        let addresses = self.all.iter_mut().filter(of_it).map(|bootstrap| bootstrap.address.clone()).collect();
        let dial = DialOpts::peer_id(name).condition(PeerCondition::DisconnectedAndNotDialing).addresses(addresses);
        let dial = dial.build();
        let connection = dial.connection_id();
        if swarm.dial(dial).is_ok() {
            counter.count_dial();
            self.all.iter_mut().filter(of_it).for_each(|bootstrap| bootstrap.dialling = Some(connection));
        }
    }

    /// Marks the addresses that a new connection answers; returns their number.
    pub(super) fn note_connection(&mut self, connection: ConnectionId, peer: PeerId) -> usize {
        let mut answered = 0;
        for bootstrap in &mut self.all {
            let is_answer = bootstrap.dialling == Some(connection) || bootstrap.name == Some(peer);
            if is_answer && bootstrap.peer.is_none() {
                bootstrap.dialling = None;
                bootstrap.peer = Some(peer);
                answered += 1;
            }
        }
        answered
    }

    pub(super) fn note_failure(&mut self, connection: ConnectionId) {
        for bootstrap in self.all.iter_mut().filter(|bootstrap| bootstrap.dialling == Some(connection)) {
            bootstrap.dialling = None;
        }
    }

    /// Marks the addresses of a peer as unanswered, after its last connection ended.
    pub(super) fn note_disconnection(&mut self, peer: PeerId) {
        let mut is_lost = false;
        for bootstrap in self.all.iter_mut().filter(|bootstrap| bootstrap.peer == Some(peer)) {
            bootstrap.peer = None;
            is_lost = true;
        }
        if is_lost {
            self.retry_soon();
        }
    }
}

/// The PeerId at the end of an address.
fn named_peer(address: &Multiaddr) -> Option<PeerId> {
    match address.iter().last() {
        Some(Protocol::P2p(peer)) => Some(peer),
        _ => None,
    }
}
