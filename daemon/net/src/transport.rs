//! The network below the streams: libp2p over QUIC and TCP, with discovery of peers that are not connected.
//!
//! One task owns the libp2p swarm. It keeps dialling the bootstrap addresses until they answer, and dials sought peers
//! at the addresses that members report until they are connected. Kademlia is queried for peers that no member knows.
//! The rest of the daemon sends commands through [`Network`] and receives [`NetworkEvent`]s.

mod address_book;
mod admission;
mod batching;
mod behaviour;
mod bootstraps;
mod counts;
mod direct;
mod discovery;
mod handshakes;
mod last_resort;
mod listening;
mod open_stream;
mod outlook;
mod reach;
mod relaying;
mod relays;
mod searches;
mod signs_of_life;

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use futures::StreamExt;
use libp2p::identity::Keypair;
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, PeerId, Swarm, SwarmBuilder, noise, yamux};
use libp2p_metrics::{Metrics, Recorder, Registry};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::{oneshot, watch};

pub use crate::dial_error::DialAttempt;
use crate::error::NetworkError;
use crate::known_peers::KnownPeers;
use behaviour::{Behaviour, BehaviourEvent};
use counts::Counter;
pub use counts::NetworkCounts;
use discovery::Discovery;
use listening::is_loopback;
pub use open_stream::{accept, open_stream};
pub use outlook::Outlook;
pub use reach::Reach;
pub use signs_of_life::SignsOfLife;

/// Connections that carry no stream are closed after this time.
const UNUSED_CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Events that wait for the daemon; more are dropped.
const EVENT_QUEUE: usize = 256;
/// Time limit for closing the connections, whatever the other ends do.
const LONGEST_FAREWELL: Duration = Duration::from_millis(300);
/// Time that `Network::close` waits for the network task.
const LONGEST_CLOSE: Duration = Duration::from_secs(3);
/// Time for the last packets, which announce the close, to leave; nothing is sent afterwards.
const LAST_PACKETS: Duration = Duration::from_millis(20);
/// Commands that wait for the network task.
const COMMAND_QUEUE: usize = 16;

/// A notification from the network to the daemon.
#[derive(Debug)]
pub enum NetworkEvent {
    /// A bootstrap address answered.
    Bootstrapped {
        /// The peer that answered.
        peer: PeerId,
        /// Its address as seen from here.
        address: Multiaddr,
    },
    /// A dial failed: every address that was tried, and why it did not work.
    DialFailed {
        /// The peer, where it was known.
        peer: Option<PeerId>,
        /// Each address with its error.
        attempts: Vec<DialAttempt>,
    },
    /// A ping was answered.
    RoundTrip {
        /// The peer that answered.
        peer: PeerId,
        /// The round-trip time.
        time: Duration,
    },
}

/// A command of the daemon to the network task.
#[derive(Debug)]
enum NetworkCommand {
    Bootstrap(Vec<Multiaddr>),
    Seek(BTreeSet<PeerId>),
    Connect(PeerId, Vec<Multiaddr>, oneshot::Sender<()>),
    Learn(Vec<(PeerId, Vec<Multiaddr>)>),
    Introduce {
        peer: PeerId,
        addresses: Vec<Multiaddr>,
        wanted: Vec<PeerId>,
        answer: oneshot::Sender<Vec<(PeerId, Vec<Multiaddr>)>>,
    },
    Whereabouts(Vec<PeerId>, oneshot::Sender<Vec<(PeerId, Vec<Multiaddr>)>>),
    Remember(Vec<(PeerId, Vec<Multiaddr>)>),
    Neighbours(oneshot::Sender<Vec<(PeerId, Vec<Multiaddr>)>>),
    Addresses(PeerId, oneshot::Sender<Vec<Multiaddr>>),
    Attempts(PeerId, oneshot::Sender<Vec<DialAttempt>>),
    Close(oneshot::Sender<()>),
}

/// Settings that determine how a peer can be found.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkOptions<'a> {
    /// Addresses to listen on.
    pub listen: &'a [Multiaddr],
    /// Addresses of an earlier run: where any port will do, the peer takes the one that others remember, if it is free.
    pub before: &'a [Multiaddr],
    /// `true` to announce the addresses on the local network, and to use those that others announce.
    pub mdns: bool,
    /// The pace at which idle connections show that they live.
    pub signs_of_life: SignsOfLife,
}

/// A handle on the network task; the task ends when the handle is dropped.
pub struct Network {
    /// Opens and accepts streams.
    pub streams: libp2p_stream::Control,
    /// Addresses at which this peer can be reached, each ending in its PeerId.
    pub addresses: Vec<Multiaddr>,
    /// The peers that this peer serves before others, and relays for.
    pub known: KnownPeers,
    /// The neighbours that are missing.
    pub outlook: watch::Receiver<Outlook>,
    counter: Counter,
    commands: mpsc::Sender<NetworkCommand>,
    task: tokio::task::JoinHandle<()>,
}

impl Network {
    /// Binds the listening addresses and starts the network task; libp2p's metrics go into `registry`.
    ///
    /// # Errors
    /// Names an address that cannot be listened on, with the reason of the operating system.
    pub async fn start(
        keypair: &Keypair,
        options: &NetworkOptions<'_>,
        registry: &mut Registry,
    ) -> Result<(Self, mpsc::Receiver<NetworkEvent>), NetworkError> {
        let known = KnownPeers::default();
        let mut swarm = build_swarm(keypair, &known, options)?;
        let addresses = listening::listen_on_all(&mut swarm, options).await?;
        // A peer with a reservation at this relay advertises these addresses to others.
        let only_loopback = addresses.iter().all(is_loopback);
        for address in addresses.iter().filter(|address| only_loopback || !is_loopback(address)) {
            swarm.add_external_address(address.clone());
        }
        let streams = swarm.behaviour().streams.new_control();
        let (command_sender, command_receiver) = mpsc::channel(COMMAND_QUEUE);
        let (event_sender, event_receiver) = mpsc::channel(EVENT_QUEUE);
        let (show, outlook) = watch::channel(Outlook::default());
        let counter = Counter::default();
        let discovery = Discovery::new(*swarm.local_peer_id(), known.clone(), counter.clone(), show);
        let task = tokio::spawn(run(swarm, discovery, Metrics::new(registry), command_receiver, event_sender));
        let network = Self { streams, addresses, known, outlook, counter, commands: command_sender, task };
        Ok((network, event_receiver))
    }

    /// A handle for finding single peers.
    pub fn reach(&self) -> Reach {
        Reach::new(self.commands.clone())
    }

    /// Counts of the work done so far to find peers.
    pub fn counts(&self) -> NetworkCounts {
        self.counter.read()
    }

    /// Keeps dialling these addresses until each has answered once.
    pub async fn bootstrap(&self, addresses: Vec<Multiaddr>) {
        // The task outlives every sender except at shutdown, when no answer is needed.
        let _ = self.commands.send(NetworkCommand::Bootstrap(addresses)).await;
    }

    /// Stores earlier addresses of peers, to be tried as well when these are sought.
    pub async fn remember(&self, known: Vec<(PeerId, Vec<Multiaddr>)>) {
        let _ = self.commands.send(NetworkCommand::Remember(known)).await;
    }

    /// Keeps searching for these peers, now and whenever one of them is lost.
    pub async fn seek(&self, peers: BTreeSet<PeerId>) {
        let _ = self.commands.send(NetworkCommand::Seek(peers)).await;
    }

    /// Closes all connections, so that the other ends are notified at once, which a QUIC connection does not do by
    /// itself. The network is unusable afterwards. If the task does not answer within three seconds, it is left as it
    /// is.
    pub async fn close(&self) {
        let closing = async {
            let (closed, when_closed) = oneshot::channel();
            if self.commands.send(NetworkCommand::Close(closed)).await.is_ok() {
                // If it does not answer, the task has ended.
                let _ = when_closed.await;
            }
        };
        if tokio::time::timeout(LONGEST_CLOSE, closing).await.is_err() {
            tracing::warn!("the network does not close: the connections end with the process");
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn build_swarm(
    keypair: &Keypair,
    known: &KnownPeers,
    options: &NetworkOptions<'_>,
) -> Result<Swarm<Behaviour>, NetworkError> {
    let signs = options.signs_of_life;
    let with_mdns = options.mdns;
    let swarm = SwarmBuilder::with_existing_identity(keypair.clone())
        .with_tokio()
        .with_other_transport(|keypair| Ok(direct::over_tcp(keypair)?))
        .map_err(setup)?
        .with_other_transport(|keypair| direct::over_quic(keypair, signs))
        .map_err(setup)?
        .with_dns()
        .map_err(NetworkError::Dns)?
        .with_relay_client(noise::Config::new, yamux::Config::default)
        .map_err(setup)?
        .with_behaviour(|keypair, relayed| Ok(Behaviour::new(keypair, relayed, known, with_mdns, signs)?))
        .map_err(setup)?
        .with_swarm_config(|config| config.with_idle_connection_timeout(UNUSED_CONNECTION_TIMEOUT))
        .build();
    Ok(swarm)
}

fn setup(error: impl Error + Send + Sync + 'static) -> NetworkError {
    NetworkError::Setup(Box::new(error))
}

/// The network task: serves libp2p until the daemon drops its handle.
async fn run(
    mut swarm: Swarm<Behaviour>,
    mut discovery: Discovery,
    metrics: Metrics,
    mut commands: mpsc::Receiver<NetworkCommand>,
    events: mpsc::Sender<NetworkEvent>,
) {
    loop {
        tokio::select! {
            command = commands.recv() => match command {
                Some(command) => {
                    if let Some(closed) = carry_out(command, &mut discovery, &mut swarm) {
                        close_all(&mut swarm).await;
                        let _ = closed.send(());
                        return;
                    }
                }
                None => return,
            },
            () = discovery.wait() => discovery.retry(&mut swarm),
            event = swarm.select_next_some() => {
                record(&metrics, &event);
                discovery.on_swarm_event(&mut swarm, event);
            }
        }
        for event in discovery.take_news() {
            // An event that finds no room is dropped: events inform people, they carry no state.
            if let Err(TrySendError::Closed(_)) = events.try_send(event) {
                return;
            }
        }
    }
}

/// Closes every connection, as far as that is possible in a moment.
async fn close_all(swarm: &mut Swarm<Behaviour>) {
    let connected: Vec<PeerId> = swarm.connected_peers().copied().collect();
    for peer in connected {
        // The peer may be gone already.
        let _ = swarm.disconnect_peer_id(peer);
    }
    // A peer that is still connected by then notices the end by itself.
    serve_while(swarm, LONGEST_FAREWELL, |swarm| swarm.network_info().num_peers() > 0).await;
    serve_while(swarm, LAST_PACKETS, |_| true).await;
}

/// Serves libp2p for at most `longest`. The timer is polled before each event: a swarm that always has another event,
/// such as a listener that fails again and again, would never let a timeout around it run out.
async fn serve_while(swarm: &mut Swarm<Behaviour>, longest: Duration, goes_on: impl Fn(&Swarm<Behaviour>) -> bool) {
    let ends = tokio::time::sleep(longest);
    tokio::pin!(ends);
    while goes_on(swarm) {
        tokio::select! {
            biased;
            () = &mut ends => return,
            _ = swarm.select_next_some() => {}
        }
    }
}

/// Executes a command. The receiver of an answer may be gone. Returns the sender to notify of the end, if that is the
/// command.
fn carry_out(
    command: NetworkCommand,
    discovery: &mut Discovery,
    swarm: &mut Swarm<Behaviour>,
) -> Option<oneshot::Sender<()>> {
    match command {
        NetworkCommand::Bootstrap(addresses) => discovery.bootstrap(swarm, addresses),
        NetworkCommand::Seek(peers) => discovery.seek(swarm, peers),
        NetworkCommand::Connect(peer, addresses, connected) => discovery.connect(swarm, peer, &addresses, connected),
        NetworkCommand::Learn(found) => discovery.learn(swarm, &found),
        NetworkCommand::Introduce { peer, addresses, wanted, answer } => {
            drop(answer.send(discovery.introduce(swarm, peer, &addresses, &wanted)));
        }
        NetworkCommand::Remember(known) => discovery.remember(&known),
        NetworkCommand::Whereabouts(wanted, answer) => drop(answer.send(discovery.whereabouts(wanted.iter()))),
        NetworkCommand::Neighbours(answer) => drop(answer.send(discovery.neighbours())),
        NetworkCommand::Addresses(peer, answer) => drop(answer.send(discovery.addresses(&peer))),
        NetworkCommand::Attempts(peer, answer) => drop(answer.send(discovery.attempts(&peer))),
        NetworkCommand::Close(closed) => return Some(closed),
    }
    None
}

/// Counts an event in libp2p's own metrics.
fn record(metrics: &Metrics, event: &SwarmEvent<BehaviourEvent>) {
    metrics.record(event);
    match event {
        SwarmEvent::Behaviour(BehaviourEvent::Identify(event)) => metrics.record(event),
        SwarmEvent::Behaviour(BehaviourEvent::Kademlia(event)) => metrics.record(event),
        SwarmEvent::Behaviour(BehaviourEvent::Ping(event)) => metrics.record(event),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Instant;

    use super::*;

    /// Time that a busy machine may take beyond a bound.
    const GRACE: Duration = Duration::from_secs(2);

    /// A network whose task never reads a command, with so many in its queue.
    fn hanging(queued: usize) -> (Network, mpsc::Receiver<NetworkCommand>) {
        let (commands, never_read) = mpsc::channel(COMMAND_QUEUE);
        for _ in 0..queued {
            commands.try_send(NetworkCommand::Bootstrap(Vec::new())).unwrap();
        }
        let network = Network {
            streams: libp2p_stream::Behaviour::new().new_control(),
            addresses: Vec::new(),
            known: KnownPeers::default(),
            outlook: watch::channel(Outlook::default()).1,
            counter: Counter::default(),
            commands,
            task: tokio::spawn(std::future::pending()),
        };
        (network, never_read)
    }

    #[tokio::test]
    async fn a_network_whose_task_never_answers_is_closed_within_its_bound() {
        let (idle, full) = (hanging(0), hanging(COMMAND_QUEUE));
        let began = Instant::now();
        let closing = async { tokio::join!(idle.0.close(), full.0.close()) };
        let closed = tokio::time::timeout(LONGEST_CLOSE + GRACE, closing).await;
        assert!(closed.is_ok(), "the network still waits for its task after {:?}", began.elapsed());
        assert!(began.elapsed() >= LONGEST_CLOSE, "the task is given its time");
    }

    #[tokio::test]
    async fn a_network_whose_task_has_ended_is_closed_at_once() {
        let (network, commands) = hanging(0);
        drop(commands);
        let began = Instant::now();
        network.close().await;
        assert!(began.elapsed() < LONGEST_CLOSE, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_network_with_a_connection_is_closed_long_before_its_bound() {
        let listen = ["/ip4/127.0.0.1/tcp/0".parse().unwrap()];
        let options = NetworkOptions { listen: &listen, ..NetworkOptions::default() };
        let start = async || {
            let mut registry = Registry::default();
            Network::start(&Keypair::generate_ed25519(), &options, &mut registry).await.unwrap()
        };
        let ((first, _first_events), (second, _second_events)) = (start().await, start().await);
        let other = second.addresses[0].clone();
        let Some(libp2p::multiaddr::Protocol::P2p(peer)) = other.iter().last() else { panic!("{other}") };
        assert!(first.reach().connect(peer, vec![other]).await);
        let began = Instant::now();
        tokio::join!(first.close(), second.close());
        assert!(began.elapsed() < LONGEST_CLOSE, "{:?}", began.elapsed());
    }
}
