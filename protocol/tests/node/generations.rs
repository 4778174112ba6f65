//! Plans that follow each other.

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
    let asked = [Event::NewerPlan { peer: PEER, generation: newer, version: 0 }];
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
        plan_version: 0,
        identity: Identity { incarnation: 1, boot_nonce: 101 },
        seen: node.config().identity,
        link: LinkState { next_seq: 1, passed, ..LinkState::default() },
    };
    let (near, far) = (word(STALEST_ROUNDS), word(STALEST_ROUNDS + 2));
    let generation = Generation { counter: 1, plan_hash: [4; 32] };
    let new = |ratio| {
        Input::Enter(Box::new(NewGeneration { generation, schedule: exchange_half(0), id: ME, rounds: 10, ratio }))
    };
    node.handle(AT, from_peer(Message::Ack(near)));
    assert!(node.is_fresh());
    node.handle(AT, from_peer(Message::Ack(far)));
    assert_eq!(reports(&node.handle(AT, new(None))), [Event::RatioWanted { generation }]);
    assert_eq!(node.config().generation.counter, 0);
    assert_eq!(reports(&node.handle(AT, new(Some(vec![7.0; 3])))), [Event::Entered { generation }]);
    assert_eq!((&*node.ratio(), node.mass()), (&[7.0; 3][..], Mass::ONE));
}

/// A plan of three nodes in which one gives half to another.
fn one_way(from: NodeId, to: NodeId) -> Arc<Schedule> {
    let mut keep = vec![1.0; 3];
    keep[from.index()] = 0.5;
    Arc::new(Schedule::new(3, &[Step { keep, links: vec![(from, to, 0.5)] }], 0).unwrap())
}

/// A node that has such a plan, from its neighbour to itself, and that the neighbour has greeted.
fn fed_by_peer() -> Node {
    let mut config = config(ME, 0);
    config.schedule = one_way(PEER, ME);
    let mut node = Node::new(config).unwrap();
    node.handle(AT, Input::Start);
    node.handle(AT, Input::LinkUp { peer: PEER });
    node.handle(AT, from_peer(hello_from_peer(1, 101)));
    node
}

/// The neighbour's word on the links between the two, as one that has the plan with this number.
fn word_of_peer(node: &Node, plan_version: u64, link: LinkState) -> Input {
    from_peer(Message::Ack(Ack {
        generation: node.config().generation,
        plan_version,
        identity: Identity { incarnation: 1, boot_nonce: 101 },
        seen: node.config().identity,
        link,
    }))
}

/// What this node last said of its own link.
fn last_word(effects: &[Effect]) -> LinkState {
    let state = |message| match message {
        Message::Hello(hello) => Some(hello.link),
        Message::Ack(ack) => Some(ack.link),
        _ => None,
    };
    messages(effects).into_iter().filter_map(state).next_back().unwrap()
}

#[test]
fn a_link_that_a_new_plan_adds_to_a_neighbour_that_leaves_is_closed_at_once() {
    let mut node = fed_by_peer();
    let leaves = LinkState { next_seq: 1, leaving: true, ..LinkState::default() };
    node.handle(AT, word_of_peer(&node, 0, leaves));
    let effects = node.handle(AT, Input::Rewire(Rewiring { version: 1, schedule: one_way(ME, PEER) }));
    // Otherwise the neighbour would wait for ever for parcels that never come.
    assert_eq!(last_word(&effects).final_seq, Some(0));
}

#[test]
fn a_node_does_not_wait_for_a_link_that_only_an_older_plan_had() {
    let mut node = fed_by_peer();
    let links = |node: &Node| node.ledger().incoming.len();
    let has_none = LinkState::default();
    node.handle(AT, word_of_peer(&node, 0, has_none));
    assert_eq!(links(&node), 1, "by its own plan there is a link, of which the neighbour may not have heard");
    node.handle(AT, Input::Rewire(Rewiring { version: 1, schedule: one_way(ME, NodeId(2)) }));
    assert_eq!(links(&node), 0);
    // The neighbour has the older plan, and may send.
    node.handle(AT, from_peer(hello_from_peer(1, 101)));
    assert_eq!(links(&node), 1);
    // Then it has the new one too.
    node.handle(AT, word_of_peer(&node, 1, has_none));
    assert_eq!(links(&node), 0);
}
