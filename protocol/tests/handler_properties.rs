//! Handlers under any order of inputs: no input panics, and no input but an accepted parcel brings mass in.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use mingle_protocol::record::HostState;
use mingle_protocol::*;
use proptest::prelude::*;

const NODES: u32 = 3;
const ME: NodeId = NodeId(0);
const DIMENSION: usize = 3;

/// A ring there and back whose shares depend on the generation.
fn plan(counter: u64) -> Arc<Schedule> {
    let share = if counter.is_multiple_of(2) { 0.25 } else { 0.125 };
    let links = (0..NODES).flat_map(|a| [1, 2].map(|by| (NodeId(a), NodeId((a + by) % NODES), share))).collect();
    let step = Step { keep: vec![1.0 - 2.0 * share; NODES as usize], links };
    Arc::new(Schedule::new(NODES as usize, &[step], 1).unwrap())
}

fn config(id: NodeId, durability: Durability, policy: WaitPolicy) -> NodeConfig {
    let mut config = NodeConfig::new(id, plan(0), vec![id.0 as f32; DIMENSION], 12);
    config.identity = Incarnation { incarnation: 1, boot_nonce: u64::from(id.0) };
    (config.durability, config.policy) = (durability, policy);
    config
}

/// The messages that the first node receives in a whole run, in order.
fn messages_of_a_run(durability: Durability, policy: WaitPolicy) -> Vec<(NodeId, Message)> {
    let ids = || (0..NODES).map(NodeId);
    let mut nodes: Vec<Node> = ids().map(|id| Node::new(config(id, durability, policy)).unwrap()).collect();
    let mut inputs: std::collections::VecDeque<_> = ids().map(|id| (id, Input::Start)).collect();
    inputs.extend(
        ids()
            .flat_map(|a| ids().map(move |peer| (a, Input::LinkUp { peer })))
            .filter(|(a, input)| !matches!(input, Input::LinkUp { peer } if peer == a)),
    );
    let mut said = Vec::new();
    while let Some((id, input)) = inputs.pop_front() {
        if let (ME, Input::Received { from, message }) = (id, &input) {
            said.push((*from, message.clone()));
        }
        for effect in nodes[id.index()].handle(Time::from_millis(10), input) {
            match effect {
                Effect::Send { to, message } => inputs.push_back((to, Input::Received { from: id, message })),
                Effect::Train { round, .. } => {
                    inputs.push_back((
                        id,
                        Input::Trained { round, delta: vec![1.0; DIMENSION], steps: 1, state: HostState::default() },
                    ));
                }
                Effect::Persist(record) => inputs.push_back((id, Input::Persisted { number: record.books.number })),
                Effect::Reserve(_) | Effect::Renew { .. } | Effect::Report(_) | Effect::Drained => {}
            }
        }
    }
    said
}

#[derive(Clone, Debug)]
enum Happening {
    Start,
    LinkUp(u32),
    LinkDown(u32),
    /// A message of the run, changed in one place for some values of `change`.
    Message {
        which: prop::sample::Index,
        change: u8,
        number: u64,
    },
    Trained {
        is_expected: bool,
        value: f32,
        steps: u32,
    },
    Persisted {
        is_expected: bool,
    },
    Tick {
        after_ms: u64,
    },
    Enter {
        counter: u64,
    },
    Stop,
    Leave,
}

fn happening() -> impl Strategy<Value = Happening> {
    let value = prop_oneof![4 => -2.0_f32..2.0, 1 => Just(f32::NAN), 1 => Just(1e38)];
    let number = prop_oneof![0_u64..6, any::<u64>()];
    let message = (any::<prop::sample::Index>(), 0_u8..40, number);
    prop_oneof![
        2 => Just(Happening::Start),
        4 => (0..NODES + 1).prop_map(Happening::LinkUp),
        1 => (0..NODES + 1).prop_map(Happening::LinkDown),
        30 => message.prop_map(|(which, change, number)| Happening::Message { which, change, number }),
        8 => (prop::bool::weighted(0.9), value, 0_u32..3)
            .prop_map(|(is_expected, value, steps)| Happening::Trained { is_expected, value, steps }),
        8 => prop::bool::weighted(0.9).prop_map(|is_expected| Happening::Persisted { is_expected }),
        6 => (0_u64..8_000).prop_map(|after_ms| Happening::Tick { after_ms }),
        1 => prop_oneof![
            20 => Just(Happening::Tick { after_ms: 1 }),
            2 => (0_u64..4).prop_map(|counter| Happening::Enter { counter }),
            1 => Just(Happening::Stop),
            1 => Just(Happening::Leave),
        ],
    ]
}

/// Puts a number into one of the places of a message; most changes are none.
fn changed(message: &Message, change: u8, number: u64) -> Message {
    let mut message = message.clone();
    let link = match &mut message {
        Message::Hello(hello) => {
            match change {
                0 => hello.identity.identity.incarnation = number,
                1 => hello.identity.identity.boot_nonce = number,
                2 => hello.generation.counter = number,
                3 => hello.seen = None,
                4 => hello.resumed = !hello.resumed,
                5 => hello.seen = Some(SignedIdentity::unsigned(Incarnation { incarnation: number, boot_nonce: 0 })),
                _ => {}
            }
            &mut hello.link
        }
        Message::Ack(ack) => {
            match change {
                0 => ack.identity.incarnation = number,
                1 => ack.seen.incarnation = number,
                2 => ack.generation.counter = number,
                _ => {}
            }
            &mut ack.link
        }
        Message::Parcel(parcel) => {
            let header = &mut parcel.header;
            match change {
                0 => header.seq = number,
                1 => header.base = number,
                2 => header.acked = number,
                3 => header.step = number,
                4 => header.mass = Mass::from_units(number),
                5 => header.sender_incarnation = number,
                6 => header.receiver_incarnation = number,
                7 => header.previous = Chain::default(),
                8 => parcel.payload = Payload::new(&[1.0; DIMENSION + 1]).unwrap(),
                9 => header.mass = Mass::from_units(number % (3 * UNITS_PER_ONE)),
                _ => {}
            }
            return message;
        }
        Message::Left(_) | Message::Process(_) | Message::Collective(_) => return message,
    };
    match change {
        20 => link.received = number,
        21 => link.applied = number,
        22 => link.base = number,
        23 => link.acked = number,
        24 => link.next_seq = number,
        25 => link.passed = number,
        26 => link.final_seq = Some(number),
        27 => link.leaving = !link.leaving,
        28 => link.applied_chain = Chain([7; 32]),
        _ => {}
    }
    message
}

/// All mass that came in and all that there is of it, in units.
fn books_of(node: &Node) -> (u128, u128) {
    let ledger = node.ledger();
    let units = |mass: Mass| u128::from(mass.units());
    let came: u128 = ledger.incoming.values().map(|link| link.applied_total + link.applied_from_earlier_lives).sum();
    let went: u128 = ledger.outgoing.values().map(|link| link.sent_total - link.returned).sum();
    for link in ledger.outgoing.values() {
        let waits: u128 = link.outbox.iter().map(|(_, mass)| units(*mass)).sum();
        let left = link.acked_total + link.acked_by_earlier_lives + link.written_off + link.returned;
        assert_eq!(link.sent_total, waits + left, "all that was sent is under way, applied, or given up");
    }
    (units(ledger.initial) + came, units(ledger.mass) + went)
}

fn drive(durability: Durability, policy: WaitPolicy, happenings: &[Happening]) -> Result<u64, TestCaseError> {
    let said = messages_of_a_run(durability, policy);
    let mut node = Node::new(config(ME, durability, policy)).unwrap();
    let (mut now, mut next, mut pending, mut accepted) = (Time::from_millis(10), 0, 0, 0);
    for happening in happenings {
        let input = match happening {
            Happening::Start => Input::Start,
            Happening::LinkUp(peer) => Input::LinkUp { peer: NodeId(*peer) },
            Happening::LinkDown(peer) => Input::LinkDown { peer: NodeId(*peer) },
            Happening::Message { which, change, number } => {
                // Half of them go on in the order of the run, or nothing would ever get far.
                let index = if *number % 2 == 0 { which.index(said.len()) } else { next % said.len() };
                next += usize::from(*number % 2 == 1);
                let (from, message) = &said[index];
                Input::Received { from: *from, message: changed(message, *change, *number) }
            }
            Happening::Trained { is_expected, value, steps } => {
                let round = node.round() + u64::from(!is_expected);
                Input::Trained { round, delta: vec![*value; DIMENSION], steps: *steps, state: HostState::default() }
            }
            Happening::Persisted { is_expected } => Input::Persisted { number: pending + u64::from(!is_expected) },
            Happening::Tick { after_ms } => {
                now = now + Duration::from_millis(*after_ms);
                Input::Tick
            }
            Happening::Enter { counter } => {
                let generation = Generation { counter: *counter, plan_hash: [*counter as u8; 32] };
                let schedule = plan(*counter);
                Input::Enter(Box::new(NewGeneration {
                    generation,
                    schedule,
                    id: ME,
                    keys: Arc::new(NoKeys),
                    rounds: 12,
                    ratio: None,
                }))
            }
            Happening::Stop => Input::Stop,
            Happening::Leave => Input::Leave,
        };
        let is_parcel = matches!(&input, Input::Received { message: Message::Parcel(_), .. });
        let (before, state) = (node.mass(), node.state());
        let effects = node.handle(now, input);
        let (came, is_there) = books_of(&node);
        prop_assert_eq!(came, is_there, "{:?} in {:?}", happening, state);
        accepted += u64::from(is_parcel && node.mass() > before);
        prop_assert!(node.numerator().iter().all(|x| x.is_finite()), "{:?}", happening);
        for effect in effects {
            if let Effect::Persist(record) = effect {
                pending = record.books.number;
            }
        }
    }
    Ok(accepted)
}

const POLICIES: [WaitPolicy; 3] = [WaitPolicy::Sync, WaitPolicy::Bounded { staleness: 1 }, WaitPolicy::Async];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn no_order_of_inputs_panics_or_makes_or_loses_a_unit(
        is_durable: bool, policy in 0_usize..3, happenings in prop::collection::vec(happening(), 1..200),
    ) {
        let durability = if is_durable { Durability::On } else { Durability::Off };
        drive(durability, POLICIES[policy], &happenings)?;
    }
}

#[test]
fn the_run_whose_messages_are_shuffled_is_one_in_which_much_happens() {
    for (durability, policy) in [(Durability::Off, WaitPolicy::Sync), (Durability::On, WaitPolicy::Async)] {
        let said = messages_of_a_run(durability, policy);
        let parcels = said.iter().filter(|(_, message)| matches!(message, Message::Parcel(_))).count();
        // Of two neighbours in twelve rounds; without a wait one may be through before the other has begun.
        assert!((12..=24).contains(&parcels), "{parcels}");
    }
}
