//! `mingle ping`: measures one link, or finds the peer at an address.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};
use libp2p_metrics::Registry;
use mingle_net::transport::{Network, NetworkEvent, NetworkOptions};
use mingle_peer::api::Known;
use mingle_peer::api::client::{self, Client};
use mingle_peer::{Error, ErrorKind, Home, Result};
use serde_json::json;

use super::probe::measure;
use crate::cli::{PingArgs, multiaddrs, peer_address};
use crate::out;

/// Time limit for a TCP connection that tests whether a system accepts any.
const KNOCKING: Duration = Duration::from_secs(1);

/// The answer of a peer at an address.
struct PingAnswer {
    address: Multiaddr,
    peer: PeerId,
    connected_after: Duration,
    round_trip: Duration,
}

/// Measures the link to a member, or dials the address.
pub(super) fn execute(arguments: &PingArgs, json: bool) -> Result {
    if let Ok(peer) = arguments.whom.parse::<PeerId>() {
        return ping_member(arguments, peer, json);
    }
    let address = peer_address(&arguments.whom).map_err(|reason| {
        Error::new(ErrorKind::BadInput, format!("{} is neither a PeerId nor an address: {reason}", arguments.whom))
            .hint("a PeerId looks like 12D3KooW...; a running peer prints its own and its addresses at its start")
    })?;
    let answer = client::block_on(dial(&multiaddrs(&[address]), arguments.timeout))?;
    let (connect_ms, rtt_ms) = (milliseconds(answer.connected_after), milliseconds(answer.round_trip));
    if json {
        out::line(json!({
            "schema": "mingle.ping/1",
            "address": answer.address,
            "peer": answer.peer.to_string(),
            "connect_ms": connect_ms,
            "rtt_ms": rtt_ms,
        }));
    } else {
        out::line(format!("{}  connected in {connect_ms:.1} ms, round trip {rtt_ms:.1} ms", answer.peer));
    }
    Ok(())
}

fn ping_member(arguments: &PingArgs, peer: PeerId, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    let link = client::block_on(async {
        let client = Client::new(&home);
        let known: Known = client.get("/v1/known").await.map_err(|failure| {
            let needs_a_peer = failure.is(ErrorKind::Unreachable);
            let hint = "a link to a PeerId is measured by the peer that runs here; an address can be tried without one: \
                        mingle ping /ip4/10.0.1.5/tcp/4717";
            if needs_a_peer { failure.hint(hint) } else { failure }
        })?;
        let local = known.peers.first().cloned().unwrap_or_default();
        if local == peer.to_string() {
            return Err(Error::new(ErrorKind::BadInput, "that is this peer itself"));
        }
        measure(client, &local, &peer.to_string()).await
    })?;
    if json {
        out::line(json!({
            "schema": "mingle.ping/1",
            "peer": link.to,
            "rtt_ms": link.rtt_ms,
            "mbit_s": link.mbit_s,
        }));
    } else {
        out::line(format!("{}  round trip {:.1} ms, {:.1} Mbit/s up", link.to, link.rtt_ms, link.mbit_s));
    }
    Ok(())
}

/// Connects with a new key, to the address that answers first: an answer needs no membership.
async fn dial(addresses: &[Multiaddr], patience: Duration) -> Result<PingAnswer> {
    let began = Instant::now();
    let mut uncounted = Registry::default();
    let (network, mut events) =
        Network::start(&Keypair::generate_ed25519(), &NetworkOptions::default(), &mut uncounted).await?;
    network.bootstrap(addresses.to_vec()).await;
    let mut connected = None;
    let mut failures = Vec::new();
    let answer = async {
        while let Some(event) = events.recv().await {
            match event {
                NetworkEvent::Bootstrapped { address, .. } => {
                    connected.get_or_insert_with(|| (began.elapsed(), address));
                }
                NetworkEvent::RoundTrip { peer, time } => {
                    if let Some((connected_after, address)) = connected.take() {
                        return Some(PingAnswer { address, peer, connected_after, round_trip: time });
                    }
                }
                NetworkEvent::DialFailed { attempts, .. } => {
                    failures.extend(attempts.into_iter().next());
                    if failures.len() >= addresses.len() {
                        return None;
                    }
                }
            }
        }
        None
    };
    if let Ok(Some(answer)) = tokio::time::timeout(patience, answer).await {
        return Ok(answer);
    }
    let is_connected = connected.is_some();
    let (address, why) = match (connected, failures.into_iter().next()) {
        (Some((_, address)), _) => (Some(address), "it was connected, and did not answer a ping".to_owned()),
        (None, Some(failure)) => (failure.address, failure.reason),
        (None, None) => (None, format!("nobody answered in {} s", patience.as_secs_f64())),
    };
    let address = address.or_else(|| addresses.first().cloned()).unwrap_or_else(Multiaddr::empty);
    let seen = match is_connected {
        true => AddressFinding::Peer,
        false if takes_connections(&address) => AddressFinding::Listener,
        false => AddressFinding::Nobody,
    };
    let hint = hint(&address, &why, seen);
    Err(Error::new(ErrorKind::Unreachable, format!("{address} cannot be reached: {why}")).hint(hint))
}

/// Finding at an address where no peer answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressFinding {
    /// A peer that does not answer a ping.
    Peer,
    /// Something that takes connections: no firewall is in the way.
    Listener,
    Nobody,
}

/// Returns `true` if the system at this TCP address accepts connections, even for a peer that is too busy to identify
/// itself. `false` for addresses with a host name, or not of TCP.
fn takes_connections(address: &Multiaddr) -> bool {
    let mut parts = address.iter();
    let ip = match parts.next() {
        Some(Protocol::Ip4(ip)) => IpAddr::from(ip),
        Some(Protocol::Ip6(ip)) => IpAddr::from(ip),
        _ => return false,
    };
    let Some(Protocol::Tcp(port)) = parts.next() else { return false };
    TcpStream::connect_timeout(&SocketAddr::from((ip, port)), KNOCKING).is_ok()
}

/// Advice for an address at which no peer answers, by the reason and the finding.
fn hint(address: &Multiaddr, why: &str, seen: AddressFinding) -> &'static str {
    let has = |is_it: fn(&Protocol<'_>) -> bool| address.iter().any(|part| is_it(&part));
    let is_tcp = has(|part| matches!(part, Protocol::Tcp(_)));
    let is_quic = has(|part| matches!(part, Protocol::QuicV1)) && has(|part| matches!(part, Protocol::Udp(_)));
    if seen == AddressFinding::Peer {
        return "a peer is there, but too busy or too far away to answer in time: give it longer with --timeout";
    }
    if !is_tcp && !is_quic {
        return "an address ends in /tcp/PORT or /udp/PORT/quic-v1; a running peer prints its own at its start";
    }
    if has(|part| matches!(part, Protocol::Ws(_) | Protocol::Wss(_) | Protocol::P2pCircuit)) {
        return "only plain /tcp/PORT and /udp/PORT/quic-v1 are tried here, without relays or web sockets";
    }
    if why.contains("another peer") || why.contains("this peer's own") {
        return "leave /p2p/... away to see who answers there";
    }
    if why.contains("refused") {
        return "that machine is there, but nothing listens on this port: is the peer up, and is this the port that it prints?";
    }
    if has(|part| matches!(part, Protocol::Dns(_) | Protocol::Dns4(_) | Protocol::Dns6(_) | Protocol::Dnsaddr(_))) {
        return "does that name exist, and does it lead to the machine on which the peer listens?";
    }
    let was_closed =
        ["reset", "closed", "end of file", "broken pipe"].iter().any(|word| why.to_lowercase().contains(word));
    if seen == AddressFinding::Listener || was_closed {
        return "something takes connections there, so that no firewall is in the way: it is another program, or a peer with too many \
                connections to answer, as in a flood; `mingle status` beside it says which, and --timeout gives it longer";
    }
    match is_quic {
        true => {
            "does a peer listen there, does the firewall let this UDP port through, and is the peer not flooded? the TCP port may work, and \
             tells these apart"
        }
        false => "does a peer listen there, and does the firewall let this TCP port through?",
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_hint_is_about_what_is_wrong() {
        for (address, why, seen, words) in [
            (
                "/ip4/10.0.1.5/tcp/4717",
                "Connection refused (os error 111)",
                AddressFinding::Nobody,
                "nothing listens on this port",
            ),
            ("/ip4/10.0.1.5/tcp/4717", "nobody answered in 10 s", AddressFinding::Nobody, "firewall let this TCP port"),
            (
                "/ip4/10.0.1.5/udp/4717/quic-v1",
                "Handshake with the remote timed out.",
                AddressFinding::Nobody,
                "this UDP port",
            ),
            ("/ip4/10.0.1.5", "Multiaddr is not supported", AddressFinding::Nobody, "/udp/PORT/quic-v1"),
            ("/ip4/10.0.1.5/udp/4717", "Multiaddr is not supported", AddressFinding::Nobody, "/udp/PORT/quic-v1"),
            ("/ip4/10.0.1.5/tcp/4717/ws", "Multiaddr is not supported", AddressFinding::Nobody, "web sockets"),
            ("/dns4/ana.example/tcp/4717", "no record found", AddressFinding::Nobody, "does that name exist"),
            (
                "/ip4/10.0.1.5/tcp/4717",
                "answered by another peer, 12D3KooW...",
                AddressFinding::Nobody,
                "leave /p2p/... away",
            ),
            (
                "/ip4/10.0.1.5/tcp/4717",
                "it was connected, and did not answer a ping",
                AddressFinding::Peer,
                "--timeout",
            ),
            (
                "/ip4/10.0.1.5/tcp/4717",
                "nobody answered in 10 s",
                AddressFinding::Listener,
                "no firewall is in the way",
            ),
            (
                "/ip4/10.0.1.5/tcp/4717",
                "Connection reset by peer (os error 104)",
                AddressFinding::Nobody,
                "no firewall is in the way",
            ),
        ] {
            let hint = hint(&address.parse().unwrap(), why, seen);
            assert!(hint.contains(words), "{address}, {why}: {hint}");
        }
    }

    #[test]
    fn a_listener_that_says_nothing_is_told_from_nobody() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address: Multiaddr = format!("/ip4/127.0.0.1/tcp/{}", silent.local_addr().unwrap().port()).parse().unwrap();
        assert!(takes_connections(&address));
        drop(silent);
        assert!(!takes_connections(&address));
        assert!(!takes_connections(&"/ip4/127.0.0.1/udp/1/quic-v1".parse().unwrap()));
    }
}
