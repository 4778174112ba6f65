//! Allocations of a node: in steady state no vector at all, and nothing that any stream of messages can make grow.
#![allow(clippy::unwrap_used)]

use std::alloc::System;
use std::collections::VecDeque;
use std::sync::Arc;

use mingle_protocol::record::HostState;
use mingle_protocol::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NODES: u32 = 3;
const NOW: Time = Time::from_millis(10);

/// Every node sends a quarter to every other.
fn complete_plan() -> Arc<Schedule> {
    let pairs = (0..NODES).flat_map(|a| (0..NODES).map(move |b| (a, b))).filter(|(a, b)| a != b);
    let links = pairs.map(|(a, b)| (NodeId(a), NodeId(b), 0.25)).collect();
    Arc::new(Schedule::new(NODES as usize, &[Step { keep: vec![0.5; NODES as usize], links }], 1).unwrap())
}

fn config(id: NodeId, dimension: usize, codec: Codec, durability: Durability) -> NodeConfig {
    let initial = (0..dimension).map(|i| (i as f32 + id.0 as f32).sin()).collect();
    let mut config = NodeConfig::new(id, complete_plan(), initial, 1 << 40);
    config.identity = Incarnation { incarnation: 1, boot_nonce: u64::from(id.0) };
    config.generation.counter = 5;
    (config.codec, config.durability) = (codec.into(), durability);
    config
}

/// A swarm without delay whose host trains and writes at once, and keeps nothing.
struct Swarm {
    nodes: Vec<Node>,
    inputs: VecDeque<(NodeId, Input)>,
    /// Spare deltas, so that the host allocates none.
    deltas: Vec<Vec<f32>>,
}

impl Swarm {
    fn new(dimension: usize, codec: Codec, durability: Durability) -> Self {
        let ids = || (0..NODES).map(NodeId);
        let nodes = ids().map(|id| Node::new(config(id, dimension, codec, durability)).unwrap()).collect();
        let mut inputs: VecDeque<_> = ids().map(|id| (id, Input::Start)).collect();
        let pairs = ids().flat_map(|a| ids().map(move |b| (a, b))).filter(|(a, b)| a != b);
        inputs.extend(pairs.map(|(a, peer)| (a, Input::LinkUp { peer })));
        Self { nodes, inputs, deltas: Vec::new() }
    }

    fn run_until_round(&mut self, round: u64) {
        while self.nodes.iter().any(|node| node.round() < round) {
            let (id, input) = self.inputs.pop_front().unwrap();
            let node = &mut self.nodes[id.index()];
            let dimension = node.dimension();
            for effect in node.handle(NOW, input) {
                match effect {
                    Effect::Send { to, message } => {
                        self.inputs.push_back((to, Input::Received { from: id, message }));
                    }
                    Effect::Train { round, .. } => {
                        let delta = self.deltas.pop().unwrap_or_else(|| vec![1e-3; dimension]);
                        self.inputs
                            .push_back((id, Input::Trained { round, delta, steps: 1, state: HostState::default() }));
                    }
                    Effect::Persist(record) => {
                        let number = record.books.number;
                        self.inputs.push_back((id, Input::Persisted { number }));
                    }
                    Effect::Reserve(_) | Effect::Renew { .. } | Effect::Report(_) | Effect::Drained => {}
                }
            }
        }
    }
}

/// The allocations of twenty rounds of a swarm once its pools are filled.
fn steady_rounds(dimension: usize, codec: Codec, durability: Durability) -> Stats {
    const WARM_UP: u64 = 30;
    const ROUNDS: u64 = 20;
    let mut swarm = Swarm::new(dimension, codec, durability);
    swarm.run_until_round(WARM_UP);
    // The training is the host's: its vectors are made beforehand.
    swarm.deltas = (0..(ROUNDS + 4) * u64::from(NODES)).map(|_| vec![1e-3; dimension]).collect();
    let region = Region::new(MEMORY);
    swarm.run_until_round(WARM_UP + ROUNDS);
    region.change()
}

fn steady_rounds_allocate_the_same_whatever_the_dimension() {
    // The meter counts the whole process, and the thread of the test harness allocates when a test has just begun.
    steady_rounds(1 << 18, Codec::F32, Durability::Off);
    for (codec, durability) in Codec::ALL.into_iter().flat_map(|c| [(c, Durability::Off), (c, Durability::On)]) {
        let [small, large] = [64, 1 << 18].map(|dimension| steady_rounds(dimension, codec, durability));
        let (bytes, count) = (large.bytes_allocated, large.allocations);
        println!("{codec}, records {durability:?}: {} bytes in {} allocations a round", bytes / 60, count / 60);
        assert_eq!((bytes, count), (small.bytes_allocated, small.allocations), "{codec}, records {durability:?}");
        assert_eq!(large.bytes_reallocated, small.bytes_reallocated, "{codec}, records {durability:?}");
        // The meter works: all allocations for lists and messages are counted.
        assert!(count > 60);
    }
}

const ME: NodeId = NodeId(0);
const PEER: NodeId = NodeId(1);
const SMALL: usize = 64;

fn identity_of(id: NodeId) -> Incarnation {
    Incarnation { incarnation: 1, boot_nonce: u64::from(id.0) }
}

fn hello_from(id: NodeId) -> Hello {
    let config = config(id, SMALL, Codec::F32, Durability::Off);
    Hello {
        version: PROTOCOL_VERSION,
        generation: config.generation,
        task: config.task,
        identity: SignedIdentity::unsigned(config.identity),
        seen: Some(SignedIdentity::unsigned(identity_of(ME))),
        resumed: false,
        link: LinkPositions { next_seq: 1, ..LinkPositions::default() },
        evidence: Evidence::default(),
    }
}

fn parcel_from_peer(seq: u64, dimension: usize) -> Parcel {
    let header = ParcelHeader {
        generation: hello_from(PEER).generation,
        sender_incarnation: 1,
        receiver_incarnation: 1,
        base: 0,
        acked: 0,
        seq,
        previous: Chain::default(),
        chain: Chain([9; 32]),
        step: 0,
        mass: Mass::from_units(UNITS_PER_ONE / 4),
        mac: Mac::default(),
    };
    Parcel { header, payload: Payload::new(&vec![1.0; dimension]).unwrap() }
}

/// A node that trains, has greeted its neighbours and has received one parcel.
fn node_under_attack(durability: Durability) -> Node {
    let mut node = Node::new(config(ME, SMALL, Codec::F32, durability)).unwrap();
    node.handle(NOW, Input::Start);
    for peer in (1..NODES).map(NodeId) {
        node.handle(NOW, Input::LinkUp { peer });
        node.handle(NOW, Input::Received { from: peer, message: Message::Hello(Box::new(hello_from(peer))) });
    }
    node.handle(NOW, Input::Received { from: PEER, message: Message::Parcel(parcel_from_peer(1, SMALL)) });
    // The parcel waits for the end of its step.
    assert_eq!((node.state(), node.w()), (NodeState::Training, 1.0));
    node
}

/// A message that is not to be taken, its sender, and the fault.
fn hostile(rng: &mut ChaCha8Rng) -> (NodeId, Message, InputFault) {
    let number = (rng.random::<u64>() >> rng.random_range(0..62)).max(2);
    let stranger = NodeId(rng.random_range(NODES..u32::MAX));
    let mut parcel = parcel_from_peer(2, SMALL);
    parcel.header.step = 1;
    (parcel.header.previous, parcel.header.acked) = (Chain([1; 32]), 0);
    let mut hello = hello_from(PEER);
    let mut fault = match rng.random_range(0..15) {
        0 => {
            parcel.header.seq = number.max(3);
            InputFault::OutOfOrder
        }
        1 => {
            parcel = parcel_from_peer(1, SMALL);
            InputFault::Repeated
        }
        2 => InputFault::Forked,
        3 => {
            parcel.header.generation = Generation { counter: 5 + number, plan_hash: [9; 32] };
            InputFault::NewerGeneration
        }
        4 => {
            parcel.header.generation = Generation { counter: number % 5, plan_hash: [9; 32] };
            InputFault::OlderGeneration
        }
        5 => {
            parcel.payload = Payload::new(&vec![1.0; rng.random_range(0..4 * SMALL)]).unwrap();
            if parcel.payload.dimension() == SMALL { InputFault::Forked } else { InputFault::WrongDimension }
        }
        6 => {
            parcel.header.mass = [Mass::ZERO, Mass::from_units(u64::MAX)][usize::from(rng.random::<bool>())];
            InputFault::ImpossibleMass
        }
        7 => {
            parcel.header.step = u64::MAX - number % 100;
            InputFault::ImpossibleStep
        }
        8 => {
            parcel.header.base = number.max(2);
            InputFault::NoSuchLink
        }
        9 => {
            parcel.header.sender_incarnation = number;
            InputFault::OtherLife
        }
        10 => {
            hello.task = TaskDigest { hash: [7; 32], description: format!("{number}") };
            InputFault::UnfitHello
        }
        11 => {
            hello.version = (number as u16).saturating_add(PROTOCOL_VERSION) | 0x100;
            InputFault::UnfitHello
        }
        12 => {
            hello.identity.identity.boot_nonce = number;
            // Without records it is another process that claims to be this one.
            InputFault::UnfitHello
        }
        13 => {
            let ack = Ack {
                generation: hello.generation,
                identity: Incarnation { incarnation: 1, boot_nonce: number },
                seen: identity_of(ME),
                link: LinkPositions { received: number, applied: number, ..LinkPositions::default() },
            };
            return (PEER, Message::Ack(ack), InputFault::OtherLife);
        }
        _ => {
            return (
                stranger,
                Message::Collective(Envelope { task: [0; 32], attempt: 0, frame: Vec::new() }),
                InputFault::NotANeighbour,
            );
        }
    };
    let message =
        if fault == InputFault::UnfitHello { Message::Hello(Box::new(hello)) } else { Message::Parcel(parcel) };
    let is_known = rng.random_bool(0.8) || matches!(fault, InputFault::NewerGeneration | InputFault::OlderGeneration);
    let from = if is_known { PEER } else { stranger };
    if !is_known {
        fault = InputFault::NotANeighbour;
    }
    (from, message, fault)
}

fn live_bytes() -> isize {
    let stats = MEMORY.stats();
    stats.bytes_allocated as isize - stats.bytes_deallocated as isize
}

fn no_stream_of_messages_makes_a_node_grow_or_changes_what_it_holds(durability: Durability) {
    const MESSAGES: u64 = 20_000;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut node = node_under_attack(durability);
    let (books, numerator) = (node.ledger(), node.numerator().to_vec());
    let mut expected = std::collections::BTreeMap::<InputFault, u64>::new();
    let mut after_a_while = 0;
    for number in 0..MESSAGES {
        let (from, message, fault) = hostile(&mut rng);
        *expected.entry(fault).or_default() += 1;
        node.handle(Time::from_millis(10 + number), Input::Received { from, message });
        if number == MESSAGES / 10 {
            after_a_while = live_bytes();
        }
        if number % 100 == 0 {
            assert_eq!((node.ledger(), node.numerator()), (books.clone(), &numerator[..]), "message {number}");
        }
    }
    assert!(live_bytes() - after_a_while < 4 * 1024, "{} bytes more", live_bytes() - after_a_while);
    assert_eq!((node.ledger(), node.numerator(), node.state()), (books, &numerator[..], NodeState::Training));
    assert_eq!(node.neighbours().collect::<Vec<_>>(), [PEER, NodeId(2)]);
    assert!(node.refusals().eq(expected.clone()), "{:?} should be {expected:?}", node.refusals().collect::<Vec<_>>());
}

/// Sends statements of a neighbour that are sound but for the generations it claims to be in.
fn no_claim_of_newer_generations_makes_a_node_grow() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut node = node_under_attack(Durability::Off);
    let (books, ours) = (node.ledger(), node.config().generation);
    let mut after_a_while = 0;
    for number in 0..20_000 {
        let link = LinkPositions { next_seq: 2, ..LinkPositions::default() };
        let counter = ours.counter + rng.random_range(1..1 << 60);
        let generation = Generation { counter, plan_hash: rng.random() };
        let ack = Ack { generation, identity: identity_of(PEER), seen: identity_of(ME), link };
        let effects = node.handle(NOW, Input::Received { from: PEER, message: Message::Ack(ack) });
        assert_eq!(effects, [Effect::Report(NodeEvent::NewerPlan { peer: PEER, generation })]);
        if number == 2_000 {
            after_a_while = live_bytes();
        }
    }
    assert!(live_bytes() - after_a_while < 1024, "{} bytes more", live_bytes() - after_a_while);
    assert_eq!((node.ledger(), node.config().generation), (books, ours));
}

/// One test, since every thread of the process counts.
#[test]
fn a_node_allocates_no_vector_in_steady_state_and_no_stream_of_messages_makes_it_grow() {
    steady_rounds_allocate_the_same_whatever_the_dimension();
    for durability in [Durability::Off, Durability::On] {
        no_stream_of_messages_makes_a_node_grow_or_changes_what_it_holds(durability);
    }
    no_claim_of_newer_generations_makes_a_node_grow();
}
