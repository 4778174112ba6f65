//! The distance for which a node follows a single neighbour's claim of progress.

use super::*;

/// Rounds between successive claims of the neighbour.
const LEAP: u64 = 30;

/// One of three nodes that all send to all and average without training.
fn node(policy: WaitPolicy, rounds: u64) -> Node {
    node_of(3, policy, rounds)
}

fn node_of(nodes: u32, policy: WaitPolicy, rounds: u64) -> Node {
    let ids = || (0..nodes).map(NodeId);
    let keep = 1.0 - 0.25 * f64::from(nodes - 1);
    let links = ids().flat_map(|from| ids().map(move |to| (from, to, 0.25))).filter(|(from, to, _)| from != to);
    let step = Step { keep: vec![keep; nodes as usize], links: links.collect() };
    let schedule = Arc::new(Schedule::new(nodes as usize, &[step], 0).unwrap());
    let mut config = NodeConfig::new(ME, schedule, vec![0.0; 3], rounds);
    config.policy = policy;
    Node::new(config).unwrap()
}

pub(super) fn greet(node: &mut Node, peer: NodeId) {
    node.handle(AT, Input::LinkUp { peer });
    node.handle(AT, greeting(node, peer));
}

fn greeting(node: &Node, peer: NodeId) -> Input {
    let generation = node.config().generation;
    let hello = Hello {
        version: PROTOCOL_VERSION,
        generation,
        task: node.config().task.clone(),
        identity: SignedIdentity::unsigned(Incarnation { incarnation: 1, boot_nonce: u64::from(peer.0) }),
        seen: Some(SignedIdentity::unsigned(node.config().identity)),
        resumed: false,
        link: LinkPositions { next_seq: 1, ..LinkPositions::default() },
        evidence: Evidence::default(),
    };
    Input::Received { from: peer, message: Message::Hello(Box::new(hello)) }
}

pub(super) fn says(node: &Node, peer: NodeId, passed: u64) -> Input {
    let ack = Ack {
        generation: node.config().generation,
        identity: Incarnation { incarnation: 1, boot_nonce: u64::from(peer.0) },
        seen: node.config().identity,
        link: LinkPositions { next_seq: 1, passed, ..LinkPositions::default() },
    };
    Input::Received { from: peer, message: Message::Ack(ack) }
}

#[test]
fn two_of_three_neighbours_that_claim_to_be_at_the_end_take_a_node_nowhere_near_it() {
    const ROUNDS: u64 = 1_000_000;
    for policy in [WaitPolicy::Sync, WaitPolicy::Bounded { staleness: 4 }, WaitPolicy::Async] {
        let mut node = node_of(4, policy, ROUNDS);
        node.handle(AT, Input::Start);
        [PEER, NodeId(2), NodeId(3)].into_iter().for_each(|peer| greet(&mut node, peer));
        for second in 0..600 {
            let now = AT + Duration::from_secs(second);
            for (peer, passed) in [(PEER, u64::MAX), (NodeId(2), u64::MAX), (NodeId(3), second)] {
                let input = says(&node, peer, passed);
                node.handle(now, input);
            }
            node.handle(now, Input::Tick);
        }
        assert!(node.round() < 2_000, "{policy:?}: round {}", node.round());
        assert_ne!(node.state(), NodeState::Draining, "{policy:?}");
    }
}

#[test]
fn a_neighbour_gains_one_lead_and_not_one_with_every_message() {
    for policy in [WaitPolicy::Sync, WaitPolicy::Bounded { staleness: 4 }] {
        let mut node = node(policy, 1_000_000);
        node.handle(AT, Input::Start);
        [PEER, NodeId(2)].into_iter().for_each(|peer| greet(&mut node, peer));
        for word in 1..=2_000 {
            let input = says(&node, PEER, LEAP * word);
            node.handle(AT, input);
        }
        // The node has waited for parcels in vain, and looks at the progress of the others.
        let later = AT + Duration::from_secs(3_600);
        node.handle(later, Input::Tick);
        assert!(node.round() <= 3 * LEAP, "{policy:?}: round {}", node.round());
        // Supported by another neighbour, the same claim is believed.
        for peer in [PEER, NodeId(2)] {
            let input = says(&node, peer, LEAP * 2_000);
            node.handle(later, input);
        }
        node.handle(later + Duration::from_secs(3_600), Input::Tick);
        assert!(node.round() >= LEAP * 2_000, "{policy:?}: round {}", node.round());
    }
}

#[test]
fn two_of_four_neighbours_gain_no_lead_anew_where_the_sound_ones_follow() {
    const LEAD: u64 = 36;
    let (liars, sound) = ([NodeId(3), NodeId(4)], [PEER, NodeId(2)]);
    for (policy, beyond) in [WaitPolicy::Sync, WaitPolicy::Bounded { staleness: 4 }]
        .into_iter()
        .flat_map(|policy| [u64::MAX, LEAD].map(|beyond| (policy, beyond)))
    {
        let mut node = node_of(5, policy, 1_000_000);
        node.handle(AT, Input::Start);
        liars.into_iter().chain(sound).for_each(|peer| greet(&mut node, peer));
        let mut own = 0;
        for tick in 0..4_000 {
            let now = AT + Duration::from_millis(100 * tick);
            // Sound neighbours are where this node is, by whatever way it came there.
            let here = node.step() + 1;
            let claims = liars.map(|peer| (peer, here.saturating_add(beyond)));
            let inputs = claims.into_iter().chain(sound.map(|peer| (peer, here)));
            let inputs: Vec<Input> = inputs.map(|(peer, passed)| says(&node, peer, passed)).collect();
            for input in inputs.into_iter().chain([Input::Tick]) {
                let events = reports(&node.handle(now, input));
                own += events.iter().filter(|event| matches!(event, NodeEvent::RoundFinished(_))).count() as u64;
            }
        }
        let round = node.round();
        assert!(own > 30, "{policy:?}: {own} rounds of its own");
        // A lead with each round would be 36 times as many; time explains some where deadlines pass.
        assert!(round <= 8 * own + 2 * LEAD, "{policy:?}, {beyond}: round {round} after {own} of its own");
    }
}

#[test]
fn a_node_whose_machine_was_suspended_follows_the_neighbour_that_went_on_while_another_is_away() {
    const BEFORE: u64 = 200;
    const SUSPENDED: u64 = 3_600;
    for policy in [WaitPolicy::Sync, WaitPolicy::Bounded { staleness: 4 }] {
        let mut node = node(policy, 1_000_000);
        node.handle(AT, Input::Start);
        [PEER, NodeId(2)].into_iter().for_each(|peer| greet(&mut node, peer));
        for tick in 0..10 * BEFORE {
            let now = AT + Duration::from_millis(100 * tick);
            let here = says(&node, PEER, node.step() + 1);
            [here, Input::Tick].into_iter().for_each(|input| drop(node.handle(now, input)));
        }
        let rounds = node.round();
        // The neighbour went on at the same pace.
        let ahead = rounds + rounds * SUSPENDED / BEFORE;
        for seconds in 0..60 {
            let now = AT + Duration::from_secs(BEFORE + SUSPENDED + seconds);
            let ahead = says(&node, PEER, ahead);
            [ahead, Input::Tick].into_iter().for_each(|input| drop(node.handle(now, input)));
        }
        // Its rounds have been longer since it misses parcels.
        assert!(node.round() > ahead / 2, "{policy:?}: round {} of {ahead}, {rounds} before", node.round());
    }
}

#[test]
fn without_records_a_parcel_is_sent_once_however_many_others_go_to_other_neighbours_after_it() {
    let others = [PEER, NodeId(2), NodeId(3)];
    let half = |to| Step { keep: vec![0.5, 1.0, 1.0, 1.0], links: vec![(ME, to, 0.5)] };
    let schedule = Arc::new(Schedule::new(4, &others.map(half), 0).unwrap());
    let mut config = NodeConfig::new(ME, schedule, vec![0.0; 3], 10);
    config.policy = WaitPolicy::Async;
    let mut node = Node::new(config).unwrap();
    node.handle(AT, Input::Start);
    others[..2].iter().for_each(|peer| greet(&mut node, *peer));
    node.handle(AT, Input::LinkUp { peer: others[2] });
    let mut sent = Vec::new();
    let greeting = greeting(&node, others[2]);
    for (millis, input) in [greeting].into_iter().chain(std::iter::repeat_n(Input::Tick, 100)).enumerate() {
        let effects = node.handle(AT + Duration::from_millis(10 * millis as u64), input);
        sent.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Send { to, message: Message::Parcel(parcel) } => Some((to, parcel.header.seq)),
            _ => None,
        }));
    }
    let count = sent.len();
    sent.sort_unstable();
    sent.dedup();
    assert!(others.iter().all(|peer| sent.iter().any(|(to, _)| to == peer)), "{sent:?}");
    assert_eq!(sent.len(), count, "{sent:?}");
}

#[test]
fn a_node_without_neighbours_waits_for_their_return_once_at_the_end_and_not_in_each_of_the_last_rounds() {
    let step = Step { keep: vec![0.9, 0.9], links: vec![(ME, PEER, 0.1), (PEER, ME, 0.1)] };
    let mut config = config(ME, 1);
    config.schedule = Arc::new(Schedule::new(2, &[step], 1).unwrap());
    (config.rounds, config.closes) = (100, true);
    let deadline = config.deadline_floor;
    let mut node = Node::new(config).unwrap();
    node.handle(AT, Input::Start);
    greet(&mut node, PEER);
    node.handle(AT, Input::LinkDown { peer: PEER });
    let mut now = AT;
    let mut closes_at = None;
    while !matches!(node.state(), NodeState::Draining | NodeState::Drained) {
        if node.state() == NodeState::Training {
            let round = node.round();
            node.handle(now, Input::Trained { round, delta: vec![0.0; 3], steps: 1, state: HostState::default() });
        } else {
            closes_at.get_or_insert(now);
            now = node.next_deadline().expect("it waits for something");
            node.handle(now, Input::Tick);
        }
    }
    let waited = now.since(closes_at.unwrap());
    assert!(waited <= deadline, "the last rounds took {waited:?}");
}
