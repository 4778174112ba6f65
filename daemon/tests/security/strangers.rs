//! Strangers that take all the places that they can get: members are served as if there were none.

use std::time::Duration;

use crate::support::played_peers::{Connection, EDGE, PATIENCE, PROBE, SWARM, Swarm, framed, greeting, say};
use futures::{AsyncReadExt, AsyncWriteExt};
use libp2p::identity::Keypair;
use libp2p::{Multiaddr, StreamProtocol};

/// The answer of a peer that has a plan to a request for it.
const PLAN: u8 = 0;
/// Strangers that together take all places for strangers: each holds as many as one peer may, of each service, of
/// measurements and of links.
const CROWD: usize = 8;
const HELD: [(StreamProtocol, usize); 3] = [(SWARM, 4), (PROBE, 1), (EDGE, 8)];

/// A stranger that opens streams, sends nothing of use on them, and opens others as soon as they are closed.
async fn hold_places(address: Multiaddr) {
    let connection = Connection::open(Keypair::generate_ed25519(), address).await;
    let mut holders = tokio::task::JoinSet::new();
    for protocol in HELD.into_iter().flat_map(|(protocol, streams)| std::iter::repeat_n(protocol, streams)) {
        let (mut control, peer) = (connection.control.clone(), connection.peer);
        holders.spawn(async move {
            while let Ok(mut stream) = control.open_stream(peer, protocol.clone()).await {
                // The protocol is agreed on with the first byte, of a length that never comes to its end.
                let _ = stream.write_all(&[1]).await;
                let _ = stream.flush().await;
                let _ = stream.read(&mut [0]).await;
            }
        });
    }
    while holders.join_next().await.is_some() {}
}

#[test]
fn members_are_served_while_strangers_hold_all_the_places_that_they_can_get() {
    let swarm = Swarm::new();
    let (peers, address) = swarm.start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut crowd = tokio::task::JoinSet::new();
        for _ in 0..CROWD {
            crowd.spawn(hold_places(address.clone()));
        }
        let mut stranger = Connection::open(Keypair::generate_ed25519(), address.clone()).await;
        // Wait until strangers are turned away: then their places are taken.
        let turned_away = async { while !is_turned_away(&mut stranger).await {} };
        tokio::time::timeout(PATIENCE, turned_away).await.unwrap();

        let mut member = Connection::open(swarm.member.clone(), address).await;
        for _ in 0..20 {
            // A stream can be lost among many that are opened at once, and is opened again then.
            let mut tries = 0;
            while is_turned_away(&mut member).await {
                tries += 1;
                assert!(tries < 5, "a member asks for the plan and is not answered");
            }
        }
        let mut stream = member.stream(&EDGE).await.unwrap();
        assert_eq!(
            say(&mut stream, &framed(&greeting(swarm.plan_hash))).await[..5],
            [1, 0, 0, 0, 0],
            "it is a neighbour"
        );
        crowd.shutdown().await;
    });
    swarm.check(peers);
}

/// Returns `true` if a request gets no answer.
async fn is_turned_away(connection: &mut Connection) -> bool {
    let Some(mut stream) = connection.stream(&SWARM).await else { return true };
    let answer = say(&mut stream, &framed(&[PLAN, 0])).await;
    // The peer that asks is not in the plan, or gets it.
    assert!(answer.is_empty() || answer == framed(&[2]) || answer.get(4) == Some(&PLAN), "{answer:?}");
    answer.is_empty()
}

#[test]
fn a_member_finds_a_connection_however_many_strangers_hold_one() {
    let swarm = Swarm::new();
    let (peers, address) = swarm.start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut held = Vec::new();
        // More than one network address may hold.
        for _ in 0..160 {
            held.push(Connection::open(Keypair::generate_ed25519(), address.clone()).await);
        }
        let mut refused = 0;
        for connection in &mut held {
            let asked = tokio::time::timeout(Duration::from_secs(5), is_turned_away(connection)).await;
            refused += usize::from(asked.unwrap_or(true));
        }
        assert!(refused > 0, "160 strangers hold a connection each, from one address");
        let mut member = Connection::open(swarm.member.clone(), address).await;
        assert!(!is_turned_away(&mut member).await);
    });
    swarm.check(peers);
}

const KADEMLIA: StreamProtocol = StreamProtocol::new("/mingle/kad/1");

/// The peers near this key in the table of a peer, as bytes in which their PeerIds can be found; `None` without an
/// answer.
async fn look_up(connection: &mut Connection, key: &[u8]) -> Option<Vec<u8>> {
    let mut stream = connection.stream(&KADEMLIA).await?;
    // In protobuf: the kind of the message is FIND_NODE, and the key.
    let message = [&[0x08, 0x04, 0x12, u8::try_from(key.len()).unwrap()], key].concat();
    stream.write_all(&[&[u8::try_from(message.len()).unwrap()], &message[..]].concat()).await.ok()?;
    stream.flush().await.ok()?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    let answering = async {
        // All of the answer, or its beginning, which has the nearest peer first.
        let read = stream.read(&mut buffer).await.unwrap_or_default();
        answer.extend_from_slice(&buffer[..read]);
        let read = stream.read(&mut buffer).await.unwrap_or_default();
        answer.extend_from_slice(&buffer[..read]);
    };
    // The stream stays open for another question.
    let _ = tokio::time::timeout(Duration::from_secs(3), answering).await;
    Some(answer).filter(|answer| !answer.is_empty())
}

#[test]
fn strangers_get_no_addresses_of_members_out_of_the_kademlia_table() {
    let swarm = Swarm::new();
    let (peers, address) = swarm.start();
    let second: libp2p::PeerId = swarm.id(1).parse().unwrap();
    let second = second.to_bytes();
    let names_second = |answer: Vec<u8>| answer.windows(second.len()).any(|bytes| bytes == second);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut member = Connection::open(swarm.member.clone(), address.clone()).await;
        let found = async { while !look_up(&mut member, &second).await.is_some_and(names_second) {} };
        tokio::time::timeout(PATIENCE, found).await.expect("a member is told where others listen");
        let mut stranger = Connection::open(Keypair::generate_ed25519(), address).await;
        assert_eq!(look_up(&mut stranger, &second).await, None);
    });
    swarm.check(peers);
}
