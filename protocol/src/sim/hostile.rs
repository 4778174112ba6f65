//! A Byzantine member: it sends an honest node's messages, with parts of them replaced.
//!
//! It knows the format and its neighbours, but nothing of the keys of others. It can lie about itself, signed if need
//! be, and about third nodes, and replay statements that these have signed at some time. It cannot sign in their name,
//! nor make their codes.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::chain::Chain;
use crate::evidence::{Applied, Evidence, Sent};
use crate::mass::{Mass, UNITS_PER_ONE};
use crate::message::{Ack, Generation, Incarnation, LeaveCertificate, LinkEnd, LinkPositions, Message, Parcel};
use crate::payload::{MAX_MAGNITUDE, Payload};
use crate::reference::ReferenceId;
use crate::schedule::NodeId;
use crate::statement::Mac;
use crate::statement::{Fate, OtherProcess, ProcessStatement, Signature, SignedIdentity};
use crate::window::Rejections;

use super::keys::SimulatedKeys;

/// The message that the hostile member `liar` sends in place of `message`, in a swarm of so many nodes.
pub(super) fn tampered(message: Message, liar: NodeId, nodes: u32, rng: &mut ChaCha8Rng) -> Message {
    let keys = SimulatedKeys::of(liar);
    if rng.random_bool(0.5) {
        return message;
    }
    if let Some(generation) = message.generation().filter(|_| rng.random_bool(0.05)) {
        return Message::Left(forged(generation, &keys, nodes, rng));
    }
    match message {
        Message::Hello(mut hello) => {
            match rng.random_range(0..6) {
                0 => hello.version = rng.random(),
                1 => hello.generation.counter = anything(hello.generation.counter, rng),
                2 => {
                    let mut identity = hello.identity.identity;
                    replace_identity(&mut identity, rng);
                    hello.identity = SignedIdentity::sign(liar, &hello.generation, identity, &keys);
                }
                3 => hello.seen.iter_mut().for_each(|seen| replace_identity(&mut seen.identity, rng)),
                4 => replace_evidence(&mut hello.evidence, rng),
                _ => replace_state(&mut hello.link, rng),
            }
            Message::Hello(hello)
        }
        Message::Ack(mut ack) => {
            match rng.random_range(0..5) {
                0 => ack.generation.counter = anything(ack.generation.counter, rng),
                1 => replace_identity(&mut ack.identity, rng),
                2 => replace_identity(&mut ack.seen, rng),
                _ => replace_state(&mut ack.link, rng),
            }
            Message::Ack(ack)
        }
        Message::Parcel(parcel) => Message::Parcel(tampered_parcel(parcel, rng)),
        Message::Left(certificate) => Message::Left(forged(certificate.generation, &keys, nodes, rng)),
        Message::Process(statement) => Message::Process(tampered_process(statement, &keys, nodes, rng)),
        Message::Collective(_) => message,
    }
}

/// Messages that a hostile member sends all at once before `message`, now and then: that its neighbour is in ever later
/// lives than it is, or that it is itself at the very end of training.
pub(super) fn burst(message: &Message, rng: &mut ChaCha8Rng) -> Vec<Message> {
    let Message::Ack(ack) = message else { return Vec::new() };
    if !rng.random_bool(0.02) {
        return Vec::new();
    }
    if rng.random() {
        let passed = [u64::MAX, rng.random::<u64>() >> rng.random_range(0..64)][rng.random_range(0..2)];
        let link = LinkPositions { passed, ..ack.link };
        return vec![Message::Ack(Ack { link, ..ack.clone() })];
    }
    let later = |lives| Incarnation { incarnation: ack.seen.incarnation.saturating_add(lives), boot_nonce: 1 };
    (1..=64).map(|lives| Message::Ack(Ack { seen: later(10 * lives), ..ack.clone() })).collect()
}

/// Flips a bit in one of fifty messages.
pub(super) fn garbled(bytes: &mut [u8], rng: &mut ChaCha8Rng) {
    if rng.random_bool(0.02) && !bytes.is_empty() {
        let at = rng.random_range(0..bytes.len());
        bytes[at] ^= 1 << rng.random_range(0..8);
    }
}

fn tampered_parcel(mut parcel: Parcel, rng: &mut ChaCha8Rng) -> Parcel {
    if parcel.payload.reference().is_some() && rng.random_bool(0.3) {
        // The difference to a reference that nobody has.
        parcel.payload = parcel.payload.against_named(ReferenceId(rng.random()));
        return parcel;
    }
    let header = &mut parcel.header;
    match rng.random_range(0..10) {
        0 => header.generation.counter = anything(header.generation.counter, rng),
        1 => header.sender_incarnation = anything(header.sender_incarnation, rng),
        2 => header.receiver_incarnation = anything(header.receiver_incarnation, rng),
        3 => header.base = anything(header.base, rng),
        4 => header.acked = anything(header.acked, rng),
        5 => header.seq = anything(header.seq, rng),
        6 if rng.random() => header.chain.0 = rng.random(),
        6 => header.step = anything(header.step, rng),
        7 => header.mac = any_mac(rng),
        8 => header.mass = Mass::from_units(anything(header.mass.units(), rng).min(16 * UNITS_PER_ONE)),
        _ => {
            let size = [1e3, 1e9, MAX_MAGNITUDE][rng.random_range(0..3)];
            let values: Vec<f32> = (0..parcel.payload.dimension()).map(|_| rng.random_range(-size..=size)).collect();
            if let Ok(payload) = Payload::new(&values) {
                parcel.payload = payload;
            }
        }
    }
    parcel
}

fn replace_identity(identity: &mut Incarnation, rng: &mut ChaCha8Rng) {
    match rng.random_range(0..2) {
        0 => identity.incarnation = anything(identity.incarnation, rng),
        _ => identity.boot_nonce = rng.random(),
    }
}

fn replace_state(state: &mut LinkPositions, rng: &mut ChaCha8Rng) {
    if state.references.is_some() && rng.random_bool(0.3) {
        state.references = [None, Some([ReferenceId(rng.random()), ReferenceId::default()])][rng.random_range(0..2)];
        return;
    }
    match rng.random_range(0..11) {
        0 => state.received = anything(state.received, rng),
        1 => state.applied = anything(state.applied, rng),
        2 => state.applied_chain.0 = rng.random(),
        3 => state.base = anything(state.base, rng),
        4 => state.acked = anything(state.acked, rng),
        5 => state.next_seq = anything(state.next_seq, rng),
        6 => state.passed = anything(state.passed, rng),
        7 => state.final_seq = Some(rng.random_range(0..20)),
        8 => state.left = rng.random(),
        9 => state.applied_mac = any_mac(rng),
        _ => state.processes = rng.random(),
    }
}

/// Shows statements that the neighbour never made, under a code of its own or under one for another statement.
fn replace_evidence(evidence: &mut Evidence, rng: &mut ChaCha8Rng) {
    let known = *evidence;
    let sent = known.sent.unwrap_or(Sent { mac: any_mac(rng), ..Sent::default() });
    let applied = known.applied.unwrap_or(Applied { mac: any_mac(rng), ..Applied::default() });
    match rng.random_range(0..6) {
        0 => evidence.sent = Some(Sent { seq: anything(sent.seq, rng), ..sent }),
        1 => evidence.sent = Some(Sent { chain: Chain(rng.random()), ..sent }),
        2 => evidence.sent = Some(Sent { seq: anything(sent.seq, rng), mac: any_mac(rng), ..sent }),
        3 => evidence.applied = Some(Applied { seq: anything(applied.seq, rng), ..applied }),
        4 => evidence.applied = Some(Applied { seq: anything(sent.seq, rng), mac: sent.mac }),
        _ => *evidence = Evidence::default(),
    }
}

fn any_mac(rng: &mut ChaCha8Rng) -> Mac {
    rng.random::<[u8; 16]>().into()
}

const FATES: [Fate; 3] = [Fate::Unknown, Fate::OtherEnds, Fate::ThisEnds];

/// Names another process, of the liar itself or of another node, whose signature it has not.
fn tampered_process(
    mut statement: ProcessStatement,
    keys: &SimulatedKeys,
    nodes: u32,
    rng: &mut ChaCha8Rng,
) -> ProcessStatement {
    match rng.random_range(0..4) {
        0 => statement.node = NodeId(rng.random_range(0..nodes)),
        1 => statement.boot_nonce = anything(statement.boot_nonce, rng),
        2 => statement.number = anything(statement.number, rng),
        _ => statement.other = Some(OtherProcess { boot_nonce: anything(1, rng), fate: FATES[rng.random_range(0..3)] }),
    }
    if rng.random() { statement.signed(keys) } else { statement }
}

/// A false leave certificate, with false ends of links: of the liar itself, or of another node, whose signature it does
/// not have.
fn forged(generation: Generation, keys: &SimulatedKeys, nodes: u32, rng: &mut ChaCha8Rng) -> LeaveCertificate {
    let mut ends = Vec::new();
    let mut evidence = Vec::new();
    for from in (0..nodes).map(NodeId) {
        if rng.random_bool(0.5) {
            let sender_incarnation = anything(1, rng);
            let applied = rng.random_range(0..20);
            ends.push(LinkEnd { from, sender_incarnation, applied, rejected: Rejections::default() });
            evidence.push((from, Sent { seq: applied, chain: Chain(rng.random()), mac: any_mac(rng) }));
        }
    }
    let leaver = NodeId(rng.random_range(0..nodes));
    let incarnation = anything(1, rng);
    let signature = Signature::default();
    LeaveCertificate { generation, leaver, incarnation, ends, evidence, signature }.signed(keys)
}

/// The number beside the true one, zero, or any at all.
fn anything(truth: u64, rng: &mut ChaCha8Rng) -> u64 {
    match rng.random_range(0..4) {
        0 => truth.wrapping_add(1),
        1 => truth.wrapping_sub(1),
        2 => 0,
        _ => rng.random(),
    }
}
