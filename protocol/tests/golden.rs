//! The messages of this release, byte for byte, in files that stay: a later release shows with them that it is
//! compatible with this one, or that it needs another protocol version.
//!
//! `golden/wire-N/` is protocol version N: a message of each kind, and a whole conversation of two nodes. When the
//! bytes change, so does [`PROTOCOL_VERSION`], and `MINGLE_GOLDEN=write` writes the files of a version that has none.
//! Files that are there are never written over.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use mingle_protocol::wire::{MessageReader, encode};
use mingle_protocol::*;
use test_keys::TestKeys;

#[path = "support/test_keys.rs"]
mod test_keys;

const DIMENSION: usize = 3;

fn path(name: &str) -> PathBuf {
    let version = format!("wire-{PROTOCOL_VERSION}");
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version).join(name)
}

/// The text of a file; where there is none yet, and it is asked for, it is written first.
fn golden(name: &str, new: impl FnOnce() -> String) -> String {
    let path = path(name);
    if !path.exists() && std::env::var_os("MINGLE_GOLDEN").is_some_and(|mode| mode == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, new()).unwrap();
    }
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().as_chunks::<2>().0;
    digits.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn bytes_of(message: &Message) -> Vec<u8> {
    encode(message.clone()).slices().flatten().copied().collect()
}

const GENERATION: Generation = Generation { counter: 300, plan_hash: [1; 32] };

fn signed(incarnation: u64) -> SignedIdentity {
    let identity = Incarnation { incarnation, boot_nonce: u64::MAX };
    SignedIdentity { identity, signature: Signature::from([6; 64]) }
}

fn link_state() -> LinkPositions {
    LinkPositions {
        received: 5,
        applied: 4,
        applied_chain: Chain([3; 32]),
        rejected: Rejections::default(),
        applied_mac: Mac::from([11; 16]),
        base: 1,
        acked: 200,
        next_seq: 201,
        passed: 70_000,
        final_seq: Some(202),
        leaving: true,
        left: 9,
        processes: u64::MAX,
        references: Some([ReferenceId([15; 16]), ReferenceId::default()]),
    }
}

fn parcel(codec: Codec) -> Message {
    let header = ParcelHeader {
        generation: GENERATION,
        sender_incarnation: 2,
        receiver_incarnation: 3,
        base: 1,
        acked: 4,
        seq: 5,
        previous: Chain([7; 32]),
        chain: Chain([8; 32]),
        step: 400,
        mass: Mass::from_units(1 << 39),
        mac: Mac::from([10; 16]),
    };
    Message::Parcel(Parcel { header, payload: Payload::encoded(codec, &[0.5, -1.0, 2.0], 5).unwrap() })
}

/// A message of each kind.
fn samples() -> Vec<(String, Message)> {
    let end = LinkEnd { from: NodeId(300), sender_incarnation: 1, applied: 9, rejected: Rejections::default() };
    let signature = Signature::from([5; 64]);
    let sent = Sent { seq: 300, chain: Chain([12; 32]), mac: Mac::from([13; 16]) };
    let evidence = vec![(NodeId(300), sent)];
    let certificate = LeaveCertificate {
        generation: GENERATION,
        leaver: NodeId(2),
        incarnation: 1,
        ends: vec![end],
        evidence,
        signature,
    };
    let process = ProcessStatement {
        generation: GENERATION,
        node: NodeId(2),
        boot_nonce: 77,
        number: 3,
        age_ms: 60_000,
        other: Some(OtherProcess { boot_nonce: 78, fate: Fate::OtherEnds }),
        signature,
    };
    let task = TaskDigest { hash: [2; 32], description: "digits, é".to_owned() };
    let hello = Hello {
        version: PROTOCOL_VERSION,
        generation: GENERATION,
        task,
        identity: signed(2),
        seen: Some(signed(1)),
        resumed: true,
        link: link_state(),
        evidence: Evidence { sent: Some(sent), applied: Some(Applied { seq: 200, mac: Mac::from([14; 16]) }) },
    };
    let (identity, seen) = (signed(2).identity, signed(1).identity);
    let ack = Ack {
        generation: GENERATION,
        identity,
        seen,
        link: LinkPositions { final_seq: None, references: None, ..link_state() },
    };
    let envelope = Envelope { task: [4; 32], attempt: 3, frame: vec![0, 1, 255] };
    let mut all = vec![
        ("hello".to_owned(), Message::Hello(Box::new(hello))),
        ("ack".to_owned(), Message::Ack(ack)),
        ("left".to_owned(), Message::Left(certificate)),
        ("process".to_owned(), Message::Process(process)),
        ("collective".to_owned(), Message::Collective(envelope)),
    ];
    all.extend(Codec::ALL.into_iter().map(|codec| (format!("parcel-{codec}"), parcel(codec))));
    if let Message::Parcel(Parcel { header, payload }) = parcel(Codec::Int4) {
        let payload = payload.against_named(ReferenceId([15; 16]));
        all.push(("difference".to_owned(), Message::Parcel(Parcel { header, payload })));
    }
    all
}

#[test]
fn a_message_of_each_kind_has_the_bytes_that_it_had() {
    let text = golden("messages.hex", || {
        let line = |(name, message): (String, Message)| format!("{name} {}\n", hex(&bytes_of(&message)));
        samples().into_iter().map(line).collect()
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), samples().len(), "no kind is missing");
    for (line, (name, message)) in lines.into_iter().zip(samples()) {
        let (kind, bytes) = line.split_once(' ').unwrap();
        assert_eq!(kind, name);
        let read = MessageReader::new(DIMENSION).feed(&unhex(bytes)).unwrap();
        assert_eq!(read, std::slice::from_ref(&message), "{name} is read");
        assert_eq!(
            hex(&bytes_of(&message)),
            bytes,
            "{name} is said with other bytes: it needs another PROTOCOL_VERSION"
        );
    }
}

/// One of two nodes that average over four rounds.
struct Speaker {
    node: Node,
    reader: MessageReader,
}

impl Speaker {
    fn new(id: u32) -> Self {
        let links = vec![(NodeId(0), NodeId(1), 0.5), (NodeId(1), NodeId(0), 0.25)];
        let schedule = Schedule::new(2, &[Step { keep: vec![0.5, 0.75], links }], 0).unwrap();
        let initial = vec![8.0 * id as f32, 1.0, -1.0];
        let mut config = NodeConfig::new(NodeId(id), Arc::new(schedule), initial, 4);
        config.policy = WaitPolicy::Sync;
        config.generation = GENERATION;
        config.identity = Incarnation { incarnation: 1, boot_nonce: 100 + u64::from(id) };
        config.task = TaskDigest { hash: [3; 32], description: "digits".to_owned() };
        config.keys = Arc::new(TestKeys(NodeId(id)));
        Self { node: Node::new(config).unwrap(), reader: MessageReader::new(DIMENSION) }
    }

    fn other(&self) -> NodeId {
        NodeId(1 - self.node.id().0)
    }

    /// The messages that it sends upon an input, each as bytes.
    fn answers(&mut self, input: Input) -> Vec<Vec<u8>> {
        let effects = self.node.handle(Time::from_millis(10), input);
        let said = effects.into_iter().filter_map(|effect| match effect {
            Effect::Send { message, .. } => Some(bytes_of(&message)),
            _ => None,
        });
        said.collect()
    }

    fn begin(&mut self) -> Vec<Vec<u8>> {
        let peer = self.other();
        [Input::Start, Input::LinkUp { peer }].into_iter().flat_map(|input| self.answers(input)).collect()
    }

    fn hear(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let from = self.other();
        let messages = self.reader.feed(bytes).unwrap();
        messages.into_iter().flat_map(|message| self.answers(Input::Received { from, message })).collect()
    }
}

/// All messages by their sender, in the order in which they arrive.
fn conversation() -> Vec<(u32, Vec<u8>)> {
    let mut speakers = [Speaker::new(0), Speaker::new(1)];
    let mut said = VecDeque::new();
    for (id, speaker) in (0..).zip(&mut speakers) {
        said.extend(speaker.begin().into_iter().map(|bytes| (id, bytes)));
    }
    let mut all = Vec::new();
    while let Some((id, bytes)) = said.pop_front() {
        let listener = 1 - id;
        said.extend(speakers[listener as usize].hear(&bytes).into_iter().map(|bytes| (listener, bytes)));
        all.push((id, bytes));
    }
    all
}

#[test]
fn a_node_of_this_release_answers_a_recorded_one_as_it_did() {
    let text = golden("conversation.hex", || {
        conversation().into_iter().map(|(id, bytes)| format!("{id} {}\n", hex(&bytes))).collect()
    });
    let lines: Vec<(u32, Vec<u8>)> = text
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(id, bytes)| (id.parse().unwrap(), unhex(bytes)))
        .collect();
    let parcels = lines.iter().filter(|(_, bytes)| bytes[4] == 3).count();
    assert!(parcels == 8, "four rounds in both directions, not {parcels} parcels");
    for id in [0, 1] {
        let mut speaker = Speaker::new(id);
        let mut said: VecDeque<Vec<u8>> = speaker.begin().into();
        for (number, (by, bytes)) in lines.iter().enumerate() {
            if *by == id {
                let answer = said.pop_front().unwrap_or_else(|| panic!("node {id} does not say line {}", number + 1));
                assert_eq!(hex(&answer), hex(bytes), "node {id} says something else than line {}", number + 1);
            } else {
                said.extend(speaker.hear(bytes));
            }
        }
        assert!(said.is_empty(), "node {id} says more than it did");
        assert_eq!(speaker.node.state(), NodeState::Drained);
    }
}
