//! `mingle ping`: what one link can do, or who answers at an address.

use std::time::{Duration, Instant};

use libp2p::identity::Keypair;
use libp2p::{Multiaddr, PeerId};
use libp2p_metrics::Registry;
use serde_json::json;

use super::probe::measure;
use crate::api::Known;
use crate::api::client::{self, Client};
use crate::cli::PingArgs;
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::home::Home;
use crate::out;
use crate::transport::{Network, NetworkEvent, NetworkOptions};

/// Who answered at an address.
struct Answer {
    peer: PeerId,
    connected_after: Duration,
    round_trip: Duration,
}

/// Measures the link to a member, or dials the address.
pub(super) fn execute(arguments: &PingArgs, json: bool) -> Outcome {
    if let Ok(peer) = arguments.whom.parse::<PeerId>() {
        return ping_member(arguments, peer, json);
    }
    let address: Multiaddr = arguments.whom.parse().map_err(|_| {
        Failure::new(Kind::BadInput, format!("{} is neither a PeerId nor an address", arguments.whom))
            .hint("an address looks like /ip4/10.0.1.5/tcp/4717, a PeerId like 12D3KooW...")
    })?;
    let answer = client::block_on(dial(&address, arguments.timeout))?;
    let (connect_ms, rtt_ms) = (milliseconds(answer.connected_after), milliseconds(answer.round_trip));
    if json {
        out::line(json!({
            "schema": "mingle.ping/1",
            "address": address,
            "peer": answer.peer.to_string(),
            "connect_ms": connect_ms,
            "rtt_ms": rtt_ms,
        }));
    } else {
        out::line(format!("{}  connected in {connect_ms:.1} ms, round trip {rtt_ms:.1} ms", answer.peer));
    }
    Ok(())
}

fn ping_member(arguments: &PingArgs, peer: PeerId, json: bool) -> Outcome {
    let home = Home::at(arguments.home.home.as_deref())?;
    let link = client::block_on(async {
        let client = Client::new(&home);
        let known: Known = client.get("/v1/known").await?;
        let local = known.peers.first().cloned().unwrap_or_default();
        if local == peer.to_string() {
            return Err(Failure::new(Kind::BadInput, "that is this peer itself"));
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

/// Connects under a name that nobody knows: an answer needs no membership.
async fn dial(address: &Multiaddr, patience: Duration) -> Outcome<Answer> {
    let began = Instant::now();
    let mut uncounted = Registry::default();
    let (network, mut events) =
        Network::start(&Keypair::generate_ed25519(), &NetworkOptions::default(), &mut uncounted).await?;
    network.bootstrap(vec![address.clone()]).await;
    let mut connected = None;
    let mut why = None;
    let answer = async {
        while let Some(event) = events.recv().await {
            match event {
                NetworkEvent::Bootstrapped { .. } => connected = Some(began.elapsed()),
                NetworkEvent::RoundTrip { peer, time } => {
                    let connected_after = connected.unwrap_or_else(|| began.elapsed());
                    return Ok(Answer { peer, connected_after, round_trip: time });
                }
                NetworkEvent::DialFailed { attempts, .. } => {
                    why = attempts.into_iter().next().map(|attempt| attempt.reason);
                    break;
                }
            }
        }
        Err(())
    };
    match tokio::time::timeout(patience, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        result => {
            let why = why.unwrap_or_else(|| match (result, connected) {
                (Err(_), None) => format!("nobody answered in {} s", patience.as_secs_f64()),
                _ => "it was connected, and did not answer a ping".to_owned(),
            });
            Err(why).or_fail(Kind::Unreachable, format!("{address} cannot be reached")).map_err(|failure| {
                failure.hint("does a peer listen there, and does the firewall let this port through (UDP for QUIC)?")
            })
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
