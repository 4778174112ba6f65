//! Small inputs to start from, one or more of every kind that a decoder accepts. `cargo run --example write_seeds`
//! writes the files in `seeds/` from here.

use std::collections::BTreeMap;

use mingle_planner::plan::{PlanDraft, StepDraft};
use mingle_planner::{DesignOptions, Medium, Method, Parameter, Plan, Topology, WeightedLink, design};
use mingle_protocol::collective::{
    ExchangeMessage, FloodValue, Frame, MessageEncoding, ModularPartial, OperationMessage, SequenceMessage, Share,
};
use mingle_protocol::wire::encode;
use mingle_protocol::{
    Ack, Applied, Books, Chain, Codec, Envelope, Evidence, Fate, Generation, Hello, InBooks, Incarnation,
    LinkPositions, Mac, Mass, Message, NodeId, OtherProcess, OutBooks, Owed, PROTOCOL_VERSION, Parcel, ParcelHeader,
    Payload, ProcessStatement, Record, ReferenceId, Sent, Signature, SignedIdentity, TaskDigest,
};

use crate::message_reader::bytes_of;

/// The dimension of the parcels.
const DIMENSION: u8 = 3;

/// A name and an input.
pub type Seed<Input> = (&'static str, Input);

/// All seeds: the target, the name, the bytes.
pub fn all() -> Vec<(&'static str, Seed<Vec<u8>>)> {
    let texts = |target, seeds: Vec<Seed<String>>| {
        seeds.into_iter().map(move |(name, text)| (target, (name, text.into_bytes()))).collect::<Vec<_>>()
    };
    let bytes = |target, seeds: Vec<Seed<Vec<u8>>>| seeds.into_iter().map(|seed| (target, seed)).collect::<Vec<_>>();
    [
        bytes("message_reader", message_reader()),
        bytes("payload", payload()),
        bytes("patch", crate::patch::seeds()),
        bytes("multicast", crate::multicast::seeds()),
        bytes("record", record()),
        bytes("collective", collective()),
        bytes("plan_postcard", plan_postcard()),
        texts("plan_json", plan_json()),
        texts("topology_text", topology_text()),
    ]
    .concat()
}

/// Streams, preceded by the bytes that [`check`](crate::message_reader::check) expects.
pub fn message_reader() -> Vec<Seed<Vec<u8>>> {
    let input = |stream: Vec<u8>| [vec![DIMENSION, 9, 1], stream].concat();
    let everything = [hello(), ack(), parcel(1), envelope(), parcel(2), ack()];
    vec![
        ("hello", input(bytes_of(&hello()))),
        ("ack", input(bytes_of(&ack()))),
        ("parcel", input(bytes_of(&parcel(1)))),
        ("parcel_f16", input(bytes_of(&parcel_in(Codec::F16, 1)))),
        ("parcel_int8", input(bytes_of(&parcel_in(Codec::Int8, 1)))),
        ("difference", input(bytes_of(&difference(1)))),
        ("envelope", input(bytes_of(&envelope()))),
        ("process", input(bytes_of(&process()))),
        ("everything", input(everything.iter().flat_map(bytes_of).collect())),
        ("heartbeat_between_chunks", input(heartbeat_between_chunks())),
    ]
}

/// Encoded vectors, preceded by the bytes that [`check`](crate::payload::check) expects.
pub fn payload() -> Vec<Seed<Vec<u8>>> {
    let input = |codec: Codec, dimension: u16| {
        let values: Vec<f32> = (0..dimension).map(|at| f32::from(at) / 7.0 - 0.5).collect();
        let payload = Payload::encoded(codec, &values, 0).expect("the numbers are small");
        [&[codec.id()][..], &dimension.to_le_bytes(), payload.bytes()].concat()
    };
    vec![
        ("f32", input(Codec::F32, 9)),
        ("f16", input(Codec::F16, 20)),
        ("bf16", input(Codec::Bf16, 20)),
        ("int8", input(Codec::Int8, 40)),
        ("int8_two_blocks", input(Codec::Int8, 260)),
        ("int4", input(Codec::Int4, 40)),
        ("int3_two_blocks", input(Codec::Int3, 260)),
    ]
}

/// Record files, preceded by the byte that [`check`](crate::record::check) expects.
pub fn record() -> Vec<Seed<Vec<u8>>> {
    let input = |record: Record| {
        let mut bytes = Vec::new();
        record.encode(&mut bytes).expect("the record keeps the rules");
        [vec![1], bytes].concat()
    };
    let values = [0.5, -2.0, 0.0];
    let payload = |codec| Some(Payload::encoded(codec, &values, 0).expect("the numbers are small"));
    let founder = books(1, BTreeMap::new());
    let waiting = OutBooks { receiver_incarnation: 1, ..owing(&[]) };
    let busy = Books {
        incoming: [(NodeId(0), in_books()), (NodeId(2), InBooks::default())].into(),
        ..books(300, [(NodeId(0), owing(&[298, 299, 300])), (NodeId(2), waiting)].into())
    };
    let newest = books(2, [(NodeId(2), owing(&[2]))].into());
    let record = |books, ratio, payload| Record { books, numerator: values.into(), ratio, held_back: None, payload };
    vec![
        ("founder", input(record(founder, None, None))),
        ("busy", input(record(busy, Some(values.into()), payload(Codec::F32)))),
        ("newest_f16", input(record(newest.clone(), None, payload(Codec::F16)))),
        ("newest_int8", input(record(newest, Some(values.into()), payload(Codec::Int8)))),
    ]
}

fn books(number: u64, outgoing: BTreeMap<NodeId, OutBooks>) -> Books {
    Books {
        number,
        generation: generation(),
        task: [8; 32],
        id: NodeId(1),
        incarnation: 2,
        brought: Mass::ONE,
        mass: Mass::from_units(1 << 39),
        step: 400,
        split_done: true,
        neighbours: BTreeMap::from([(NodeId(1), signed_identity())]),
        incoming: BTreeMap::new(),
        outgoing,
        left: Vec::new(),
        evidence: BTreeMap::from([(NodeId(2), evidence())]),
        host: b"cursor".to_vec().into(),
    }
}

fn evidence() -> Evidence {
    let sent = Sent { seq: 300, chain: Chain([5; 32]), mac: Mac::from([6; 16]) };
    Evidence { sent: Some(sent), applied: Some(Applied { seq: 12, mac: Mac::from([7; 16]) }) }
}

fn in_books() -> InBooks {
    InBooks {
        sender_incarnation: 1,
        base: 3,
        applied: 300,
        rejected: Default::default(),
        chain: Chain([5; 32]),
        last_step: Some(399),
        applied_total: 1 << 45,
        applied_from_earlier_lives: 1 << 40,
    }
}

/// A link whose receiver has not acknowledged the payloads of these records.
fn owing(records: &[u64]) -> OutBooks {
    let parcel = |(seq, &record)| Owed { seq, step: record, mass: Mass::ONE, chain: Chain([seq as u8; 32]), record };
    let outbox: Vec<Owed> = (8..).zip(records).map(parcel).collect();
    OutBooks {
        receiver_incarnation: 3,
        base: 5,
        next_seq: 8 + outbox.len() as u64,
        acked: 7,
        acked_chain: Chain([7; 32]),
        sent_total: (8 + outbox.len() as u128) << 40,
        outbox,
        acked_total: 2 << 40,
        acked_by_earlier_lives: 5 << 40,
        written_off: 1 << 40,
        returned: 1 << 39,
    }
}

/// Messages of the collectives, preceded by the byte that [`check`](crate::collective::check) expects.
pub fn collective() -> Vec<Seed<Vec<u8>>> {
    let input = |kind: u8, bytes: Vec<u8>| [vec![kind], bytes].concat();
    let share = Share { round: 0, mass: Mass::from_units(1 << 38), values: vec![0.5, -2.0] };
    let best = FloodValue { round: 0, values: vec![(7.0, NodeId(0)), (-7.0, NodeId(2))] };
    let shared = SequenceMessage { operation: 1, payload: OperationMessage::Share(share.clone()) };
    let second = |payload| SequenceMessage { operation: 2, payload };
    let exchanged = second(OperationMessage::Exchange(ExchangeMessage { values: [1.0, 4.0].into() }));
    let partial = ModularPartial { is_whole: false, words: vec![1, u64::MAX] };
    let masked = second(OperationMessage::ModularPartial(partial));
    vec![
        ("share", input(0, Frame { acknowledged: 0, message: Some((1, share)) }.encode())),
        ("best", input(1, Frame { acknowledged: 0, message: Some((1, best)) }.encode())),
        ("turn", input(2, Frame { acknowledged: 0, message: Some((1, shared)) }.encode())),
        ("later turn", input(2, Frame { acknowledged: 0, message: Some((1, exchanged)) }.encode())),
        ("masked turn", input(2, Frame { acknowledged: 0, message: Some((1, masked)) }.encode())),
        ("acknowledgement", input(2, Frame::<SequenceMessage> { acknowledged: 0, message: None }.encode())),
    ]
}

/// A parcel whose payload comes in chunks of a few bytes, with an acknowledgement after each frame.
fn heartbeat_between_chunks() -> Vec<u8> {
    let encoded = encode(parcel(1));
    let mut stream = Vec::new();
    for (head, body) in encoded.frames() {
        if body.is_empty() {
            stream.extend_from_slice(head);
        }
        for piece in body.chunks(5) {
            stream.extend_from_slice(&[piece.len() as u8, 0, 0, 0, head[4]]);
            stream.extend_from_slice(piece);
            stream.extend(bytes_of(&ack()));
        }
    }
    stream
}

fn generation() -> Generation {
    Generation { counter: 1, plan_hash: [7; 32] }
}

fn identity() -> Incarnation {
    Incarnation { incarnation: 2, boot_nonce: 0x0123_4567_89ab_cdef }
}

fn signed_identity() -> SignedIdentity {
    SignedIdentity { identity: identity(), signature: Signature::from([9; 64]) }
}

fn link() -> LinkPositions {
    LinkPositions {
        received: 300,
        applied: 200,
        rejected: Default::default(),
        applied_chain: Chain([3; 32]),
        applied_mac: Mac::from([2; 16]),
        base: 100,
        acked: 250,
        next_seq: 301,
        passed: 400,
        final_seq: Some(500),
        leaving: true,
        left: 0,
        processes: 0,
        references: Some([ReferenceId([6; 16]), ReferenceId::default()]),
    }
}

fn hello() -> Message {
    let task = TaskDigest { hash: [8; 32], description: "digits, é".to_owned() };
    let (version, generation, identity, link) = (PROTOCOL_VERSION, generation(), signed_identity(), link());
    Message::Hello(Box::new(Hello {
        version,
        generation,
        task,
        identity,
        seen: Some(identity),
        resumed: true,
        link,
        evidence: evidence(),
    }))
}

fn ack() -> Message {
    Message::Ack(Ack { generation: generation(), identity: identity(), seen: identity(), link: link() })
}

fn process() -> Message {
    let Incarnation { boot_nonce, .. } = identity();
    let other = Some(OtherProcess { boot_nonce: 77, fate: Fate::Unknown });
    let (node, number, age_ms, signature) = (NodeId(2), 3, 60_000, Signature::from([9; 64]));
    let generation = generation();
    Message::Process(ProcessStatement { generation, node, boot_nonce, number, age_ms, other, signature })
}

fn parcel(seq: u64) -> Message {
    parcel_in(Codec::F32, seq)
}

fn parcel_in(codec: Codec, seq: u64) -> Message {
    let header = ParcelHeader {
        generation: generation(),
        sender_incarnation: 1,
        receiver_incarnation: 2,
        base: 0,
        acked: 0,
        seq,
        previous: Chain::default(),
        chain: Chain([9; 32]),
        step: 40,
        mass: Mass::ONE,
        mac: Mac::from([4; 16]),
    };
    let values: Vec<f32> = (0..DIMENSION).map(|at| f32::from(at) - 0.5).collect();
    let payload = Payload::encoded(codec, &values, seq).expect("the numbers are small");
    Message::Parcel(Parcel { header, payload })
}

/// A parcel whose payload is a difference to a reference.
fn difference(seq: u64) -> Message {
    let Message::Parcel(Parcel { header, payload }) = parcel_in(Codec::Int4, seq) else { unreachable!() };
    Message::Parcel(Parcel { header, payload: payload.against_named(ReferenceId([6; 16])) })
}

fn envelope() -> Message {
    Message::Collective(Envelope { task: [9; 32], attempt: 1, frame: (0..20).collect() })
}

/// Plans as wire bytes.
pub fn plan_postcard() -> Vec<Seed<Vec<u8>>> {
    plans().into_iter().map(|(name, plan)| (name, plan.to_postcard().expect("the plan is small"))).collect()
}

/// Plan files.
pub fn plan_json() -> Vec<Seed<String>> {
    plans().into_iter().map(|(name, plan)| (name, plan.to_json())).collect()
}

/// Plans of three methods, one of them bound to peers, one with an interference graph, and one plan made by hand.
fn plans() -> Vec<Seed<Plan>> {
    let options = DesignOptions { local_steps: 2, ..DesignOptions::default() };
    let planned =
        |topology: &Topology, method| design(topology, method, &options).expect("the topology can be planned");
    let ring = Topology::generate("ring:n=4").expect("a ring of four");
    let names = ["ana", "ben", "cho"].map(String::from).to_vec();
    let path = Topology::new(names, &[(0, 1), (1, 2)]).expect("a path of three");
    let disturbed = path.clone().with_interference(&[(0, 1), (1, 2), (0, 2)]).expect("it holds the path");
    let mut bound = planned(&path, Method::NguyenHe);
    bound.bind("ana", "12D3KooWana").expect("ana is a node");
    bound.bind("cho", "12D3KooWcho").expect("cho is a node");
    vec![
        ("nguyen_he_ring", planned(&ring, Method::NguyenHe)),
        ("nguyen_he_bound", bound),
        ("d_psgd_disturbed", planned(&disturbed, Method::DPsgd)),
        ("sgp_uniform_path", planned(&path, Method::SgpUniform)),
        ("by_hand", by_hand()),
    ]
}

/// A plan that no design makes: parameters of every kind, and two steps on a medium without slots.
fn by_hand() -> Plan {
    let link = |from, to, weight| WeightedLink { from, to, weight };
    let turn = StepDraft {
        keep: vec![0.5, 0.5, 0.5],
        links: vec![link(0, 1, 0.5), link(1, 2, 0.5), link(2, 0, 0.5)],
        slots: Vec::new(),
    };
    let hand_on = StepDraft { keep: vec![0.25, 1.0, 1.0], links: vec![link(0, 1, 0.75)], slots: Vec::new() };
    let parameters = [
        ("flag", Parameter::Flag(true)),
        ("real", Parameter::Real(0.0)),
        ("text", Parameter::Text("\"é\"".to_owned())),
        ("whole", Parameter::Whole(u64::MAX)),
    ];
    Plan::new(PlanDraft {
        base: Topology::generate("complete:n=3").expect("a triangle"),
        method: "by hand".to_owned(),
        parameters: parameters.map(|(name, value)| (name.to_owned(), value)).into(),
        medium: Medium::PointToPoint,
        steps: vec![turn, hand_on],
        local_steps: 0,
        round_length: None,
        network: None,
    })
    .expect("the plan is sound")
}

/// Topologies in every format.
pub fn topology_text() -> Vec<Seed<String>> {
    let plan = plans().swap_remove(2).1.to_json();
    let text = |seed: Seed<&str>| (seed.0, seed.1.to_owned());
    let mut seeds: Vec<Seed<String>> = [
        ("edge_list", "# huts\nana ben\nben,cho # near\n\ncho\tana\n"),
        ("edge_list_arrows", "0 -> 10\n10 -> 0\n10 2\n"),
        ("edge_list_attributes", "0 1 {'weight': 2.5}\n1 2 {} # near\n"),
        ("edge_list_weights", "source,target,weight\n0,1,2.5\n1,2,4\n"),
        (
            "gml",
            "Creator \"x\"\n# huts\ngraph [ directed 0 node [ id 0 label \"a &amp; b\" graphics [ x 1 y 2.5 ] ]\n\
             node [ id 1 Longitude 13 Latitude 52 ] edge [ source 0 target 1 LinkSpeed \"10\" ] ]\n",
        ),
        (
            "node_link",
            r#"{"directed": false, "multigraph": true, "graph": {}, "nodes": [{"id": 0, "x": 1, "y": 2}, {"id": "b"}],
                "links": [{"source": 0, "target": "b", "key": 0, "weight": 2.5}]}"#,
        ),
        ("json_numbers", r#"{"nodes": [0, 1, 2], "edges": [[0, 1], [1, 2]], "positions": [[0, 0], [0.5, 1], [1, 1]]}"#),
        (
            "json_labels",
            r#"{"directed": true, "nodes": [{"id": "a", "label": "ana"}, {"id": 7, "name": "ben"}],
                "edges": [["a", 7], [7, "a"]], "positions": {"a": [0, 1e3], "7": [-0.5, 2]}, "more": null}"#,
        ),
        (
            "graphml",
            r#"<?xml version="1.0"?><!-- huts --><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
                <key id="d0" for="node" attr.name="label" attr.type="string"/>
                <graph edgedefault="undirected"><node id="a"><data key="d0">ana &amp; co</data></node><node id="b&#233;"/>
                <edge source="a" target="b&#233;" directed="false"/></graph></graphml>"#,
        ),
        (
            "graphml_directed",
            r#"<graphml><graph edgedefault="directed"><node id="a"/><node id="b"/><edge source="a" target="b"/>
                <edge source="b" target="a"/></graph></graphml>"#,
        ),
    ]
    .map(text)
    .to_vec();
    seeds.push(("plan", plan));
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_files_are_those_that_write_seeds_writes() {
        for (target, (name, bytes)) in all() {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target).join(name);
            assert!(
                std::fs::read(&file).is_ok_and(|found| found == bytes),
                "{} is not up to date: run `cargo run --example write_seeds` in fuzz/",
                file.display(),
            );
        }
    }
}
