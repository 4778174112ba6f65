//! TCP and QUIC, with one additional rule: an address counts as reached only when the dialled peer answers there.
//!
//! A peer has many addresses, and all are dialled at once. Some belong to another machine as seen from here: every
//! machine has 127.0.0.1, and many home networks have the same 192.168.1.7. libp2p takes the first connection that is
//! up, and gives up the whole dial if another peer answered. A nearby peer would thus make distant ones unreachable.
//! Here a wrong peer fails that one address only.

use std::future::{Ready, ready};

use futures::io::BufReader;
use libp2p::core::ConnectedPoint;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::{Boxed, Transport};
use libp2p::core::upgrade::Version;
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::{PeerId, noise, quic, tcp};

use super::SignsOfLife;
use super::batching::Batched;
use crate::dial_error::AnotherPeer;

/// Bytes read from a TCP socket at a time.
const READ_BYTES: usize = 64 * 1024;

/// A connection, with the peer at its other end.
type Connection = (PeerId, StreamMuxerBox);

/// The TCP transport, with Noise and batching Yamux.
///
/// # Errors
/// The key cannot be used for encryption.
pub(super) fn over_tcp(keypair: &Keypair) -> Result<Boxed<Connection>, noise::Error> {
    let local = keypair.public().to_peer_id();
    let transport = tcp::tokio::Transport::new(tcp::Config::default().nodelay(true))
        // Noise reads 8 KiB at a time.
        .map(|stream, _| BufReader::with_capacity(READ_BYTES, stream))
        .upgrade(Version::V1Lazy)
        .authenticate(noise::Config::new(keypair)?)
        .multiplex(Batched::default())
        .and_then(move |(peer, muxer), end| wanted((peer, StreamMuxerBox::new(muxer)), &end, local));
    Ok(transport.boxed())
}

pub(super) fn over_quic(keypair: &Keypair, signs: SignsOfLife) -> Boxed<Connection> {
    let local = keypair.public().to_peer_id();
    let mut config = quic::Config::new(keypair);
    config.max_idle_timeout = u32::try_from(signs.idle_timeout().as_millis()).unwrap_or(u32::MAX);
    config.keep_alive_interval = signs.keep_alive();
    quic::tokio::Transport::new(config)
        .and_then(move |(peer, muxer), end| wanted((peer, StreamMuxerBox::new(muxer)), &end, local))
        .boxed()
}

/// Passes the connection on, unless the dialled address ends in the PeerId of another peer.
fn wanted(connection: Connection, end: &ConnectedPoint, local: PeerId) -> Ready<Result<Connection, AnotherPeer>> {
    let obtained = connection.0;
    let expected = match end {
        ConnectedPoint::Dialer { address, .. } => address.iter().last(),
        ConnectedPoint::Listener { .. } => None,
    };
    ready(match expected {
        Some(Protocol::P2p(expected)) if expected != obtained && obtained == local => Err(AnotherPeer::Ourselves),
        Some(Protocol::P2p(expected)) if expected != obtained => Err(AnotherPeer::Other(obtained)),
        _ => Ok(connection),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use libp2p::Multiaddr;
    use libp2p_metrics::Registry;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc;

    use super::*;
    use crate::transport::{Network, NetworkEvent, NetworkOptions};

    /// A peer whose network ends when its events are dropped.
    struct Peer {
        id: PeerId,
        network: Network,
        events: mpsc::Receiver<NetworkEvent>,
    }

    async fn start(listen: &[Multiaddr]) -> Peer {
        let keypair = Keypair::generate_ed25519();
        let options = NetworkOptions { listen, ..NetworkOptions::default() };
        let (network, events) = Network::start(&keypair, &options, &mut Registry::default()).await.unwrap();
        Peer { id: keypair.public().to_peer_id(), network, events }
    }

    fn without_name(address: &Multiaddr) -> Multiaddr {
        address.iter().filter(|part| !matches!(part, Protocol::P2p(_))).collect()
    }

    /// A path to this address with a delay.
    async fn long_way_to(address: &Multiaddr) -> Multiaddr {
        let port = address.iter().find_map(|part| if let Protocol::Tcp(port) = part { Some(port) } else { None });
        let port = port.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = format!("/ip4/127.0.0.1/tcp/{}", listener.local_addr().unwrap().port()).parse().unwrap();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    let mut far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        way
    }

    #[tokio::test]
    async fn a_peer_is_reached_although_another_one_answers_sooner_at_one_of_its_addresses() {
        let loopback = ["/ip4/127.0.0.1/tcp/0".parse().unwrap(), "/ip4/127.0.0.1/udp/0/quic-v1".parse().unwrap()];
        let (wanted, other) = (start(&loopback[..1]).await, start(&loopback).await);
        let mut seeker = start(&[]).await;
        let sooner: Vec<Multiaddr> = other.network.addresses.iter().map(without_name).collect();
        let later = long_way_to(&wanted.network.addresses[0]).await;
        let addresses = sooner.iter().cloned().chain([later]).collect();
        assert!(seeker.network.reach().connect(wanted.id, addresses).await);

        // If only others answer, the error names them.
        let (absent, looking) = (Keypair::generate_ed25519().public().to_peer_id(), seeker.network.reach());
        let search = tokio::spawn(async move { looking.connect(absent, sooner).await });
        let mut tried = Vec::new();
        while tried.len() < 2 {
            // QUIC is tried before TCP.
            if let NetworkEvent::DialFailed { peer, attempts } = seeker.events.recv().await.unwrap()
                && peer == Some(absent)
            {
                tried.extend(attempts);
            }
        }
        let name = format!("answered by another peer, {}", other.id);
        assert!(tried.iter().all(|attempt| attempt.reason.contains(&name)), "{tried:?}");
        search.abort();
    }
}
