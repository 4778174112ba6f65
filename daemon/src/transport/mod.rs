//! The network below the streams: libp2p over QUIC and TCP, who is connected, and finding those who are not.
//!
//! One task owns the libp2p swarm. It keeps trying the bootstrap addresses until they answer, and looks for sought
//! peers in the Kademlia table until they are connected. Everything else in the daemon speaks to it through
//! [`Network`] and hears from it through [`NetworkEvent`]s.

mod batching;
mod behaviour;
mod dial_error;
mod direct;
mod discovery;
pub(crate) mod framed;
mod open_stream;
mod reach;
mod relaying;
mod relays;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, PeerId, Swarm, SwarmBuilder, noise, yamux};
use libp2p_metrics::{Metrics, Recorder, Registry};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::oneshot;

use crate::failure::{Failure, Kind, OrFail, Outcome};
use behaviour::{Behaviour, BehaviourEvent};
pub(crate) use dial_error::DialAttempt;
use discovery::Discovery;
pub(crate) use open_stream::open_stream;
pub(crate) use reach::Reach;
pub(crate) use relaying::Guests;

/// A QUIC connection that says nothing for so long is dead. A killed process is noticed within this time.
const QUIC_IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Keeps a QUIC connection alive through NATs, and well inside the idle timeout.
const QUIC_KEEP_ALIVE: Duration = Duration::from_millis(1500);
/// Connections that carry no stream are closed after this long.
const UNUSED_CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Time for the operating system to give us our listening addresses.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);
/// Without a further address for so long, all are known.
const LISTEN_SETTLES: Duration = Duration::from_millis(30);
/// Events that wait for the daemon; more are dropped.
const EVENT_QUEUE: usize = 256;
/// Orders that wait for the network task.
const COMMAND_QUEUE: usize = 16;

/// What the network tells the daemon.
#[derive(Debug)]
pub(crate) enum NetworkEvent {
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
    Addresses(PeerId, oneshot::Sender<Vec<Multiaddr>>),
    Attempts(PeerId, oneshot::Sender<Vec<DialAttempt>>),
}

/// How a peer can be found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NetworkOptions<'a> {
    /// Where it listens.
    pub(crate) listen: &'a [Multiaddr],
    /// Whether it tells its addresses to the local network, and listens to those of others.
    pub(crate) mdns: bool,
}

/// A handle on the network task; the task ends when the handle is dropped.
pub(crate) struct Network {
    /// Opens and accepts streams.
    pub(crate) streams: libp2p_stream::Control,
    /// Where this peer can be reached, each ending in its PeerId.
    pub(crate) addresses: Vec<Multiaddr>,
    /// For whom this peer relays.
    pub(crate) guests: Guests,
    commands: mpsc::Sender<Command>,
    task: tokio::task::JoinHandle<()>,
}

impl Network {
    /// Binds the listening addresses and starts the network task; what libp2p counts goes into `registry`.
    ///
    /// # Errors
    /// An address that cannot be listened on is named, with the reason of the operating system.
    pub(crate) async fn start(
        keypair: &Keypair,
        options: &NetworkOptions<'_>,
        registry: &mut Registry,
    ) -> Outcome<(Self, mpsc::Receiver<NetworkEvent>)> {
        let guests = Guests::default();
        let mut swarm = build_swarm(keypair, &guests, options.mdns)?;
        let addresses = listen_on_all(&mut swarm, options.listen).await?;
        // Whoever has a place with this peer as its relay tells others these addresses.
        let only_loopback = addresses.iter().all(is_loopback);
        for address in addresses.iter().filter(|address| only_loopback || !is_loopback(address)) {
            swarm.add_external_address(address.clone());
        }
        let streams = swarm.behaviour().streams.new_control();
        let (command_sender, command_receiver) = mpsc::channel(COMMAND_QUEUE);
        let (event_sender, event_receiver) = mpsc::channel(EVENT_QUEUE);
        let task = tokio::spawn(run(swarm, Metrics::new(registry), command_receiver, event_sender));
        let network = Self { streams, addresses, guests, commands: command_sender, task };
        Ok((network, event_receiver))
    }

    /// A handle for those who look for single peers.
    pub(crate) fn reach(&self) -> Reach {
        Reach::new(self.commands.clone())
    }

    /// Keeps dialling these addresses until each has answered once.
    pub(crate) async fn bootstrap(&self, addresses: Vec<Multiaddr>) {
        // The task outlives every sender but at shutdown, when nobody needs the answer.
        let _ = self.commands.send(Command::Bootstrap(addresses)).await;
    }

    /// Looks for these peers, now and whenever one of them is lost.
    pub(crate) async fn seek(&self, peers: BTreeSet<PeerId>) {
        let _ = self.commands.send(Command::Seek(peers)).await;
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn build_swarm(keypair: &Keypair, guests: &Guests, with_mdns: bool) -> Outcome<Swarm<Behaviour>> {
    let doing = "cannot set up the network";
    let swarm = SwarmBuilder::with_existing_identity(keypair.clone())
        .with_tokio()
        .with_other_transport(|keypair| Ok(direct::over_tcp(keypair)?))
        .or_fail(Kind::Unexpected, doing)?
        .with_other_transport(direct::over_quic)
        .or_fail(Kind::Unexpected, doing)?
        .with_dns()
        .or_fail(Kind::Unexpected, "cannot read this machine's DNS settings")?
        .with_relay_client(noise::Config::new, yamux::Config::default)
        .or_fail(Kind::Unexpected, doing)?
        .with_behaviour(|keypair, relayed| Ok(Behaviour::new(keypair, relayed, guests, with_mdns)?))
        .or_fail(Kind::Unexpected, doing)?
        .with_swarm_config(|config| config.with_idle_connection_timeout(UNUSED_CONNECTION_TIMEOUT))
        .build();
    Ok(swarm)
}

/// Listens on each address and waits until the operating system has said what each became.
async fn listen_on_all(swarm: &mut Swarm<Behaviour>, listen: &[Multiaddr]) -> Outcome<Vec<Multiaddr>> {
    let mut waiting = Vec::new();
    for address in listen {
        let listener = swarm.listen_on(address.clone()).map_err(|error| cannot_listen(address, &error))?;
        waiting.push(listener);
    }
    let local = *swarm.local_peer_id();
    let mut addresses = Vec::new();
    let bound = tokio::time::timeout(LISTEN_TIMEOUT, async {
        while !waiting.is_empty() {
            match swarm.select_next_some().await {
                SwarmEvent::NewListenAddr { listener_id, address } => {
                    waiting.retain(|listener| *listener != listener_id);
                    addresses.push(address.with_p2p(local).unwrap_or_else(|address| address));
                }
                SwarmEvent::ListenerClosed { addresses, reason: Err(error), .. } => {
                    let address = addresses.first().cloned().unwrap_or_else(Multiaddr::empty);
                    return Err(cannot_listen(&address, &error));
                }
                _ => {}
            }
        }
        Ok(())
    });
    match bound.await {
        Ok(result) => result?,
        Err(_) => return Err(Failure::new(Kind::Unreachable, "the operating system gave no listening address")),
    }
    collect_more(swarm, &mut addresses).await;
    // What other machines can use comes first.
    addresses.sort_by_key(is_loopback);
    Ok(addresses)
}

/// A listener on all interfaces has an address on each; they come one by one, at once.
async fn collect_more(swarm: &mut Swarm<Behaviour>, addresses: &mut Vec<Multiaddr>) {
    let local = *swarm.local_peer_id();
    while let Ok(event) = tokio::time::timeout(LISTEN_SETTLES, swarm.select_next_some()).await {
        if let SwarmEvent::NewListenAddr { address, .. } = event {
            addresses.push(address.with_p2p(local).unwrap_or_else(|address| address));
        }
    }
}

fn is_loopback(address: &Multiaddr) -> bool {
    address.iter().any(|part| match part {
        Protocol::Ip4(ip) => ip.is_loopback(),
        Protocol::Ip6(ip) => ip.is_loopback(),
        _ => false,
    })
}

fn cannot_listen(address: &Multiaddr, error: &dyn std::error::Error) -> Failure {
    Failure::new(Kind::Unreachable, format!("cannot listen on {address}: {}", dial_error::root_cause(error)))
        .hint("another process may use this port: choose one with --listen, port 0 takes any that is free")
}

/// The network task: serves libp2p until the daemon lets go of it.
async fn run(
    mut swarm: Swarm<Behaviour>,
    metrics: Metrics,
    mut commands: mpsc::Receiver<Command>,
    events: mpsc::Sender<NetworkEvent>,
) {
    let mut discovery = Discovery::new(*swarm.local_peer_id());
    loop {
        tokio::select! {
            command = commands.recv() => match command {
                Some(Command::Bootstrap(addresses)) => discovery.bootstrap(&mut swarm, addresses),
                Some(Command::Seek(peers)) => discovery.seek(&mut swarm, peers),
                Some(Command::Connect(peer, addresses, connected)) => {
                    discovery.connect(&mut swarm, peer, addresses, connected);
                }
                Some(Command::Addresses(peer, answer)) => drop(answer.send(discovery.addresses(&peer))),
                // Whoever asked may have gone.
                Some(Command::Attempts(peer, answer)) => drop(answer.send(discovery.attempts(&peer))),
                None => return,
            },
            () = discovery.wait() => discovery.retry(&mut swarm),
            event = swarm.select_next_some() => {
                record(&metrics, &event);
                // The daemon may be busy: an event that it has no room for is news for people, not state.
                if let Some(event) = discovery.on_swarm_event(&mut swarm, event)
                    && let Err(TrySendError::Closed(_)) = events.try_send(event)
                {
                    return;
                }
            }
        }
    }
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
