//! One or two nodes, driven by hand: what each input leads to, rule by rule.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

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
    config.identity = Identity { incarnation: 1, boot_nonce: u64::from(id.0) + 100 };
    config.task = TaskCard { hash: [3; 32], description: "digits".into() };
    config
}

fn reports(effects: &[Effect]) -> Vec<Event> {
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

    /// Gives one node an input, then lets both talk until nobody has anything to say. Returns all effects of each.
    fn settle(&mut self, now: Time, to: usize, input: Input) -> [Vec<Effect>; 2] {
        let mut all = [Vec::new(), Vec::new()];
        let mut inbox = VecDeque::from([(to, input)]);
        while let Some((to, input)) = inbox.pop_front() {
            let effects = self.nodes[to].handle(now, input);
            for message in messages(&effects) {
                inbox.push_back((1 - to, Input::Received { from: NodeId(to as u32), message }));
            }
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

/// A node whose neighbour has greeted it and waits: the Hello it would get from the real one.
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
        plan_version: 0,
        task: config.task,
        identity: Identity { incarnation, boot_nonce },
        seen: Some(self::config(ME, 0).identity),
        resumed: false,
        link: LinkState { next_seq: 1, ..LinkState::default() },
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
        },
        payload: Payload::new(&[value; 3]).unwrap(),
    }
}

#[test]
fn two_nodes_meet_exchange_halves_and_finish() {
    let mut pair = Pair::new([config(ME, 0), config(PEER, 0)]);
    let effects = pair.meet(AT);
    for (node, effects) in pair.nodes.iter_mut().zip(effects) {
        assert_eq!(node.state(), State::Drained);
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
        finished[to] += reports(&effects).iter().filter(|event| matches!(event, Event::RoundFinished(_))).count();
        let from = NodeId(to as u32);
        inbox.extend(messages(&effects).into_iter().map(|message| (1 - to, Input::Received { from, message })));
    }
    assert_eq!(finished, [10, 10]);
    assert_eq!(pair.nodes[0].mass(), pair.nodes[1].mass());
}

#[test]
fn training_is_asked_for_once_a_round_and_guarded_by_the_weight() {
    let (mut node, effects) = greeted(2);
    let train = effects.iter().find(|effect| matches!(effect, Effect::Train { .. }));
    assert_eq!(train, Some(&Effect::Train { round: 0, from: vec![0.0; 3].into(), local_steps: 2, time_box: None }));
    assert_eq!(node.state(), State::Training);
    // With w = w* the whole step is taken.
    let effects = node.handle(AT, Input::Trained { round: 0, delta: vec![2.0; 3], steps: 2 });
    assert_eq!(*node.ratio(), [2.0; 3]);
    let sent = parcels(&effects);
    assert_eq!(sent.len(), 1);
    assert_eq!((&*sent[0].payload.values(), sent[0].header.mass.to_f64()), ([2.0; 3].as_slice(), 0.5));
    // The neighbour passes without a parcel, so half of the weight is under way when the next step comes.
    let ack = Ack {
        generation: node.config().generation,
        plan_version: 0,
        identity: Identity { incarnation: 1, boot_nonce: 101 },
        seen: node.config().identity,
        link: LinkState { next_seq: 1, passed: 1, ..LinkState::default() },
    };
    node.handle(AT, from_peer(Message::Ack(ack)));
    assert_eq!((node.round(), node.w()), (1, 0.5));
    node.handle(AT, Input::Trained { round: 1, delta: vec![1.0; 3], steps: 2 });
    // x = 0.5 * 2 + min(1, 0.5 / 1) * 1 = 1.5, so z = 3: the step of z is delta / w*, never delta / w.
    assert_eq!(*node.ratio(), [3.0; 3]);
}

#[test]
fn training_that_was_not_asked_for_is_ignored() {
    let (mut node, _) = greeted(1);
    let before = node.ratio();
    let effects = node.handle(AT, Input::Trained { round: 5, delta: vec![1.0; 3], steps: 1 });
    let ignored = Event::Ignored { peer: ME, fault: Fault::UnexpectedTraining };
    assert_eq!(reports(&effects), [ignored]);
    assert_eq!(node.ratio(), before);
    assert_eq!(node.state(), State::Training);
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
    node.handle(AT, Input::Trained { round: 0, delta: vec![0.0; 3], steps: 1 });
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
    let ignored = |fault| [Event::Ignored { peer: PEER, fault }];
    assert_eq!(forge(&|p| p.header.mass = Mass::ZERO), ignored(Fault::ImpossibleMass));
    assert_eq!(forge(&|p| p.header.mass = Mass::from_units(u64::MAX)), ignored(Fault::ImpossibleMass));
    // More than is left in the whole swarm of two, of which this node holds one.
    assert_eq!(forge(&|p| p.header.mass = Mass::from_units(UNITS_PER_ONE + 1)), ignored(Fault::ImpossibleMass));
    assert_eq!(forge(&|p| p.header.step = 10), ignored(Fault::ImpossibleStep));
    assert_eq!(forge(&|p| p.header.seq = 0), ignored(Fault::NoSuchLink));
    assert_eq!(forge(&|p| p.header.generation.plan_hash = [9; 32]), ignored(Fault::OtherGeneration));
    assert_eq!(forge(&|p| p.payload = Payload::new(&[1.0; 4]).unwrap()), ignored(Fault::WrongDimension));
    // Another life on either side is no fault, but it is not taken.
    assert_eq!(forge(&|p| p.header.sender_incarnation = 2), []);
    assert_eq!(forge(&|p| p.header.receiver_incarnation = 2), []);
    let (mut node, _) = greeted(1);
    let stranger = Input::Received {
        from: NodeId(9),
        message: Message::Collective(Envelope { task: [0; 32], attempt: 0, frame: Vec::new() }),
    };
    let expected = [Event::Ignored { peer: NodeId(9), fault: Fault::NotANeighbour }];
    assert_eq!(reports(&node.handle(AT, stranger)), expected);
}

#[test]
fn an_acknowledgement_of_parcels_never_sent_is_refused() {
    let (mut node, _) = greeted(1);
    for (received, applied) in [(1, 0), (0, 1), (9, 9)] {
        let ack = Ack {
            generation: node.config().generation,
            plan_version: 0,
            identity: Identity { incarnation: 1, boot_nonce: 101 },
            seen: node.config().identity,
            link: LinkState { received, applied, next_seq: 1, ..LinkState::default() },
        };
        let effects = node.handle(AT, from_peer(Message::Ack(ack)));
        assert_eq!(reports(&effects), [Event::Ignored { peer: PEER, fault: Fault::ImpossibleAck }]);
    }
}

#[test]
fn a_hello_that_does_not_fit_is_refused_once_with_the_difference() {
    type Change = fn(&mut Hello);
    let cases: [(Change, &str); 3] = [
        (|hello| hello.version = 9, "protocol version 9"),
        (|hello| hello.generation.plan_hash = [9; 32], "another plan"),
        (|hello| hello.task = TaskCard { hash: [9; 32], description: "letters".into() }, "trains \"letters\""),
    ];
    for (change, words) in cases {
        let Message::Hello(mut hello) = hello_from_peer(1, 101) else { unreachable!() };
        change(&mut hello);
        let mut node = Node::new(config(ME, 0)).unwrap();
        node.handle(AT, Input::Start);
        node.handle(AT, Input::LinkUp { peer: PEER });
        let first = reports(&node.handle(AT, from_peer(Message::Hello(hello.clone()))));
        let [Event::Refused { peer: PEER, mismatch }] = &first[..] else { panic!("{first:?}") };
        assert!(mismatch.to_string().contains(words), "{mismatch}");
        assert_eq!(node.handle(AT, from_peer(Message::Hello(hello))), [], "once is enough");
        assert_eq!(node.missing_neighbours(), [PEER]);
    }
}

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

#[test]
fn a_second_process_with_the_same_incarnation_is_refused_once_mass_has_moved() {
    let (mut node, _) = greeted(1);
    node.handle(AT, from_peer(Message::Parcel(parcel_from_peer(1, 0, 5.0))));
    let effects = node.handle(AT, from_peer(hello_from_peer(1, 999)));
    let mismatch = Mismatch::IdentityInUse { incarnation: 1 };
    assert_eq!(reports(&effects), [Event::Refused { peer: PEER, mismatch }]);
}

#[test]
fn a_neighbour_that_restarts_before_it_took_anything_gets_the_same_parcels_again() {
    let (mut node, effects) = greeted(0);
    let first = parcels(&effects);
    assert_eq!(first.len(), 1);
    let effects = node.handle(AT, from_peer(hello_from_peer(1, 999)));
    assert_eq!(parcels(&effects), first);
}

#[test]
fn parcels_an_earlier_life_may_have_applied_are_written_off_and_never_sent_again() {
    let (mut node, effects) = greeted(0);
    let mass = parcels(&effects)[0].header.mass;
    let effects = node.handle(AT, from_peer(hello_from_peer(2, 999)));
    assert_eq!(parcels(&effects).len(), 0);
    let expected =
        [Event::NewIncarnation { peer: PEER, incarnation: 2 }, Event::MassWrittenOff { peer: PEER, mass, parcels: 1 }];
    assert_eq!(reports(&effects), expected);
    let books = &node.ledger().outgoing[&PEER];
    assert_eq!((books.written_off, books.outbox.len()), (u128::from(mass.units()), 0));
    assert!(audit(&[(ME, node.ledger())], 2).is_exact());
    // The old life is over for good.
    let effects = node.handle(AT, from_peer(hello_from_peer(1, 101)));
    let mismatch = Mismatch::Outdated { incarnation: 1, known: 2 };
    assert_eq!(reports(&effects), [Event::Refused { peer: PEER, mismatch }]);
}

#[test]
fn a_late_neighbour_is_suspended_at_the_deadline_and_its_share_stays_home() {
    let (mut node, _) = greeted(1);
    node.handle(AT, Input::Trained { round: 0, delta: vec![0.0; 3], steps: 1 });
    assert_eq!(node.state(), State::AwaitingParcels);
    let deadline = AT + Duration::from_secs(2);
    node.handle(AT + Duration::from_millis(1_999), Input::Tick);
    assert_eq!(node.state(), State::AwaitingParcels);
    let effects = node.handle(deadline, Input::Tick);
    let late = Event::NeighbourSuspended { peer: PEER, reason: Suspension::Late };
    assert!(reports(&effects).contains(&late));
    assert_eq!(node.state(), State::Training);
    let effects = node.handle(deadline, Input::Trained { round: 1, delta: vec![0.0; 3], steps: 1 });
    assert_eq!(parcels(&effects), []);
    // Its parcel comes at last: the mass is absorbed and it takes part again.
    let effects = node.handle(deadline, from_peer(Message::Parcel(parcel_from_peer(1, 0, 5.0))));
    assert!(reports(&effects).contains(&Event::NeighbourBack { peer: PEER }));
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

#[test]
fn a_founder_begins_without_a_neighbour_that_does_not_come_in_time_but_never_alone() {
    let both = [NodeId(1), NodeId(2)];
    let links = [ME, NodeId(1), NodeId(2)];
    let links = links.iter().flat_map(|from| links.iter().map(move |to| (*from, *to))).filter(|(from, to)| from != to);
    let step = Step { keep: vec![0.5; 3], links: links.map(|(from, to)| (from, to, 0.25)).collect() };
    let schedule = Arc::new(Schedule::new(3, &[step], 0).unwrap());
    let mut config = config(ME, 0);
    (config.schedule, config.gather_for) = (schedule, Some(Duration::from_secs(60)));
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
    assert!(reports(&effects).contains(&Event::Started { step: 0 }), "{effects:?}");
    assert_eq!(parcels(&effects).len(), 1, "the share of the one that is not there stays home: {effects:?}");
}

/// The Hello of the process with this number of a neighbour that has records.
fn hello_from_resumed(boot_nonce: u64) -> Message {
    let Message::Hello(mut hello) = hello_from_peer(1, boot_nonce) else { unreachable!() };
    hello.resumed = true;
    hello.link.next_seq = 2;
    Message::Hello(hello)
}

#[test]
fn a_process_that_is_gone_is_not_kept_alive_by_parcels_that_the_next_one_sends_again() {
    let mut config = config(ME, 0);
    config.durability = Durability::On;
    let mut node = Node::new(config).unwrap();
    let mut handle = |at: Time, input: Input| {
        let mut all = Vec::new();
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let effects = node.handle(at, input);
            for effect in &effects {
                if let Effect::Persist(record) = effect {
                    inputs.push_back(Input::Persisted { number: record.books.number });
                }
            }
            all.extend(effects);
        }
        all
    };
    handle(AT, Input::Start);
    handle(AT, Input::LinkUp { peer: PEER });
    handle(AT, from_peer(hello_from_resumed(101)));
    handle(AT, from_peer(Message::Parcel(parcel_from_peer(1, 0, 8.0))));

    // The next process: its greeting comes too early, and meanwhile it sends again what the last one had sent.
    let other = Event::Refused { peer: PEER, mismatch: Mismatch::IdentityInUse { incarnation: 1 } };
    let second = |seconds: u64| Time::from_millis(seconds * 1000);
    let effects = handle(second(2), from_peer(hello_from_resumed(102)));
    assert!(reports(&effects).contains(&other), "{effects:?}");
    for seconds in 3..11 {
        handle(second(seconds), from_peer(Message::Parcel(parcel_from_peer(1, 0, 8.0))));
    }
    let answers = messages(&handle(second(11), from_peer(hello_from_resumed(102))));
    let seen = answers.iter().find_map(|message| if let Message::Hello(hello) = message { hello.seen } else { None });
    assert_eq!(seen, Some(Identity { incarnation: 1, boot_nonce: 102 }), "{answers:?}");
}

fn renewals(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Renew { peer: PEER })).count()
}

#[test]
fn parcels_that_no_greeting_makes_acceptable_lead_to_new_streams_and_ever_more_seldom() {
    let (mut node, _) = greeted(0);
    let mut parcel = parcel_from_peer(1, 0, 1.0);
    parcel.header.sender_incarnation = 2;
    let mut refuse = |now: Time| {
        let effects = node.handle(now, from_peer(Message::Parcel(parcel.clone())));
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Report(Event::ParcelRefused { .. }))));
        renewals(&effects)
    };
    assert_eq!((0..15).map(|_| refuse(AT)).sum::<usize>(), 0, "restarts and broken streams cause a few");
    assert_eq!(refuse(AT), 1);
    assert_eq!((0..1_000).map(|_| refuse(AT)).sum::<usize>(), 0, "at most one in a heartbeat");
    let hour = (0..3_600).map(|second| refuse(AT + Duration::from_secs(second))).sum::<usize>();
    assert!((8..=18).contains(&hour), "{hour} times");
}

#[test]
fn a_neighbour_that_greets_again_and_again_does_not_hear_the_answers_and_gets_new_streams() {
    let (mut node, _) = greeted(0);
    let hello = || from_peer(hello_from_peer(1, 101));
    let greet = |node: &mut Node| renewals(&node.handle(AT, hello()));
    assert_eq!((0..16).map(|_| greet(&mut node)).sum::<usize>(), 1);
    // On new streams it begins anew.
    node.handle(AT, Input::LinkDown { peer: PEER });
    node.handle(AT, Input::LinkUp { peer: PEER });
    assert_eq!((0..15).map(|_| greet(&mut node)).sum::<usize>(), 0);
}

#[test]
fn a_neighbour_is_believed_once_that_this_node_is_set_back_and_never_beyond_reason() {
    let mut config = config(ME, 0);
    config.durability = Durability::On;
    let mut node = Node::new(config).unwrap();
    node.handle(AT, Input::Start);
    node.handle(AT, Input::LinkUp { peer: PEER });
    node.handle(AT, from_peer(hello_from_peer(1, 101)));
    let mut say = |incarnation: u64| {
        let me = node.config().identity;
        let generation = node.config().generation;
        let ack = Ack {
            generation,
            plan_version: 0,
            identity: Identity { incarnation: 1, boot_nonce: 101 },
            seen: Identity { incarnation, ..me },
            link: LinkState { next_seq: 1, ..LinkState::default() },
        };
        let effects = node.handle(AT, from_peer(Message::Ack(ack)));
        let records = effects.iter().filter(|effect| matches!(effect, Effect::Persist(_))).count();
        (reports(&effects), records)
    };
    let ignored = |fault| vec![Event::Ignored { peer: PEER, fault }];
    assert_eq!(say(u64::MAX), (ignored(Fault::ImpossibleLife), 0));
    let (told, records) = say(1_000);
    assert!(matches!(told[..], [Event::SetBack { incarnation: 1_001, .. }]) && records == 1, "{told:?}");
    // Its process has greeted again by then; without that nothing of it counts at all.
    for k in 2..64 {
        let (told, records) = say(1_000 * k);
        assert!(
            told.iter().all(|event| *event == Event::Ignored { peer: PEER, fault: Fault::RepeatedSetBack }),
            "{told:?}"
        );
        assert_eq!(records, 0);
    }
}
