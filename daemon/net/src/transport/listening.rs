//! The addresses that a peer listens on.

use std::error::Error;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::time::Duration;

use futures::StreamExt;
use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, Swarm};

use super::NetworkOptions;
use super::behaviour::Behaviour;
use crate::dial_error;
use crate::error::NetworkError;

/// Time limit for the operating system to bind the listening addresses.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);
/// Once no further address has come for this long, all are known.
const LISTEN_SETTLES: Duration = Duration::from_millis(30);

/// Listens on each address, and waits until the operating system has reported the bound addresses.
pub(super) async fn listen_on_all(
    swarm: &mut Swarm<Behaviour>,
    options: &NetworkOptions<'_>,
) -> Result<Vec<Multiaddr>, NetworkError> {
    let mut waiting = Vec::new();
    for address in options.listen {
        if let Err(error) = is_free(address) {
            return Err(cannot_listen(address, &error));
        }
        let listener = listen_where_before(swarm, address, options.before)
            .map_or_else(|| swarm.listen_on(address.clone()).map_err(|error| cannot_listen(address, &error)), Ok)?;
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
        Err(_) => return Err(NetworkError::NoAddress),
    }
    collect_more(swarm, &mut addresses).await;
    // Addresses that other machines can use come first.
    addresses.sort_by_key(is_loopback);
    Ok(addresses)
}

/// Listens on the port of an earlier run, where any would do: neighbours that have lost this peer dial it there.
fn listen_where_before(swarm: &mut Swarm<Behaviour>, address: &Multiaddr, before: &[Multiaddr]) -> Option<ListenerId> {
    let same = with_port_of(address, before).filter(|same| is_free(same).is_ok())?;
    // Another process may have taken it since.
    swarm.listen_on(same).ok()
}

/// Succeeds unless the TCP port is taken. The transport lets several sockets of a user share a port, and the system
/// would distribute incoming connections among them.
fn is_free(address: &Multiaddr) -> io::Result<()> {
    let mut parts = address.iter();
    let ip = match parts.next() {
        Some(Protocol::Ip4(ip)) => IpAddr::V4(ip),
        // An unspecified IPv6 address would include IPv4 here, but not in the transport.
        Some(Protocol::Ip6(ip)) if !ip.is_unspecified() => IpAddr::V6(ip),
        _ => return Ok(()),
    };
    match parts.next() {
        Some(Protocol::Tcp(port)) => TcpListener::bind((ip, port)).map(drop),
        _ => Ok(()),
    }
}

/// The address with port 0 replaced by the port of an earlier address of the same protocol.
fn with_port_of(address: &Multiaddr, before: &[Multiaddr]) -> Option<Multiaddr> {
    let port = |wanted: &Protocol<'_>| {
        before.iter().flat_map(Multiaddr::iter).find_map(|part| match (wanted, part) {
            (Protocol::Tcp(0), Protocol::Tcp(port)) if port != 0 => Some(Protocol::Tcp(port)),
            (Protocol::Udp(0), Protocol::Udp(port)) if port != 0 => Some(Protocol::Udp(port)),
            _ => None,
        })
    };
    let mut any = false;
    let same = address.iter().map(|part| match port(&part) {
        Some(known) => {
            any = true;
            known
        }
        None => part,
    });
    let same: Multiaddr = same.collect();
    any.then_some(same)
}

/// Collects further addresses: a listener on all interfaces has one on each, reported one by one without delay.
async fn collect_more(swarm: &mut Swarm<Behaviour>, addresses: &mut Vec<Multiaddr>) {
    let local = *swarm.local_peer_id();
    while let Ok(event) = tokio::time::timeout(LISTEN_SETTLES, swarm.select_next_some()).await {
        if let SwarmEvent::NewListenAddr { address, .. } = event {
            addresses.push(address.with_p2p(local).unwrap_or_else(|address| address));
        }
    }
}

pub(super) fn is_loopback(address: &Multiaddr) -> bool {
    address.iter().any(|part| match part {
        Protocol::Ip4(ip) => ip.is_loopback(),
        Protocol::Ip6(ip) => ip.is_loopback(),
        _ => false,
    })
}

fn cannot_listen(address: &Multiaddr, error: &(dyn Error + 'static)) -> NetworkError {
    NetworkError::Listen {
        address: address.clone(),
        system: system_error(error),
        source: dial_error::root_cause(error).into(),
    }
}

/// The error of the operating system, if there is one. Some transports hide it, and keep its number only in their text.
fn system_error(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    if let Some(found) = innermost_system_error(error) {
        return Some(found.kind());
    }
    let words = dial_error::root_cause(error);
    let number = words.rsplit_once("(os error ")?.1.split_once(')')?.0.parse().ok()?;
    Some(io::Error::from_raw_os_error(number).kind())
}

fn innermost_system_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut next = Some(error);
    let mut found = None;
    while let Some(error) = next {
        // The innermost: the outer ones pass on its text only.
        found = error.downcast_ref::<io::Error>().filter(|error| error.raw_os_error().is_some()).or(found);
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = wrapped.map(|error| error as &(dyn Error + 'static)).or_else(|| error.source());
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::transport::Network;
    use libp2p::identity::Keypair;
    use libp2p_metrics::Registry;

    fn address(text: &str) -> Multiaddr {
        text.parse().unwrap()
    }

    #[test]
    fn any_port_becomes_the_port_that_was_used_before_over_the_same_protocol() {
        let before = [address("/ip4/10.0.0.1/udp/4000/quic-v1"), address("/ip4/127.0.0.1/tcp/4001")];
        let now = |text: &str| with_port_of(&address(text), &before);
        assert_eq!(now("/ip4/0.0.0.0/udp/0/quic-v1"), Some(address("/ip4/0.0.0.0/udp/4000/quic-v1")));
        assert_eq!(now("/ip4/0.0.0.0/tcp/0"), Some(address("/ip4/0.0.0.0/tcp/4001")));
        assert_eq!(now("/ip4/0.0.0.0/tcp/7"), None, "a port that somebody chose");
        assert_eq!(with_port_of(&address("/ip4/0.0.0.0/tcp/0"), &before[..1]), None);
    }

    async fn listen(listen: &str, before: &[Multiaddr]) -> Result<Network, NetworkError> {
        let (listen, keypair) = ([address(listen)], Keypair::generate_ed25519());
        let options = NetworkOptions { listen: &listen, before, ..NetworkOptions::default() };
        Network::start(&keypair, &options, &mut Registry::default()).await.map(|(network, _)| network)
    }

    fn port(network: &Network) -> u16 {
        let parts = network.addresses[0].iter();
        parts.filter_map(|part| if let Protocol::Tcp(port) = part { Some(port) } else { None }).next().unwrap()
    }

    #[tokio::test]
    async fn a_peer_that_starts_again_takes_the_port_it_had_and_another_one_where_it_is_taken() {
        let first = listen("/ip4/127.0.0.1/tcp/0", &[]).await.unwrap();
        let (addresses, had) = (first.addresses.clone(), port(&first));
        let beside = listen("/ip4/127.0.0.1/tcp/0", &addresses).await.unwrap();
        assert_ne!(port(&beside), had);
        drop(first);
        // Its task frees the port with a delay.
        for _ in 0..100 {
            if port(&listen("/ip4/127.0.0.1/tcp/0", &addresses).await.unwrap()) == had {
                return;
            }
        }
        panic!("never took port {had} again");
    }

    #[tokio::test]
    async fn an_address_that_cannot_be_listened_on_is_named_with_what_the_system_said() {
        let taken = listen("/ip4/127.0.0.1/tcp/0", &[]).await.unwrap();
        for (text, kind) in [
            (format!("/ip4/127.0.0.1/tcp/{}", port(&taken)), Some(io::ErrorKind::AddrInUse)),
            ("/ip4/192.0.2.7/tcp/0".to_owned(), Some(io::ErrorKind::AddrNotAvailable)),
            ("/ip4/192.0.2.7/udp/0/quic-v1".to_owned(), Some(io::ErrorKind::AddrNotAvailable)),
            ("/ip4/127.0.0.1/udp/0".to_owned(), None),
        ] {
            match listen(&text, &[]).await.err() {
                Some(NetworkError::Listen { address: named, system, .. }) => {
                    assert_eq!((named, system), (address(&text), kind));
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
