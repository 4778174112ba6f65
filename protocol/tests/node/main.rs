//! One or two nodes, driven by hand: the effects of each input, rule by rule.
#![allow(clippy::unwrap_used)]

mod contradictions;
mod draining;
mod generations;
mod lives;
mod made_up_mass;
mod processes;
mod progress;
mod statements;
#[path = "../support/test_keys.rs"]
mod test_keys;
mod training;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mingle_protocol::record::HostState;
use mingle_protocol::*;

const ME: NodeId = NodeId(0);
const PEER: NodeId = NodeId(1);
const AT: Time = Time::from_millis(10);

fn exchange_half(local_steps: u32) -> Arc<Schedule> {
    let step = Step { keep: vec![0.5, 0.5], links: vec![(ME, PEER, 0.5), (PEER, ME, 0.5)] };
    Arc::new(Schedule::new(2, &[step], local_steps).unwrap())
}

fn config(id: NodeId, local_steps: u32) -> NodeConfig {
    let initial = vec![if id == ME { 0.0 } else { 8.0 }; 3];
    let mut config = NodeConfig::new(id, exchange_half(local_steps), initial, 10);
    config.policy = WaitPolicy::Sync;
    config.identity = Incarnation { incarnation: 1, boot_nonce: u64::from(id.0) + 100 };
    config.task = TaskDigest { hash: [3; 32], description: "digits".into() };
    config
}

fn reports(effects: &[Effect]) -> Vec<NodeEvent> {
    effects
        .iter()
        .filter_map(|effect| if let Effect::Report(event) = effect { Some(event.clone()) } else { None })
        .collect()
}

fn messages(effects: &[Effect]) -> Vec<Message> {
    effects
        .iter()
        .filter_map(|effect| if let Effect::Send { message, .. } = effect { Some(message.clone()) } else { None })
        .collect()
}

/// Records that a host was asked to write.
fn records(effects: &[Effect]) -> Vec<Arc<Record>> {
    effects
        .iter()
        .filter_map(|effect| if let Effect::Persist(record) = effect { Some(record.clone()) } else { None })
        .collect()
}

fn parcels(effects: &[Effect]) -> Vec<Parcel> {
    let parcel = |message| {
        if let Message::Parcel(parcel) = message { Some(parcel) } else { None }
    };
    messages(effects).into_iter().filter_map(parcel).collect()
}

fn from_peer(message: Message) -> Input {
    Input::Received { from: PEER, message }
}

/// Two nodes wired back to back, without delay.
struct Pair {
    nodes: [Node; 2],
}

impl Pair {
    fn new(configs: [NodeConfig; 2]) -> Self {
        Self { nodes: configs.map(|config| Node::new(config).unwrap()) }
    }

    /// Gives one node an input, then delivers messages until none are left. Returns all effects of each node.
    fn settle(&mut self, now: Time, to: usize, input: Input) -> [Vec<Effect>; 2] {
        let mut all = [Vec::new(), Vec::new()];
        let mut inbox = VecDeque::from([(to, input)]);
        while let Some((to, input)) = inbox.pop_front() {
            let effects = self.nodes[to].handle(now, input);
            for message in messages(&effects) {
                inbox.push_back((1 - to, Input::Received { from: NodeId(to as u32), message }));
            }
            inbox.extend(records(&effects).iter().map(|record| (to, Input::Persisted { number: record.books.number })));
            all[to].extend(effects);
        }
        all
    }

    fn meet(&mut self, now: Time) -> [Vec<Effect>; 2] {
        let mut all = [Vec::new(), Vec::new()];
        for (node, input) in
            [(0, Input::Start), (1, Input::Start), (0, Input::LinkUp { peer: PEER }), (1, Input::LinkUp { peer: ME })]
        {
            for (all, effects) in all.iter_mut().zip(self.settle(now, node, input)) {
                all.extend(effects);
            }
        }
        all
    }
}

/// A node whose neighbour has greeted it and waits, and its effects. The Hello is the one that the real neighbour would
/// send.
fn greeted(local_steps: u32) -> (Node, Vec<Effect>) {
    let mut node = Node::new(config(ME, local_steps)).unwrap();
    node.handle(AT, Input::Start);
    node.handle(AT, Input::LinkUp { peer: PEER });
    let effects = node.handle(AT, from_peer(hello_from_peer(1, 101)));
    (node, effects)
}

fn hello_from_peer(incarnation: u64, boot_nonce: u64) -> Message {
    let config = config(PEER, 0);
    Message::Hello(Box::new(Hello {
        version: PROTOCOL_VERSION,
        generation: config.generation,
        task: config.task,
        identity: SignedIdentity::unsigned(Incarnation { incarnation, boot_nonce }),
        seen: Some(SignedIdentity::unsigned(self::config(ME, 0).identity)),
        resumed: false,
        link: LinkPositions { next_seq: 1, ..LinkPositions::default() },
        evidence: Evidence::default(),
    }))
}

fn parcel_from_peer(seq: u64, step: u64, value: f32) -> Parcel {
    Parcel {
        header: ParcelHeader {
            generation: config(ME, 0).generation,
            sender_incarnation: 1,
            receiver_incarnation: 1,
            base: 0,
            acked: 0,
            seq,
            previous: Chain::default(),
            chain: Chain([9; 32]),
            step,
            mass: Mass::from_units(UNITS_PER_ONE / 2),
            mac: Mac::default(),
        },
        payload: Payload::new(&[value; 3]).unwrap(),
    }
}

#[test]
fn two_nodes_meet_exchange_halves_and_finish() {
    let mut pair = Pair::new([config(ME, 0), config(PEER, 0)]);
    let effects = pair.meet(AT);
    for (node, effects) in pair.nodes.iter_mut().zip(effects) {
        assert_eq!(node.state(), NodeState::Drained);
        assert_eq!(node.mass(), Mass::ONE);
        assert_eq!(*node.ratio(), [4.0; 3]);
        assert_eq!(effects.iter().filter(|effect| **effect == Effect::Drained).count(), 1);
        assert_eq!(parcels(&effects).len(), 10);
    }
}

#[test]
fn word_that_the_neighbour_has_sent_its_last_parcel_does_not_end_the_rounds_early() {
    // Acknowledgements come back on a stream of their own and may arrive before the parcels sent earlier.
    let mut pair = Pair::new([config(ME, 0), config(PEER, 0)]);
    let mut inbox = VecDeque::from([
        (0, Input::Start),
        (1, Input::Start),
        (0, Input::LinkUp { peer: PEER }),
        (1, Input::LinkUp { peer: ME }),
    ]);
    let mut finished = [0, 0];
    let is_parcel = |input: &Input| matches!(input, Input::Received { message: Message::Parcel(_), .. });
    while !inbox.is_empty() {
        let next = inbox.iter().position(|(_, input)| !is_parcel(input)).unwrap_or(0);
        let (to, input) = inbox.remove(next).unwrap();
        let effects = pair.nodes[to].handle(AT, input);
        finished[to] += reports(&effects).iter().filter(|event| matches!(event, NodeEvent::RoundFinished(_))).count();
        let from = NodeId(to as u32);
        inbox.extend(messages(&effects).into_iter().map(|message| (1 - to, Input::Received { from, message })));
    }
    assert_eq!(finished, [10, 10]);
    assert_eq!(pair.nodes[0].mass(), pair.nodes[1].mass());
}

#[test]
fn a_parcel_is_applied_exactly_once_and_only_after_the_one_before_it() {
    let (mut node, _) = greeted(1);
    let applied = |node: &Node| node.ledger().incoming[&PEER].clone();
    node.handle(AT, from_peer(Message::Parcel(parcel_from_peer(2, 1, 5.0))));
    assert_eq!(applied(&node).received_seq, 0, "a gap waits");
    for _ in 0..3 {
        let effects = node.handle(AT, from_peer(Message::Parcel(parcel_from_peer(1, 0, 5.0))));
        assert_eq!(applied(&node).received_seq, 1);
        let acks = messages(&effects);
        assert!(matches!(&acks[..], [Message::Ack(ack)] if ack.link.received == 1), "{acks:?}");
    }
    assert_eq!(node.mass(), Mass::ONE, "a synchronous node absorbs when the step is over");
    node.handle(AT, Input::Trained { round: 0, delta: vec![0.0; 3], steps: 1, state: HostState::default() });
    assert_eq!(applied(&node).applied_total, u128::from(UNITS_PER_ONE / 2));
    assert_eq!(node.mass(), Mass::ONE);
}

#[test]
fn what_no_sound_neighbour_sends_is_ignored_and_named() {
    let forge = |change: &dyn Fn(&mut Parcel)| {
        let mut parcel = parcel_from_peer(1, 0, 5.0);
        change(&mut parcel);
        let (mut node, _) = greeted(1);
        let before = node.ledger();
        let effects = node.handle(AT, from_peer(Message::Parcel(parcel)));
        assert_eq!(node.ledger(), before);
        reports(&effects)
    };
    let ignored = |fault| [NodeEvent::Ignored { peer: PEER, fault }];
    assert_eq!(forge(&|p| p.header.mass = Mass::ZERO), ignored(InputFault::ImpossibleMass));
    assert_eq!(forge(&|p| p.header.mass = Mass::from_units(u64::MAX)), ignored(InputFault::ImpossibleMass));
    assert_eq!(forge(&|p| p.header.step = 10), ignored(InputFault::ImpossibleStep));
    assert_eq!(forge(&|p| p.header.seq = 0), ignored(InputFault::NoSuchLink));
    assert_eq!(forge(&|p| p.header.generation.plan_hash = [9; 32]), ignored(InputFault::OtherGeneration));
    assert_eq!(forge(&|p| p.payload = Payload::new(&[1.0; 4]).unwrap()), ignored(InputFault::WrongDimension));
    // A message for another life of either side is no fault, but it is not applied.
    assert_eq!(forge(&|p| p.header.sender_incarnation = 2), []);
    assert_eq!(forge(&|p| p.header.receiver_incarnation = 2), []);
    let (mut node, _) = greeted(1);
    let stranger = Input::Received {
        from: NodeId(9),
        message: Message::Collective(Envelope { task: [0; 32], attempt: 0, frame: Vec::new() }),
    };
    let expected = [NodeEvent::Ignored { peer: NodeId(9), fault: InputFault::NotANeighbour }];
    assert_eq!(reports(&node.handle(AT, stranger)), expected);
}

#[test]
fn an_acknowledgement_of_parcels_never_sent_is_refused() {
    let (mut node, _) = greeted(1);
    for (received, applied) in [(1, 0), (0, 1), (9, 9)] {
        let ack = Ack {
            generation: node.config().generation,
            identity: Incarnation { incarnation: 1, boot_nonce: 101 },
            seen: node.config().identity,
            link: LinkPositions { received, applied, next_seq: 1, ..LinkPositions::default() },
        };
        let effects = node.handle(AT, from_peer(Message::Ack(ack)));
        assert_eq!(reports(&effects), [NodeEvent::Ignored { peer: PEER, fault: InputFault::ImpossibleAck }]);
    }
}

#[test]
fn a_hello_that_does_not_fit_is_refused_once_with_the_difference() {
    type Change = fn(&mut Hello);
    let cases: [(Change, &str); 3] = [
        (|hello| hello.version = 99, "protocol version 99"),
        (|hello| hello.generation.plan_hash = [9; 32], "another plan"),
        (|hello| hello.task = TaskDigest { hash: [9; 32], description: "letters".into() }, "trains \"letters\""),
    ];
    for (change, words) in cases {
        let Message::Hello(mut hello) = hello_from_peer(1, 101) else { unreachable!() };
        change(&mut hello);
        let mut node = Node::new(config(ME, 0)).unwrap();
        node.handle(AT, Input::Start);
        node.handle(AT, Input::LinkUp { peer: PEER });
        let first = reports(&node.handle(AT, from_peer(Message::Hello(hello.clone()))));
        let [NodeEvent::Refused { peer: PEER, mismatch }] = &first[..] else { panic!("{first:?}") };
        assert!(mismatch.to_string().contains(words), "{mismatch}");
        assert_eq!(node.handle(AT, from_peer(Message::Hello(hello))), [], "once is enough");
        assert_eq!(node.missing_neighbours(), [PEER]);
    }
}

#[test]
fn a_late_neighbour_is_suspended_at_the_deadline_and_its_share_stays_home() {
    let (mut node, _) = greeted(1);
    node.handle(AT, Input::Trained { round: 0, delta: vec![0.0; 3], steps: 1, state: HostState::default() });
    assert_eq!(node.state(), NodeState::AwaitingParcels);
    let deadline = AT + Duration::from_secs(2);
    node.handle(AT + Duration::from_millis(1_999), Input::Tick);
    assert_eq!(node.state(), NodeState::AwaitingParcels);
    let effects = node.handle(deadline, Input::Tick);
    let late = NodeEvent::NeighbourSuspended { peer: PEER, reason: Suspension::Late };
    assert!(reports(&effects).contains(&late));
    assert_eq!(node.state(), NodeState::Training);
    let effects =
        node.handle(deadline, Input::Trained { round: 1, delta: vec![0.0; 3], steps: 1, state: HostState::default() });
    assert_eq!(parcels(&effects), []);
    // Its parcel comes at last: the mass is absorbed and it takes part again.
    let effects = node.handle(deadline, from_peer(Message::Parcel(parcel_from_peer(1, 0, 5.0))));
    assert!(reports(&effects).contains(&NodeEvent::NeighbourBack { peer: PEER }));
}

#[test]
fn time_that_runs_backwards_counts_as_standing_still() {
    let (mut node, _) = greeted(1);
    let before = node.next_deadline();
    node.handle(Time::default(), Input::Tick);
    assert_eq!(node.next_deadline(), before);
}

#[test]
fn a_configuration_that_makes_no_node_is_refused_with_the_reason() {
    let refused = |change: &dyn Fn(&mut NodeConfig)| {
        let mut config = config(ME, 1);
        change(&mut config);
        Node::new(config).map(|_| ()).unwrap_err()
    };
    assert_eq!(refused(&|c| c.id = NodeId(2)), NodeError::NotInPlan { id: NodeId(2), nodes: 2 });
    assert_eq!(refused(&|c| c.initial.clear()), NodeError::Dimension { dimension: 0 });
    assert!(matches!(refused(&|c| c.initial[1] = f32::NAN), NodeError::Initial { index: 1, .. }));
    assert_eq!(refused(&|c| c.identity.incarnation = 0), NodeError::Incarnation);
    assert_eq!(refused(&|c| c.heartbeat = Duration::ZERO), NodeError::ZeroInterval);
    assert_eq!(refused(&|c| c.task.description = "x".repeat(257)), NodeError::Description { bytes: 257 });
}

/// A node that exchanges parcels with two others, and waits a minute for missing neighbours at the start.
fn one_of_three() -> NodeConfig {
    let links = [ME, NodeId(1), NodeId(2)];
    let links = links.iter().flat_map(|from| links.iter().map(move |to| (*from, *to))).filter(|(from, to)| from != to);
    let step = Step { keep: vec![0.5; 3], links: links.map(|(from, to)| (from, to, 0.25)).collect() };
    let schedule = Arc::new(Schedule::new(3, &[step], 0).unwrap());
    let mut config = config(ME, 0);
    (config.schedule, config.gather_for) = (schedule, Some(Duration::from_secs(60)));
    config
}

#[test]
fn a_neighbour_whose_process_has_ended_before_it_came_is_not_waited_for() {
    let mut node = Node::new(one_of_three()).unwrap();
    node.handle(AT, Input::Start);
    assert_eq!(reports(&node.handle(AT, Input::Gone { peer: NodeId(2) })), [], "never alone");
    node.handle(AT, Input::LinkUp { peer: PEER });
    let effects = node.handle(AT, from_peer(hello_from_peer(1, 101)));
    assert!(reports(&effects).contains(&NodeEvent::Started { step: 0 }), "{effects:?}");

    let mut node = Node::new(one_of_three()).unwrap();
    node.handle(AT, Input::Start);
    node.handle(AT, Input::Gone { peer: NodeId(2) });
    node.handle(AT, Input::LinkUp { peer: NodeId(2) });
    node.handle(AT, Input::LinkUp { peer: PEER });
    assert_eq!(reports(&node.handle(AT, from_peer(hello_from_peer(1, 101)))), [], "it is back, and waited for");
}

#[test]
fn a_founder_begins_without_a_neighbour_that_does_not_come_in_time_but_never_alone() {
    let both = [NodeId(1), NodeId(2)];
    let config = one_of_three();
    let late = Time::from_millis(60_100);

    let mut alone = Node::new(config.clone()).unwrap();
    alone.handle(AT, Input::Start);
    assert_eq!(reports(&alone.handle(late, Input::Tick)), []);
    assert_eq!(alone.missing_neighbours(), both);

    let mut node = Node::new(config).unwrap();
    node.handle(AT, Input::Start);
    node.handle(AT, Input::LinkUp { peer: PEER });
    assert_eq!(reports(&node.handle(AT, from_peer(hello_from_peer(1, 101)))), []);
    assert_eq!(node.next_deadline().unwrap().micros(), AT.micros() + 5_000_000, "a heartbeat comes first");
    node.handle(Time::from_millis(59_000), from_peer(hello_from_peer(1, 101)));
    let effects = node.handle(late, Input::Tick);
    assert!(reports(&effects).contains(&NodeEvent::Started { step: 0 }), "{effects:?}");
    assert_eq!(parcels(&effects).len(), 1, "the share of the one that is not there stays home: {effects:?}");
}
