//! The cost of a parcel of 1,663,370 coordinates in `Node::handle`, from the message to the last effect, beside the
//! cost of copying as many bytes.
//!
//! - `absorb`: a parcel comes while another one is awaited.
//! - `split`: training is over, and half of the mass is put into a parcel. With records, a record of the state is made too.
//! - `round`: a parcel comes that ends one round and begins the next, with the ratio that training starts from.
//!
//! Each pass has to read and write the numerator and to read or write the parcel; a split with a record also writes the
//! copy of the numerator that goes to disk, and a round writes the ratio. The table gives the speed per byte so moved
//! in units of that of `copy_from_slice`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use mingle_bench::{ComparisonRow, Turns, print_head, time};
use mingle_protocol::record::HostState;
use mingle_protocol::{
    Ack, Chain, Codec, Durability, Effect, Evidence, Hello, Incarnation, Input, LinkPositions, Mac, Mass, Message,
    Node, NodeConfig, NodeId, NodeState, PROTOCOL_VERSION, Parcel, ParcelHeader, Payload, Schedule, SignedIdentity,
    Step, Time, WaitPolicy,
};

const DIMENSION: usize = 1_663_370;
const VECTOR_BYTES: usize = 4 * DIMENSION;
const ROUNDS: usize = 101;
const ME: NodeId = NodeId(0);
const RETURNER: NodeId = NodeId(1);
const GIVER: NodeId = NodeId(2);

/// A node that trains without any result, one neighbour that returns all it is sent, and one that sends a little.
struct Bench {
    node: Node,
    payload: Payload,
    sent: Option<Parcel>,
    /// The chains of the parcels that the neighbours sent.
    chains: [Chain; 2],
    rounds: u64,
}

impl Bench {
    fn new(codec: Codec, durability: Durability) -> Self {
        let links = vec![(ME, RETURNER, 0.5), (RETURNER, ME, 0.5), (RETURNER, GIVER, 0.25), (GIVER, ME, 0.5)];
        let schedule = Schedule::new(3, &[Step { keep: vec![0.5, 0.25, 0.5], links }], 1).expect("sound");
        let values: Vec<f32> = (0..DIMENSION).map(|i| (i as f32 * 0.1).sin()).collect();
        let mut config = NodeConfig::new(ME, Arc::new(schedule), values.clone(), 1 << 40);
        (config.codec, config.durability) = (codec.into(), durability);
        config.policy = WaitPolicy::Bounded { staleness: 0 };
        let node = Node::new(config).expect("sound");
        let payload = Payload::encoded(codec, &values, 0).expect("finite");
        let mut bench = Self { node, payload, sent: None, chains: [Chain::default(); 2], rounds: 0 };
        bench.take(Input::Start);
        for peer in [RETURNER, GIVER] {
            bench.take(Input::LinkUp { peer });
            let hello = bench.hello();
            bench.receive(peer, hello);
        }
        assert_eq!(bench.node.state(), NodeState::Training);
        bench
    }

    /// Lets the node handle an input, and returns how long that took; then carries out its effects.
    #[allow(clippy::disallowed_methods)] // What is banned in a node is what a benchmark is for.
    fn take(&mut self, input: Input) -> Duration {
        // A node goes through only so many steps at one time.
        let now = Time(self.rounds);
        let start = Instant::now();
        let effects = self.node.handle(now, black_box(input));
        let took = start.elapsed();
        for effect in effects {
            match effect {
                Effect::Send { message: Message::Parcel(parcel), .. } => self.sent = Some(parcel),
                Effect::Persist(record) => {
                    let number = record.books.number;
                    drop(record);
                    self.take(Input::Persisted { number });
                }
                _ => {}
            }
        }
        took
    }

    fn receive(&mut self, from: NodeId, message: Message) -> Duration {
        self.take(Input::Received { from, message })
    }

    fn identity() -> Incarnation {
        Incarnation { incarnation: 1, boot_nonce: 7 }
    }

    fn hello(&self) -> Message {
        let config = self.node.config();
        Message::Hello(Box::new(Hello {
            version: PROTOCOL_VERSION,
            generation: config.generation,
            task: config.task.clone(),
            identity: SignedIdentity::unsigned(Self::identity()),
            seen: Some(SignedIdentity::unsigned(config.identity)),
            resumed: false,
            link: LinkPositions { next_seq: 1, ..LinkPositions::default() },
            evidence: Evidence::default(),
        }))
    }

    /// Hands in a parcel of the present round.
    fn parcel(&mut self, from: NodeId, mass: Mass, payload: Payload) -> Duration {
        let chain = &mut self.chains[from.index() - 1];
        let header = ParcelHeader {
            generation: self.node.config().generation,
            sender_incarnation: 1,
            receiver_incarnation: 1,
            base: 0,
            acked: 0,
            seq: self.rounds,
            previous: *chain,
            chain: Chain([self.rounds as u8; 32]),
            step: self.rounds - 1,
            mass,
            mac: Mac::default(),
        };
        *chain = header.chain;
        self.receive(from, Message::Parcel(Parcel { header, payload }))
    }

    /// Hands in the neighbour's acknowledgement of a parcel that the node sent.
    fn acknowledge(&mut self, sent: &Parcel) {
        let ParcelHeader { seq, chain: applied_chain, .. } = sent.header;
        let link =
            LinkPositions { received: seq, applied: seq, applied_chain, next_seq: seq, ..LinkPositions::default() };
        let config = self.node.config();
        let (generation, seen) = (config.generation, config.identity);
        let ack = Ack { generation, identity: Self::identity(), seen, link };
        self.receive(RETURNER, Message::Ack(ack));
    }

    /// One round: the times of a parcel, a split, and a parcel that ends the round.
    fn round(&mut self) -> [Duration; 3] {
        self.rounds += 1;
        let split = self.take(Input::Trained {
            round: self.node.round(),
            delta: Vec::new(),
            steps: 0,
            state: HostState::default(),
        });
        let sent = self.sent.take().expect("a parcel leaves in every round");
        self.acknowledge(&sent);
        assert_eq!(self.node.state(), NodeState::AwaitingParcels);
        let absorb = self.parcel(RETURNER, sent.header.mass, sent.payload);
        assert_eq!(self.node.state(), NodeState::AwaitingParcels);
        let round = self.parcel(GIVER, Mass::from_units(1), self.payload.clone());
        assert_eq!(self.node.state(), NodeState::Training);
        [absorb, split, round]
    }
}

/// Every pass in turn with a copy, so that a busy machine disturbs both alike.
fn ratios(_: &mut Criterion) {
    let (source, mut target) = (vec![1_u8; VECTOR_BYTES], vec![2; VECTOR_BYTES]);
    print_head("handler, bytes moved");
    for (durability, records) in [(Durability::Off, ""), (Durability::On, ", with a record")] {
        for codec in Codec::ALL {
            let mut bench = Bench::new(codec, durability);
            let mut turns = [const { Turns::empty() }; 3];
            for _ in 0..ROUNDS {
                let copied = time(&mut || black_box(&mut target).copy_from_slice(black_box(&source)));
                bench.round().into_iter().zip(&mut turns).for_each(|(took, turns)| turns.push(took, copied));
            }
            let pass = 2 * VECTOR_BYTES + codec.encoded_len(DIMENSION);
            let record = if durability == Durability::On { VECTOR_BYTES } else { 0 };
            let passes = [("absorb", pass), ("split", pass + record), ("round", pass + VECTOR_BYTES)];
            for ((name, moved), turns) in passes.into_iter().zip(turns) {
                let what = format!("{name} {codec}, in the node{records}");
                ComparisonRow::of_bytes("mixing", what, "copy_from_slice", &turns, (moved, 2 * VECTOR_BYTES)).print();
            }
        }
    }
}

fn handler(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("handler");
    group.sample_size(20);
    for codec in Codec::ALL {
        let mut bench = Bench::new(codec, Durability::Off);
        for (name, pass) in [("absorb", 0), ("split", 1), ("round", 2)] {
            group.bench_function(format!("{name} {codec}"), |b| {
                b.iter_custom(|rounds| (0..rounds).map(|_| bench.round()[pass]).sum());
            });
        }
    }
    group.finish();
}

criterion_group!(benches, ratios, handler);
criterion_main!(benches);
