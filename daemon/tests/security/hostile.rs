//! A member, and a stranger, that do not keep to the protocol: the others go on, and stay small.

use crate::support::liar::{Liar, OwnKey, key_of};
use crate::support::played_peers::{Connection, EDGE, PATIENCE, PROBE, SWARM, Swarm, framed, greeting, say};
use futures::{AsyncReadExt, AsyncWriteExt};
use libp2p::Multiaddr;
use libp2p::identity::Keypair;
use mingle_protocol::{
    Ack, Applied, Chain, Evidence, Fate, Hello, LinkPositions, Mac, Message, NodeId, OtherProcess, ProcessStatement,
    Sent, Signature,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Sends every kind of wrong message, on every protocol.
async fn rave(connection: &mut Connection, greeting: &[u8], seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut noise = |length: usize| {
        let mut bytes = vec![0; length];
        random.fill_bytes(&mut bytes);
        bytes
    };
    for turn in 0..8 {
        let garbage = [noise(1 << 16), vec![0xff; 64], vec![0; 1 << 12], noise(turn)];
        for protocol in [&EDGE, &SWARM, &PROBE] {
            for bytes in &garbage {
                if let Some(mut stream) = connection.stream(protocol).await {
                    say(&mut stream, bytes).await;
                }
                // Well-formed on the outside.
                if let Some(mut stream) = connection.stream(protocol).await {
                    say(&mut stream, &framed(&bytes[..bytes.len().min(200)])).await;
                }
            }
        }
        // A proper greeting, then noise where parcels are expected.
        if let Some(mut stream) = connection.stream(&EDGE).await {
            // Less than the receive buffer of a stream that is not read.
            say(&mut stream, &[framed(greeting), noise(1 << 17)].concat()).await;
        }
    }
    // Streams that are opened and never used.
    let mut idle = Vec::new();
    for _ in 0..300 {
        if let Some(stream) = connection.stream(&SWARM).await {
            idle.push(stream);
        }
    }
    drop(idle);
}

#[test]
fn a_member_that_raves_does_not_hold_the_others_up() {
    let swarm = Swarm::new();
    let (peers, address) = swarm.start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut connection = Connection::open(swarm.member.clone(), address).await;
        // It is a member: it could also do this properly.
        let mut stream = connection.stream(&EDGE).await.unwrap();
        stream.write_all(&framed(&greeting(swarm.plan_hash))).await.unwrap();
        stream.flush().await.unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, [1, 0, 0, 0, 0], "no objection");
        drop(stream);
        rave(&mut connection, &greeting(swarm.plan_hash), 1).await;
    });
    swarm.check(peers);
}

#[test]
fn a_stranger_gets_nothing_and_disturbs_nobody() {
    let swarm = Swarm::new();
    let (peers, address) = swarm.start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut connection = Connection::open(Keypair::generate_ed25519(), address.clone()).await;
        let mut stream = connection.stream(&EDGE).await.unwrap();
        let answer = say(&mut stream, &framed(&greeting(swarm.plan_hash))).await;
        assert_eq!(answer, framed(&[1, 0]), "not a neighbour");
        // The plan and the model are for members.
        for request in [&[0, 0][..], &[2]] {
            let mut stream = connection.stream(&SWARM).await.unwrap();
            assert_eq!(say(&mut stream, &framed(request)).await, framed(&[2]), "not a member");
        }
        rave(&mut connection, &greeting(swarm.plan_hash), 2).await;
        // Many connections at once.
        let crowd = (0..40).map(|_| Connection::open(Keypair::generate_ed25519(), address.clone()));
        let crowd = tokio::time::timeout(PATIENCE, futures::future::join_all(crowd)).await.unwrap();
        assert_eq!(crowd.len(), 40);
    });
    swarm.check(peers);
}

/// Runs a member that need not keep to the protocol. Its connection, with all bytes not yet read, ends when the
/// returned runtime is dropped.
#[must_use]
fn lie(swarm: &Swarm, address: Multiaddr, say: impl AsyncFnOnce(&mut Liar)) -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut liar = Liar::meet(&swarm.part(), address).await;
        say(&mut liar).await;
    });
    runtime
}

/// Asserts that a peer has not given up the weight it held.
fn assert_kept(swarm: &Swarm, node: usize) -> String {
    let events = std::fs::read_to_string(swarm.home(node).join("events.jsonl")).unwrap();
    assert!(!events.contains("\"event\":\"set_back\""), "{node} gave up what it held: {events}");
    events
}

#[test]
fn a_member_that_names_later_lives_of_its_neighbour_ends_nobody() {
    let swarm = Swarm::new();
    let (peers, address) = swarm.start();
    let _connection = lie(&swarm, address, async |liar| {
        let lies: Vec<Message> =
            (1..=64).flat_map(|k| [liar.ack(1_000 * k, 0), liar.greets_later_life(1_000 * k)]).collect();
        // First as a stranger, then as a peer that has greeted.
        liar.say(lies.clone()).await;
        let hello = liar.hello(0);
        liar.say(std::iter::once(hello).chain(lies)).await;
    });
    swarm.check(peers);
    assert_kept(&swarm, 0);
}

#[test]
fn a_member_that_contradicts_a_neighbours_books_takes_no_weight_and_is_named() {
    let swarm = Swarm::new();
    let (mut peers, address) = swarm.start();
    let _connection = lie(&swarm, address, async |liar| {
        // It claims to have received what was not sent, and the other side to have received what never came.
        let (of_theirs, of_its_own) = (
            LinkPositions { received: 1_000_000, applied: 1_000_000, next_seq: 1, ..LinkPositions::default() },
            LinkPositions { acked: 8, next_seq: 9, ..LinkPositions::default() },
        );
        let code = Mac::from([7; 16]);
        let forged = Evidence {
            sent: Some(Sent { seq: 1_000_000, chain: Chain::default(), mac: code }),
            applied: Some(Applied { seq: 8, mac: code }),
        };
        let mut lies = vec![liar.hello(0)];
        for link in [of_its_own, of_theirs] {
            let Message::Ack(ack) = liar.ack(0, 0) else { unreachable!() };
            let hello = liar.greets(liar.greeting.identity, 0);
            lies.push(Message::Ack(Ack { link, ..ack }));
            lies.push(Message::Hello(Box::new(Hello { link, evidence: forged, ..hello })));
        }
        liar.say(lies).await;
    });
    loop {
        let suspended = peers[0].wait_for("suspended");
        if suspended["node"] == 2
            && suspended["reason"].as_str().unwrap().starts_with("it contradicts this peer's books")
        {
            break;
        }
    }
    swarm.check(peers);
    assert_kept(&swarm, 0);
}

#[test]
fn a_member_that_says_that_others_have_left_is_not_believed() {
    let swarm = Swarm::new();
    let (peers, address) = swarm.start();
    let _connection = lie(&swarm, address, async |liar| {
        let hello = liar.hello(0);
        let lies = [(1, u64::MAX), (1, 1), (0, u64::MAX), (0, 1)];
        let lies: Vec<Message> = lies.map(|(leaver, life)| liar.departure(NodeId(leaver), life)).into();
        liar.say(std::iter::once(hello).chain(lies)).await;
    });
    swarm.check(peers);
    for node in 0..2 {
        let events = assert_kept(&swarm, node);
        assert!(!events.contains("has left for good"), "{events}");
    }
}

#[test]
fn a_member_that_claims_to_be_at_the_end_ends_nobody_and_is_named() {
    let swarm = Swarm::new();
    let (mut peers, address) = swarm.start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let liar = runtime.block_on(Liar::meet(&swarm.part(), address));
    let claims = runtime.spawn(async move {
        let mut liar = liar;
        let hello = liar.hello(u64::MAX);
        liar.say([hello]).await;
        let mut buffer = [0; 4096];
        // It repeats the claim whenever it receives anything.
        while matches!(liar.stream.read(&mut buffer).await, Ok(read) if read > 0) {
            let claim = liar.ack(0, u64::MAX);
            liar.say([claim]).await;
        }
    });
    peers[0].wait_for_warning("node 2 says that it has done");
    // A peer that stops waits for neighbours that answer; this one would answer for ever.
    claims.abort();
    swarm.check(peers);
    for node in 0..2 {
        assert!(!swarm.home(node).join("records/ending.json").exists(), "the run is not over");
    }
}

/// A second process with the first peer's key, and its statement to the one member that it reaches, which passes it on.
struct SecondProcess {
    key: OwnKey,
    said: ProcessStatement,
}

impl SecondProcess {
    const NONCE: u64 = 9;

    fn of(swarm: &Swarm, liar: &Liar) -> Self {
        let key = OwnKey(key_of(&swarm.home(0)));
        let (generation, signature) = (liar.greeting.generation, Signature::default());
        let said = ProcessStatement {
            generation,
            node: NodeId(0),
            boot_nonce: Self::NONCE,
            number: 2,
            age_ms: 0,
            other: None,
            signature,
        };
        Self { key, said }
    }

    /// States that it is there, and what it knows of the first peer's process; the member passes that on.
    async fn speak(&self, liar: &mut Liar, number: u64, other: Option<OtherProcess>) {
        let said = ProcessStatement { number, other, ..self.said };
        liar.say([Message::Process(said.signed(&self.key))]).await;
    }
}

/// The first peer's next statement, beyond a number, about another process with its key.
async fn hear_of_another_process(liar: &mut Liar, number: u64) -> (ProcessStatement, OtherProcess) {
    let wanted = |message| match message {
        Message::Process(statement) if statement.node == NodeId(0) && statement.number > number => {
            Some((statement, statement.other?))
        }
        _ => None,
    };
    liar.hear(wanted).await
}

/// A second process with the key of the first peer, behind a member that has greeted that peer, and has sent a forged
/// statement.
async fn second_process(swarm: &Swarm, address: Multiaddr) -> (Liar, SecondProcess) {
    let mut liar = Liar::meet(&swarm.part(), address).await;
    let second = SecondProcess::of(swarm, &liar);
    let boot_nonce = liar.greeting.identity.identity.boot_nonce;
    let other = Some(OtherProcess { boot_nonce, fate: Fate::OtherEnds });
    let forged = ProcessStatement { number: 1_000, other, ..second.said }.signed(&liar.keys);
    let hello = liar.hello(0);
    liar.say([hello, Message::Process(forged)]).await;
    (liar, second)
}

#[test]
fn a_younger_process_with_the_same_key_behind_another_member_is_told_to_end() {
    let swarm = Swarm::new();
    let (mut peers, address) = swarm.start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (mut liar, second) = second_process(&swarm, address).await;
        let boot_nonce = liar.greeting.identity.identity.boot_nonce;
        second.speak(&mut liar, 2, Some(OtherProcess { boot_nonce, fate: Fate::Unknown })).await;
        let (_, other) = hear_of_another_process(&mut liar, 2).await;
        assert_eq!(other, OtherProcess { boot_nonce: SecondProcess::NONCE, fate: Fate::OtherEnds });
    });
    peers[0].wait_for_warning("another process uses this peer's key");
    swarm.check(peers);
}

#[test]
fn a_process_that_is_younger_than_another_with_its_key_ends_and_says_why() {
    let swarm = Swarm::new();
    let ([mut first, mut second_peer], address) = swarm.start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (mut liar, second) = second_process(&swarm, address).await;
        second.speak(&mut liar, 2, None).await;
        let (first, other) = hear_of_another_process(&mut liar, 2).await;
        assert_eq!(other, OtherProcess { boot_nonce: SecondProcess::NONCE, fate: Fate::Unknown }, "it may be gone");
        let other = OtherProcess { boot_nonce: first.boot_nonce, fate: Fate::OtherEnds };
        second.speak(&mut liar, first.number + 1, Some(other)).await;
    });
    let end = first.wait_through_rounds_for("done");
    assert!(end["error"]["message"].as_str().unwrap().contains("another process uses this peer's key"), "{end}");
    assert_eq!(first.exit_code(), Some(6));
    second_peer.wait_for("evaluated");
}
