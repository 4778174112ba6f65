//! The network below the streams: libp2p over QUIC and TCP, who is connected, and finding those who are not.
//!
//! One task owns the libp2p swarm. It keeps trying the bootstrap addresses until they answer, and dials sought peers where
//! members say that they are until they are connected; Kademlia is asked where no member knows. Everything else in the daemon speaks to it through
//! [`Network`] and hears from it through [`NetworkEvent`]s.

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

/// A QUIC connection that says nothing for so long is dead. A killed process is noticed within this time.
const QUIC_IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Keeps a QUIC connection alive through NATs, and well inside the idle timeout.
const QUIC_KEEP_ALIVE: Duration = Duration::from_millis(1500);
/// Connections that carry no stream are closed after this long.
const UNUSED_CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Events that wait for the daemon; more are dropped.
const EVENT_QUEUE: usize = 256;
/// Closing the connections takes no longer, whoever is at their other ends.
const LONGEST_FAREWELL: Duration = Duration::from_millis(300);
/// A network that has not closed by then is not waited for.
const LONGEST_CLOSE: Duration = Duration::from_secs(3);
/// So long the packets have that say so, after which nobody sends them any more.
const LAST_PACKETS: Duration = Duration::from_millis(20);
/// Orders that wait for the network task.
const COMMAND_QUEUE: usize = 16;

/// What the network tells the daemon.
#[derive(Debug)]
pub enum NetworkEvent {
    /// A bootstrap address answered, and who it is.
    Bootstrapped {
        /// The peer.
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
    /// A ping came back.
    RoundTrip {
        /// From whom.
        peer: PeerId,
        /// How long it was under way.
        time: Duration,
    },
}

/// What the daemon asks of the network.
#[derive(Debug)]
enum Command {
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

/// How a peer can be found.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkOptions<'a> {
    /// Where it listens.
    pub listen: &'a [Multiaddr],
    /// Where it listened before: where any port will do, it takes the one that others remember, if that is free.
    pub before: &'a [Multiaddr],
    /// Whether it tells its addresses to the local network, and listens to those of others.
    pub mdns: bool,
}

/// A handle on the network task; the task ends when the handle is dropped.
pub struct Network {
    /// Opens and accepts streams.
    pub streams: libp2p_stream::Control,
    /// Where this peer can be reached, each ending in its PeerId.
    pub addresses: Vec<Multiaddr>,
    /// Whom this peer serves before others, and relays for.
    pub known: KnownPeers,
    /// Which neighbours are missing.
    pub outlook: watch::Receiver<Outlook>,
    counter: Counter,
    commands: mpsc::Sender<Command>,
    task: tokio::task::JoinHandle<()>,
}

impl Network {
    /// Binds the listening addresses and starts the network task; what libp2p counts goes into `registry`.
    ///
    /// # Errors
    /// An address that cannot be listened on is named, with the reason of the operating system.
    pub async fn start(
        keypair: &Keypair,
        options: &NetworkOptions<'_>,
        registry: &mut Registry,
    ) -> Result<(Self, mpsc::Receiver<NetworkEvent>), NetworkError> {
        let known = KnownPeers::default();
        let mut swarm = build_swarm(keypair, &known, options.mdns)?;
        let addresses = listening::listen_on_all(&mut swarm, options).await?;
        // Whoever has a place with this peer as its relay tells others these addresses.
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

    /// A handle for those who look for single peers.
    pub fn reach(&self) -> Reach {
        Reach::new(self.commands.clone())
    }

    /// How much work it was so far to find the others.
    pub fn counts(&self) -> NetworkCounts {
        self.counter.read()
    }

    /// Keeps dialling these addresses until each has answered once.
    pub async fn bootstrap(&self, addresses: Vec<Multiaddr>) {
        // The task outlives every sender but at shutdown, when nobody needs the answer.
        let _ = self.commands.send(Command::Bootstrap(addresses)).await;
    }

    /// These peers were there once; they are looked for there too, when they are sought.
    pub async fn remember(&self, known: Vec<(PeerId, Vec<Multiaddr>)>) {
        let _ = self.commands.send(Command::Remember(known)).await;
    }

    /// Looks for these peers, now and whenever one of them is lost.
    pub async fn seek(&self, peers: BTreeSet<PeerId>) {
        let _ = self.commands.send(Command::Seek(peers)).await;
    }

    /// Closes all connections, so that the others know at once: over QUIC nobody else would tell them. Nothing works afterwards. Where the
    /// network does not answer within three seconds, it is left as it is.
    pub async fn close(&self) {
        let closing = async {
            let (closed, when_closed) = oneshot::channel();
            if self.commands.send(Command::Close(closed)).await.is_ok() {
                // The task has ended where it does not answer.
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

fn build_swarm(keypair: &Keypair, known: &KnownPeers, with_mdns: bool) -> Result<Swarm<Behaviour>, NetworkError> {
    let swarm = SwarmBuilder::with_existing_identity(keypair.clone())
        .with_tokio()
        .with_other_transport(|keypair| Ok(direct::over_tcp(keypair)?))
        .map_err(setup)?
        .with_other_transport(direct::over_quic)
        .map_err(setup)?
        .with_dns()
        .map_err(NetworkError::Dns)?
        .with_relay_client(noise::Config::new, yamux::Config::default)
        .map_err(setup)?
        .with_behaviour(|keypair, relayed| Ok(Behaviour::new(keypair, relayed, known, with_mdns)?))
        .map_err(setup)?
        .with_swarm_config(|config| config.with_idle_connection_timeout(UNUSED_CONNECTION_TIMEOUT))
        .build();
    Ok(swarm)
}

fn setup(error: impl Error + Send + Sync + 'static) -> NetworkError {
    NetworkError::Setup(Box::new(error))
}

/// The network task: serves libp2p until the daemon lets go of it.
async fn run(
    mut swarm: Swarm<Behaviour>,
    mut discovery: Discovery,
    metrics: Metrics,
    mut commands: mpsc::Receiver<Command>,
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
            // The daemon may be busy: an event that it has no room for is news for people, not state.
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
        // It may have gone.
        let _ = swarm.disconnect_peer_id(peer);
    }
    // Whoever has not gone by then finds out by itself.
    serve_while(swarm, LONGEST_FAREWELL, |swarm| swarm.network_info().num_peers() > 0).await;
    serve_while(swarm, LAST_PACKETS, |_| true).await;
}

/// Serves libp2p for so long at most. The clock is looked at before each event: a swarm that always has another one, such as a listener
/// that fails again and again, would never let a timeout around it run out.
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

/// Does what the daemon asks. Whoever wants an answer may have gone. Returns who waits for the end, once that is asked for.
fn carry_out(command: Command, discovery: &mut Discovery, swarm: &mut Swarm<Behaviour>) -> Option<oneshot::Sender<()>> {
    match command {
        Command::Bootstrap(addresses) => discovery.bootstrap(swarm, addresses),
        Command::Seek(peers) => discovery.seek(swarm, peers),
        Command::Connect(peer, addresses, connected) => discovery.connect(swarm, peer, &addresses, connected),
        Command::Learn(found) => discovery.learn(swarm, &found),
        Command::Introduce { peer, addresses, wanted, answer } => {
            drop(answer.send(discovery.introduce(swarm, peer, &addresses, &wanted)));
        }
        Command::Remember(known) => discovery.remember(&known),
        Command::Whereabouts(wanted, answer) => drop(answer.send(discovery.whereabouts(wanted.iter()))),
        Command::Neighbours(answer) => drop(answer.send(discovery.neighbours())),
        Command::Addresses(peer, answer) => drop(answer.send(discovery.addresses(&peer))),
        Command::Attempts(peer, answer) => drop(answer.send(discovery.attempts(&peer))),
        Command::Close(closed) => return Some(closed),
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
