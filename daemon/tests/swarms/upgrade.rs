//! Releases that meet: a swarm that is upgraded peer by peer, and peers whose release has another protocol version.

use crate::support::founded_swarm;
use std::process::Command;

use crate::support::founded_swarm::{ENDLESS, PLANS_ITSELF};
use crate::support::planned_swarm::PlannedSwarm;
use crate::support::played_peers::{Connection, EDGE, PATIENCE, SWARM, Swarm, framed, greeting, say};
use crate::support::{RunningPeer, run, stderr, text};
use futures::{AsyncReadExt, AsyncWriteExt};
use libp2p::identity::Keypair;
use mingle_peer::membership::Ticket;
use mingle_protocol::PROTOCOL_VERSION;

#[test]
fn a_swarm_is_upgraded_peer_by_peer_and_no_unit_of_weight_is_lost() {
    // No peer is done before the last one is upgraded.
    let swarm = PlannedSwarm::new(3, 1_000_000);
    // Another file stands for the next release, of the same protocol.
    let folder = tempfile::tempdir().unwrap();
    let next = folder.path().join("mingle");
    std::fs::copy(env!("CARGO_BIN_EXE_mingle"), &next).unwrap();
    let mut peers = swarm.start_all();
    for peer in &mut peers {
        peer.wait_for("round");
    }
    for (node, peer) in peers.iter_mut().enumerate() {
        let home = swarm.home(node);
        let stopped = run(&["stop", "--home", text(&home)]);
        assert!(stopped.status.success(), "{}", stderr(&stopped));
        assert_eq!(peer.exit_code(), Some(0));
        *peer = swarm.start_as(Command::new(&next), node, &[]);
        let recovered = peer.wait_for("recovered");
        assert!(recovered["record"].as_u64() > Some(1), "{recovered}");
        peer.wait_for("joined");
        // The next one is stopped once this one trains with the others again.
        peer.wait_for("round");
    }
    peers.iter_mut().for_each(RunningPeer::kill);
    swarm.audit("after the upgrade");
}

/// The Hello of another version: only the version number in front must be where it is.
fn hello_of(version: u16) -> Vec<u8> {
    let body = [postcard::to_stdvec(&version).unwrap(), vec![9; 40]].concat();
    [&u32::try_from(body.len()).unwrap().to_le_bytes()[..], &[1], &body].concat()
}

#[test]
fn a_member_with_another_protocol_is_named_with_both_versions_and_the_others_train_on() {
    let swarm = Swarm::new();
    let (mut peers, address) = swarm.start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stream = runtime.block_on(async {
        let mut connection = Connection::open(swarm.member.clone(), address).await;
        let mut stream = connection.stream(&EDGE).await.unwrap();
        stream.write_all(&framed(&greeting(swarm.plan_hash))).await.unwrap();
        stream.write_all(&hello_of(PROTOCOL_VERSION - 1)).await.unwrap();
        stream.flush().await.unwrap();
        let mut answer = [0; 5];
        let reading = tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer));
        reading.await.unwrap().unwrap();
        (connection, stream)
    });
    let (theirs, ours) = (PROTOCOL_VERSION - 1, PROTOCOL_VERSION);
    let sentence = format!("it speaks protocol version {theirs}, this node {ours}: run the same release on both");
    let said = peers[0].wait_for_warning(&sentence);
    assert!(said.starts_with("node 2 ("), "{said}");
    drop(stream);
    swarm.check(peers);
}

#[test]
fn a_newcomer_with_another_protocol_is_not_let_in_whatever_its_ticket() {
    let swarm = founded_swarm::Swarm::found();
    let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &ENDLESS[..]].concat());
    let address = operator.address().parse().unwrap();
    let ticket: Ticket = swarm.invite(2).parse().unwrap();
    let newcomer = Keypair::generate_ed25519();
    let claim = ticket.invite.claim(&ticket.swarm, &newcomer.public().to_peer_id()).unwrap();
    let wanted = |version: u16| {
        // Join: the version, the swarm, the claim, and solving an empty problem, which is checked after the version.
        framed(&[&[1][..], &postcard::to_stdvec(&(version, ticket.swarm.id(), &claim)).unwrap(), &[1, 0]].concat())
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut connection = Connection::open(newcomer, address).await;
        let mut ask = async |version| {
            let mut stream = connection.stream(&SWARM).await.unwrap();
            String::from_utf8_lossy(&say(&mut stream, &wanted(version)).await).into_owned()
        };
        for version in [PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1] {
            let answer = ask(version).await;
            let sentence = format!("it speaks protocol version {version}, and this swarm {PROTOCOL_VERSION}");
            assert!(answer.contains(&sentence) && answer.contains("run the release"), "{answer:?}");
        }
        let answer = ask(PROTOCOL_VERSION).await;
        assert!(!answer.contains("protocol version"), "{answer:?}");
    });
}
