//! Successive plans.

use super::*;

#[test]
fn a_newer_generation_is_asked_for_and_an_older_one_is_told() {
    let hello_of = |counter| {
        let Message::Hello(mut hello) = hello_from_peer(1, 101) else { unreachable!() };
        hello.generation.counter = counter;
        from_peer(Message::Hello(hello))
    };
    let mut config = config(ME, 0);
    config.generation.counter = 3;
    let ours = config.generation;
    let mut node = Node::new(config).unwrap();
    node.handle(AT, Input::Start);
    node.handle(AT, Input::LinkUp { peer: PEER });
    let newer = Generation { counter: 4, ..ours };
    let asked = [NodeEvent::NewerPlan { peer: PEER, generation: newer }];
    assert_eq!(reports(&node.handle(AT, hello_of(4))), asked);
    assert_eq!(node.handle(AT, hello_of(4)), [], "once in a heartbeat is enough");
    let later = AT + node.config().heartbeat;
    assert_eq!(reports(&node.handle(later, hello_of(4))), asked, "the host may have failed to fetch it");
    let told = messages(&node.handle(later, hello_of(2)));
    assert!(matches!(&told[..], [Message::Ack(ack)] if ack.generation == ours), "{told:?}");
    assert_eq!(node.mass(), Mass::ONE);
}

#[test]
fn a_node_that_fell_far_behind_enters_a_generation_only_with_the_ratio_of_another() {
    let mut long = config(ME, 1);
    long.rounds = 2 * STALEST_ROUNDS;
    let mut node = Node::new(long).unwrap();
    node.handle(AT, Input::Start);
    node.handle(AT, Input::LinkUp { peer: PEER });
    node.handle(AT, from_peer(hello_from_peer(1, 101)));
    let word = |passed| Ack {
        generation: node.config().generation,
        identity: Incarnation { incarnation: 1, boot_nonce: 101 },
        seen: node.config().identity,
        link: LinkPositions { next_seq: 1, passed, ..LinkPositions::default() },
    };
    let (near, far) = (word(STALEST_ROUNDS), word(STALEST_ROUNDS + 2));
    let generation = Generation { counter: 1, plan_hash: [4; 32] };
    let new = |ratio| {
        Input::Enter(Box::new(NewGeneration {
            generation,
            schedule: exchange_half(0),
            id: ME,
            keys: Arc::new(NoKeys),
            rounds: 10,
            ratio,
        }))
    };
    node.handle(AT, from_peer(Message::Ack(near)));
    assert!(node.is_fresh());
    node.handle(AT, from_peer(Message::Ack(far)));
    assert_eq!(reports(&node.handle(AT, new(None))), [NodeEvent::RatioWanted { generation }]);
    assert_eq!(node.config().generation.counter, 0);
    let given_up = NodeEvent::DeltaSkipped { round: 0, reason: SkippedDelta::OtherModel };
    assert_eq!(reports(&node.handle(AT, new(Some(vec![7.0; 3])))), [given_up, NodeEvent::Entered { generation }]);
    assert_eq!((&*node.ratio(), node.mass()), (&[7.0; 3][..], Mass::ONE));
}
