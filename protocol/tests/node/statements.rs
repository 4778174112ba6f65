//! Statements of neighbours about a node, or about others, and the part of them that is believed.

use super::test_keys::TestKeys;
use super::*;

/// A node with records and keys that its neighbour has greeted.
fn met() -> Node {
    let mut config = config(ME, 0);
    config.durability = Durability::On;
    config.keys = Arc::new(TestKeys(ME));
    let mut node = Node::new(config).unwrap();
    node.handle(AT, Input::Start);
    node.handle(AT, Input::LinkUp { peer: PEER });
    let greeted = node.handle(AT, from_peer(greeting(&node, own_life(&node, 1), PEER)));
    assert!(messages(&greeted).iter().any(|message| matches!(message, Message::Hello(_))), "{greeted:?}");
    node
}

fn own_life(node: &Node, incarnation: u64) -> SignedIdentity {
    let identity = Incarnation { incarnation, ..node.config().identity };
    SignedIdentity::sign(ME, &node.config().generation, identity, &TestKeys(ME))
}

/// A Hello of the neighbour, which knows the node as `seen`, signed by `signer`.
fn greeting(node: &Node, seen: SignedIdentity, signer: NodeId) -> Message {
    let Message::Hello(mut hello) = hello_from_peer(1, 101) else { unreachable!() };
    hello.generation = node.config().generation;
    hello.identity = SignedIdentity::sign(signer, &hello.generation, hello.identity.identity, &TestKeys(signer));
    hello.seen = Some(seen);
    Message::Hello(hello)
}

fn was_rolled_back(effects: &[Effect]) -> bool {
    reports(effects).iter().any(|event| matches!(event, NodeEvent::RollbackDetected { .. }))
}

fn ignored(effects: &[Effect]) -> Option<InputFault> {
    reports(effects)
        .into_iter()
        .find_map(|event| if let NodeEvent::Ignored { fault, .. } = event { Some(fault) } else { None })
}

#[test]
fn a_greeting_that_the_neighbour_did_not_sign_is_not_believed() {
    let mut node = met();
    let Message::Hello(mut hello) = greeting(&node, own_life(&node, 1), ME) else { unreachable!() };
    hello.identity.identity.boot_nonce = 5;
    let effects = node.handle(AT, from_peer(Message::Hello(hello)));
    assert_eq!(ignored(&effects), Some(InputFault::Unsigned));
}

#[test]
fn a_later_life_of_the_node_is_believed_by_its_own_signature_alone() {
    let mut node = met();
    let mass = node.mass();
    let mut forged = own_life(&node, 1);
    forged.identity.incarnation = 7;
    let effects = node.handle(AT, from_peer(greeting(&node, forged, PEER)));
    assert_eq!((ignored(&effects), was_rolled_back(&effects)), (Some(InputFault::Unsigned), false));

    let word = Ack {
        generation: node.config().generation,
        identity: Incarnation { incarnation: 1, boot_nonce: 101 },
        seen: forged.identity,
        link: LinkPositions { next_seq: 1, ..LinkPositions::default() },
    };
    let effects = node.handle(AT, from_peer(Message::Ack(word)));
    assert!(!was_rolled_back(&effects), "an Ack shows no signature");
    assert_eq!(node.mass(), mass);

    let effects = node.handle(AT, from_peer(greeting(&node, own_life(&node, 7), PEER)));
    assert!(was_rolled_back(&effects), "{effects:?}");
    assert_eq!((node.mass(), node.config().identity.incarnation), (Mass::ZERO, 8));
    // Shown again, it is the statement of an earlier life.
    let effects = node.handle(AT, from_peer(greeting(&node, own_life(&node, 7), PEER)));
    assert!(!was_rolled_back(&effects));
}

#[test]
fn what_a_neighbour_said_of_itself_is_kept_on_disk_and_shown_to_it_by_the_next_process() {
    let config = || {
        let mut config = config(ME, 0);
        config.durability = Durability::On;
        config.keys = Arc::new(TestKeys(ME));
        config
    };
    let mut node = Node::new(config()).unwrap();
    let hello = greeting(&node, own_life(&node, 1), PEER);
    let Message::Hello(said) = &hello else { unreachable!() };
    let theirs = said.identity;
    let mut written = Vec::new();
    let mut inputs = VecDeque::from([Input::Start, Input::LinkUp { peer: PEER }, from_peer(hello)]);
    while let Some(input) = inputs.pop_front() {
        for record in records(&node.handle(AT, input)) {
            inputs.push_back(Input::Persisted { number: record.books.number });
            written.push(record);
        }
    }
    let last = Arc::unwrap_or_clone(written.pop().unwrap());
    assert_eq!(last.books.neighbours.get(&PEER), Some(&theirs));

    let payloads = last.payload.iter().map(|payload| (last.books.number, payload.clone())).collect();
    let mut next = Node::resume(config(), last, &payloads).unwrap();
    next.handle(AT, Input::Start);
    let shown =
        messages(&next.handle(AT, Input::LinkUp { peer: PEER })).into_iter().find_map(|message| match message {
            Message::Hello(hello) => hello.seen,
            _ => None,
        });
    assert_eq!(shown, Some(theirs));
}

#[test]
fn nobody_says_of_another_that_it_has_left() {
    let mut node = met();
    let certificate = |leaver, incarnation| LeaveCertificate {
        generation: node.config().generation,
        leaver,
        incarnation,
        ends: Vec::new(),
        evidence: Vec::new(),
        signature: Signature::default(),
    };
    let (own, of_peer) = (certificate(ME, u64::MAX), certificate(PEER, 1));
    for forged in [own.clone(), of_peer.clone(), own.signed(&TestKeys(PEER)), of_peer.clone().signed(&TestKeys(ME))] {
        let effects = node.handle(AT, from_peer(Message::Left(forged)));
        assert_eq!(ignored(&effects), Some(InputFault::Unsigned));
        assert!(!was_rolled_back(&effects) && !node.has_left());
    }
    let effects = node.handle(AT, from_peer(Message::Left(of_peer.signed(&TestKeys(PEER)))));
    assert!(reports(&effects).contains(&NodeEvent::MemberLeft { peer: PEER }), "{effects:?}");
}

#[test]
fn a_certificate_names_those_alone_that_the_plan_lets_send_to_its_leaver() {
    let mut node = met();
    let generation = node.config().generation;
    let certificate = |from: NodeId| LeaveCertificate {
        generation,
        leaver: PEER,
        incarnation: 1,
        ends: Vec::new(),
        evidence: vec![(from, Sent::default())],
        signature: Signature::default(),
    };
    for stranger in [PEER, NodeId(2), NodeId(19_000)] {
        let padded = certificate(stranger).signed(&TestKeys(PEER));
        let effects = node.handle(AT, from_peer(Message::Left(padded)));
        assert_eq!(ignored(&effects), Some(InputFault::ImpossibleCertificate), "{stranger}");
    }
    let effects = node.handle(AT, from_peer(Message::Left(certificate(ME).signed(&TestKeys(PEER)))));
    assert!(reports(&effects).contains(&NodeEvent::MemberLeft { peer: PEER }), "{effects:?}");
}

#[test]
fn a_node_that_leaves_again_and_again_is_passed_on_a_few_times() {
    let mut node = met();
    let generation = node.config().generation;
    let leave = |incarnation| {
        let (signature, ends, evidence) = (Signature::default(), Vec::new(), Vec::new());
        LeaveCertificate { generation, leaver: PEER, incarnation, ends, evidence, signature }.signed(&TestKeys(PEER))
    };
    let faults: Vec<_> =
        (1..=20).map(|life| ignored(&node.handle(AT, from_peer(Message::Left(leave(life)))))).collect();
    let taken = faults.iter().take_while(|fault| fault.is_none()).count();
    assert_eq!(taken, 8, "{faults:?}");
    assert!(faults[taken..].iter().all(|fault| *fault == Some(InputFault::ImpossibleCertificate)));
}
