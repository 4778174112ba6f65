//! The libp2p protocols of a peer, and its limits on connections.

use libp2p::identity::Keypair;
use libp2p::kad::{self, store::MemoryStore};
use libp2p::swarm::NetworkBehaviour;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::{StreamProtocol, dcutr, identify, mdns, ping, relay};

use super::admission::Admission;
use super::last_resort::LastResort;
use super::{SignsOfLife, relaying};
use crate::known_peers::KnownPeers;

/// Identify protocol of every Mingle peer; peers of other libp2p networks are not put into the address table.
pub(super) const IDENTIFY_PROTOCOL: &str = "/mingle/1";
/// Kademlia protocol with an address table of its own: this swarm never mixes with public ones.
const KADEMLIA_PROTOCOL: StreamProtocol = StreamProtocol::new("/mingle/kad/1");

/// Identify exchanges addresses, Kademlia finds peers that no member knows, ping finds dead connections, streams carry
/// the messages. Relays and hole punching reach peers that cannot be dialled. mDNS finds peers on the same network, if
/// enabled.
#[derive(NetworkBehaviour)]
pub(super) struct Behaviour {
    pub(super) admission: Admission,
    pub(super) identify: identify::Behaviour,
    pub(super) kademlia: LastResort,
    pub(super) ping: ping::Behaviour,
    pub(super) streams: libp2p_stream::Behaviour,
    pub(super) relay: relay::Behaviour,
    pub(super) relayed: relay::client::Behaviour,
    pub(super) hole_punching: dcutr::Behaviour,
    pub(super) mdns: Toggle<mdns::tokio::Behaviour>,
}

impl Behaviour {
    /// Sets up the protocols; mDNS only if `with_mdns`.
    ///
    /// # Errors
    /// mDNS cannot listen on the local network.
    pub(super) fn new(
        keypair: &Keypair,
        relayed: relay::client::Behaviour,
        known: &KnownPeers,
        with_mdns: bool,
        signs: SignsOfLife,
    ) -> std::io::Result<Self> {
        let local = keypair.public().to_peer_id();
        let identify = identify::Config::new(IDENTIFY_PROTOCOL.to_owned(), keypair.public())
            .with_agent_version(concat!("mingle/", env!("CARGO_PKG_VERSION")).to_owned())
            // An address through a relay comes later.
            .with_push_listen_addr_updates(true);
        let mut kademlia = kad::Behaviour::with_config(local, MemoryStore::new(local), kademlia_config());
        // Without an address confirmed from outside, Kademlia would only ask and never answer.
        kademlia.set_mode(Some(kad::Mode::Server));
        let ping = ping::Config::new().with_interval(signs.ping_interval()).with_timeout(signs.ping_timeout());
        let mdns = with_mdns.then(|| mdns::tokio::Behaviour::new(mdns::Config::default(), local)).transpose()?;
        Ok(Self {
            admission: Admission::new(known.clone()),
            identify: identify::Behaviour::new(identify),
            kademlia: LastResort::new(kademlia, known.clone()),
            ping: ping::Behaviour::new(ping),
            streams: libp2p_stream::Behaviour::new(),
            relay: relay::Behaviour::new(local, relaying::config(known)),
            relayed,
            hole_punching: dcutr::Behaviour::new(local),
            mdns: mdns.into(),
        })
    }
}

/// Configures Kademlia for addresses only: other peers cannot store records here.
fn kademlia_config() -> kad::Config {
    let mut config = kad::Config::new(KADEMLIA_PROTOCOL);
    config.set_record_filtering(kad::StoreInserts::FilterBoth);
    // The table is filled from connected peers; no peer is dialled to fill it further.
    config.set_periodic_bootstrap_interval(None);
    config
}
