//! The wire format: messages are decoded as they were encoded, and nothing a peer sends does harm.
#![allow(clippy::unwrap_used)]

use mingle_protocol::wire::{
    FRAME_HEAD_BYTES, MAX_CHUNK_BYTES, MAX_COLLECTIVE_BYTES, MAX_CONTROL_BYTES, MessageReader, WireError, aside,
    elsewhere, encode,
};
use mingle_protocol::*;
use proptest::prelude::*;

const DIMENSION: usize = 7;

fn bytes_of(message: &Message) -> Vec<u8> {
    let encoded = encode(message.clone());
    let bytes: Vec<u8> = encoded.slices().flatten().copied().collect();
    assert_eq!(bytes.len(), encoded.total_bytes());
    bytes
}

fn generations() -> impl Strategy<Value = Generation> {
    (any::<u64>(), any::<[u8; 32]>()).prop_map(|(counter, plan_hash)| Generation { counter, plan_hash })
}

fn identities() -> impl Strategy<Value = Incarnation> {
    (any::<u64>(), any::<u64>()).prop_map(|(incarnation, boot_nonce)| Incarnation { incarnation, boot_nonce })
}

fn signatures() -> impl Strategy<Value = Signature> {
    prop::collection::vec(any::<u8>(), 64).prop_map(|bytes| Signature::from(<[u8; 64]>::try_from(bytes).unwrap()))
}

fn macs() -> impl Strategy<Value = Mac> {
    any::<[u8; 16]>().prop_map(Mac::from)
}

fn shown() -> impl Strategy<Value = Evidence> {
    let applied = (any::<u64>(), macs()).prop_map(|(seq, mac)| Applied { seq, mac });
    (proptest::option::of(sent()), proptest::option::of(applied)).prop_map(|(sent, applied)| Evidence { sent, applied })
}

fn sent() -> impl Strategy<Value = Sent> {
    (any::<u64>(), any::<[u8; 32]>(), macs()).prop_map(|(seq, chain, mac)| Sent { seq, chain: Chain(chain), mac })
}

fn link_states() -> impl Strategy<Value = LinkPositions> {
    (any::<[u64; 8]>(), any::<Option<u64>>(), any::<bool>(), macs()).prop_map(|(n, final_seq, leaving, applied_mac)| {
        LinkPositions {
            received: n[0],
            applied: n[1],
            applied_chain: Chain([n[5] as u8; 32]),
            rejected: Rejections::default(),
            applied_mac,
            base: n[2],
            acked: n[6],
            next_seq: n[3],
            passed: n[4],
            final_seq,
            leaving,
            left: n[7],
            processes: n[0] ^ n[7],
            references: leaving.then(|| [ReferenceId([n[5] as u8; 16]), ReferenceId::default()]),
        }
    })
}

fn hellos() -> impl Strategy<Value = Message> {
    let signed =
        || (identities(), signatures()).prop_map(|(identity, signature)| SignedIdentity { identity, signature });
    let parts = (any::<bool>(), generations(), any::<[u8; 32]>(), "[a-z é]{0,60}", signed());
    (parts, proptest::option::of(signed()), link_states(), shown()).prop_map(
        |((resumed, generation, hash, description, identity), seen, link, evidence)| {
            let task = TaskDigest { hash, description };
            Message::Hello(Box::new(Hello {
                version: PROTOCOL_VERSION,
                generation,
                task,
                identity,
                seen,
                resumed,
                link,
                evidence,
            }))
        },
    )
}

fn parcels(dimension: usize) -> impl Strategy<Value = Message> {
    let values = prop::collection::vec(-1e9f32..1e9, dimension);
    let codec = prop::sample::select(Codec::ALL.to_vec());
    (generations(), any::<[u64; 8]>(), values, codec).prop_map(|(generation, n, values, codec)| {
        let header = ParcelHeader {
            generation,
            sender_incarnation: n[0],
            receiver_incarnation: n[1],
            base: n[2],
            acked: n[6],
            seq: n[3],
            previous: Chain([n[7] as u8; 32]),
            chain: Chain([n[0] as u8; 32]),
            step: n[4],
            mass: Mass::from_units(n[5]),
            mac: Mac::from([n[5] as u8; 16]),
        };
        Message::Parcel(Parcel { header, payload: Payload::encoded(codec, &values, n[3]).unwrap() })
    })
}

fn certificates() -> impl Strategy<Value = Message> {
    let ends = prop::collection::vec(any::<(u32, u64, u64)>(), 0..40).prop_map(|ends| {
        let end = |(from, sender_incarnation, applied)| LinkEnd {
            from: NodeId(from),
            sender_incarnation,
            applied,
            rejected: Rejections::default(),
        };
        ends.into_iter().map(end).collect()
    });
    let evidence = prop::collection::vec((any::<u32>().prop_map(NodeId), sent()), 0..5);
    let certificate = (generations(), any::<(u32, u64)>(), ends, evidence, signatures());
    certificate.prop_map(|(generation, (leaver, incarnation), ends, evidence, signature)| {
        Message::Left(LeaveCertificate { generation, leaver: NodeId(leaver), incarnation, ends, evidence, signature })
    })
}

fn processes() -> impl Strategy<Value = Message> {
    let other = proptest::option::of((
        any::<u64>(),
        prop::sample::select(vec![Fate::Unknown, Fate::OtherEnds, Fate::ThisEnds]),
    ));
    let parts = (generations(), any::<u32>(), any::<[u64; 3]>(), other, signatures());
    parts.prop_map(|(generation, node, [boot_nonce, number, age_ms], other, signature)| {
        let other = other.map(|(boot_nonce, fate)| OtherProcess { boot_nonce, fate });
        let node = NodeId(node);
        Message::Process(ProcessStatement { generation, node, boot_nonce, number, age_ms, other, signature })
    })
}

fn messages() -> impl Strategy<Value = Message> {
    let acks = (generations(), identities(), identities(), link_states())
        .prop_map(|(generation, identity, seen, link)| Message::Ack(Ack { generation, identity, seen, link }));
    let envelopes = (any::<[u8; 32]>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..3_000));
    let envelopes = envelopes.prop_map(|(task, attempt, frame)| Message::Collective(Envelope { task, attempt, frame }));
    prop_oneof![hellos(), acks, parcels(DIMENSION), certificates(), processes(), envelopes]
}

#[test]
fn of_a_hello_of_another_version_its_version_is_read_whatever_else_there_is() {
    for (version, rest) in [(PROTOCOL_VERSION - 1, &[9; 40][..]), (PROTOCOL_VERSION + 1, &[]), (u16::MAX, &[0xff; 300])]
    {
        let body = [postcard::to_stdvec(&version).unwrap(), rest.to_vec()].concat();
        let frame = [&u32::try_from(body.len()).unwrap().to_le_bytes()[..], &[1], &body].concat();
        let read = MessageReader::new(DIMENSION).feed(&frame).unwrap();
        let [Message::Hello(hello)] = &read[..] else { panic!("{read:?}") };
        assert_eq!(hello.version, version);
        assert_eq!(read[0].generation(), None);
    }
}

proptest! {
    #[test]
    fn a_stream_of_messages_comes_out_as_it_went_in_however_it_is_cut(
        sent in prop::collection::vec(messages(), 1..6), cuts in prop::collection::vec(1usize..200, 1..20),
    ) {
        let stream: Vec<u8> = sent.iter().flat_map(bytes_of).collect();
        let mut reader = MessageReader::new(DIMENSION);
        let (mut received, mut rest) = (Vec::new(), stream.as_slice());
        for cut in cuts.iter().cycle() {
            let (piece, tail) = rest.split_at((*cut).min(rest.len()));
            received.extend(reader.feed(piece).unwrap());
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(received, sent);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = MessageReader::new(DIMENSION).feed(&bytes);
    }

    #[test]
    fn a_frame_of_arbitrary_content_never_panics(
        kind in 0u8..10, body in prop::collection::vec(any::<u8>(), 0..300), more in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
        bytes.push(kind);
        bytes.extend(body);
        bytes.extend(more);
        let _ = MessageReader::new(DIMENSION).feed(&bytes);
    }

    #[test]
    fn a_damaged_message_is_an_error_or_another_message_but_never_a_damaged_parcel(
        message in messages(), position: prop::sample::Index, flip in 1u8..=255,
    ) {
        let mut bytes = bytes_of(&message);
        let position = position.index(bytes.len());
        bytes[position] ^= flip;
        for received in MessageReader::new(DIMENSION).feed(&bytes).unwrap_or_default() {
            if let (Message::Parcel(received), Message::Parcel(sent)) = (&received, &message) {
                prop_assert_eq!(received.payload.values(), sent.payload.values());
            }
        }
    }
}

fn sample_parcel(dimension: usize) -> Message {
    let generation = Generation { counter: 0, plan_hash: [7; 32] };
    let header = ParcelHeader {
        acked: 0,
        previous: Chain::default(),
        chain: Chain([9; 32]),
        generation,
        sender_incarnation: 1,
        receiver_incarnation: 1,
        base: 0,
        seq: 3,
        step: 9,
        mass: Mass::ONE,
        mac: Mac::default(),
    };
    let values: Vec<f32> = (0..dimension).map(|i| i as f32 * 0.5).collect();
    Message::Parcel(Parcel { header, payload: Payload::new(&values).unwrap() })
}

/// The control frame of a parcel without its chunks.
fn parcel_header_bytes(dimension: usize) -> Vec<u8> {
    let encoded = encode(sample_parcel(dimension));
    let (control, _) = encoded.frames().next().unwrap();
    control.to_vec()
}

fn heartbeat() -> Message {
    let identity = Incarnation { incarnation: 1, boot_nonce: 1 };
    Message::Ack(Ack {
        generation: Generation { counter: 0, plan_hash: [0; 32] },
        identity,
        seen: identity,
        link: LinkPositions::default(),
    })
}

#[test]
fn a_large_parcel_travels_in_chunks_and_a_heartbeat_may_come_between_them() {
    let dimension = 3 * MAX_CHUNK_BYTES / 4 + 5;
    let parcel = sample_parcel(dimension);
    let heartbeat = heartbeat();
    let encoded = encode(parcel.clone());
    let frames: Vec<Vec<u8>> = encoded.frames().map(|(head, body)| [head, body].concat()).collect();
    assert_eq!(frames.len(), 1 + 4);
    let mut reader = MessageReader::new(dimension);
    let mut received = Vec::new();
    for frame in frames {
        received.extend(reader.feed(&frame).unwrap());
        received.extend(reader.feed(&bytes_of(&heartbeat)).unwrap());
    }
    assert_eq!(received.iter().filter(|message| **message == heartbeat).count(), 5);
    assert_eq!(received.iter().find(|message| **message != heartbeat), Some(&parcel));
}

#[test]
fn a_parcel_of_another_dimension_is_refused_at_its_header() {
    let bytes = parcel_header_bytes(100);
    for expected in [0, 99, 101, MAX_DIMENSION] {
        let error = MessageReader::new(expected).feed(&bytes).unwrap_err();
        assert_eq!(error, WireError::PayloadSize { bytes: 400, expected: expected as u64 * 4 });
    }
}

#[test]
fn a_parcel_with_a_number_that_is_not_finite_is_refused() {
    for (value, index) in [(f32::NAN, 0), (f32::INFINITY, 3), (-2e30, 6)] {
        let mut bytes = bytes_of(&sample_parcel(DIMENSION));
        let start = bytes.len() - 4 * (DIMENSION - index);
        bytes[start..start + 4].copy_from_slice(&value.to_le_bytes());
        let error = MessageReader::new(DIMENSION).feed(&bytes).unwrap_err();
        assert_eq!(error, WireError::Unusable { seq: 3, index });
    }
}

#[test]
fn a_parcel_in_any_codec_arrives_however_it_is_cut_and_is_refused_where_it_is_not_finite() {
    let dimension = 700;
    let values: Vec<f32> = (0..dimension).map(|i| i as f32 - 300.0).collect();
    for codec in Codec::ALL {
        let Message::Parcel(Parcel { header, .. }) = sample_parcel(1) else { unreachable!() };
        let payload = Payload::encoded(codec, &values, 5).unwrap();
        let message = Message::Parcel(Parcel { header, payload: payload.clone() });
        let bytes = bytes_of(&message);
        for piece in [1, 3, 100, 259, 260, 261, bytes.len()] {
            let mut reader = MessageReader::new(dimension);
            let read: Vec<Message> = bytes.chunks(piece).flat_map(|piece| reader.feed(piece).unwrap()).collect();
            assert_eq!(read, std::slice::from_ref(&message), "{codec} in pieces of {piece}");
            // Codes of four and three bits come in whole blocks.
            assert_eq!(MessageReader::new(dimension + 256).feed(&bytes).map_err(|error| error.to_string()).ok(), None);
        }
        // The last two bytes of a f32, a 16-bit float, or the scale of the third block.
        let (at, bad, index) = match codec {
            Codec::F32 => (4 * 513 + 2, [0x80, 0x7f], 513),
            Codec::F16 => (2 * 513, [0x00, 0x7c], 513),
            Codec::Bf16 => (2 * 513, [0x80, 0x7f], 513),
            _ => (2 * codec.encoded_len(256) + 2, [0x80, 0xff], 512),
        };
        let mut bytes = bytes;
        let start = bytes.len() - payload.bytes().len() + at;
        bytes[start..start + 2].copy_from_slice(&bad);
        for piece in [1, 7, bytes.len()] {
            let mut reader = MessageReader::new(dimension);
            let refused = bytes.chunks(piece).find_map(|piece| reader.feed(piece).err());
            assert_eq!(refused, Some(WireError::Unusable { seq: 3, index }), "{codec} in pieces of {piece}");
        }
    }
}

#[test]
fn a_parcel_whose_codec_was_exchanged_for_another_of_the_same_length_is_refused() {
    let Message::Parcel(Parcel { header, .. }) = sample_parcel(1) else { unreachable!() };
    let payload = Payload::encoded(Codec::F16, &[1.0; DIMENSION], 0).unwrap();
    let mut bytes = bytes_of(&Message::Parcel(Parcel { header, payload }));
    // Codec, no reference, length of the payload, hash: the end of the header, before the head of the chunk.
    let codec = bytes.len() - 2 * DIMENSION - FRAME_HEAD_BYTES - 32 - 1 - 1 - 1;
    assert_eq!(bytes[codec], Codec::F16.id());
    bytes[codec] = Codec::Bf16.id();
    assert_eq!(MessageReader::new(DIMENSION).feed(&bytes), Err(WireError::HashMismatch { seq: 3 }));
    bytes[codec] = Codec::ALL.len() as u8;
    assert!(matches!(MessageReader::new(DIMENSION).feed(&bytes), Err(WireError::Malformed { .. })));
}

#[test]
fn a_parcel_that_differs_from_its_hash_is_refused() {
    let mut bytes = bytes_of(&sample_parcel(DIMENSION));
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert_eq!(MessageReader::new(DIMENSION).feed(&bytes), Err(WireError::HashMismatch { seq: 3 }));
}

#[test]
fn frames_longer_than_their_kind_allows_are_refused_at_their_head() {
    for (kind, limit) in [(1u8, MAX_CONTROL_BYTES), (4, MAX_CHUNK_BYTES), (8, MAX_COLLECTIVE_BYTES)] {
        let mut head = ((limit + 1) as u32).to_le_bytes().to_vec();
        head.push(kind);
        let error = MessageReader::new(DIMENSION).feed(&head).unwrap_err();
        assert_eq!(error, WireError::FrameTooLong { kind, bytes: limit + 1, limit });
    }
    let unknown = [0, 0, 0, 0, 99];
    assert_eq!(MessageReader::new(DIMENSION).feed(&unknown), Err(WireError::UnknownKind { kind: 99 }));
}

#[test]
fn chunks_come_only_after_a_header_and_headers_only_after_the_last_chunk() {
    let chunk = [1, 0, 0, 0, 4, 0];
    assert_eq!(MessageReader::new(DIMENSION).feed(&chunk), Err(WireError::UnexpectedChunk));
    let twice = [parcel_header_bytes(DIMENSION), parcel_header_bytes(DIMENSION)].concat();
    assert_eq!(MessageReader::new(DIMENSION).feed(&twice), Err(WireError::Interleaved { missing: 4 * DIMENSION }));
    let mut overlong = parcel_header_bytes(DIMENSION);
    overlong.extend((4 * DIMENSION as u32 + 3).to_le_bytes());
    overlong.push(4);
    overlong.extend(vec![0; 4 * DIMENSION + 3]);
    assert_eq!(MessageReader::new(DIMENSION).feed(&overlong), Err(WireError::TooManyBytes { excess: 3 }));
}

#[test]
fn bytes_after_a_control_message_and_long_descriptions_are_refused() {
    let mut bytes = bytes_of(&heartbeat());
    bytes.push(0);
    bytes[0] += 1;
    assert!(matches!(MessageReader::new(0).feed(&bytes), Err(WireError::Malformed { kind: 2, .. })));
    let hello = Hello {
        version: PROTOCOL_VERSION,
        generation: Generation { counter: 0, plan_hash: [0; 32] },
        task: TaskDigest { hash: [0; 32], description: "x".repeat(MAX_DESCRIPTION + 1) },
        identity: SignedIdentity::unsigned(Incarnation { incarnation: 1, boot_nonce: 1 }),
        resumed: false,
        seen: None,
        link: LinkPositions::default(),
        evidence: Evidence::default(),
    };
    let bytes = bytes_of(&Message::Hello(Box::new(hello)));
    assert!(matches!(MessageReader::new(0).feed(&bytes), Err(WireError::Malformed { kind: 1, .. })));
}

#[test]
fn frames_of_kinds_that_are_not_used_any_more_are_refused() {
    for kind in [5, 6] {
        let frame = [&1u32.to_le_bytes()[..], &[kind, 0]].concat();
        assert_eq!(MessageReader::new(0).feed(&frame), Err(WireError::UnknownKind { kind }));
    }
}

/// A reader that has the header of this parcel, and knows that its payload travels elsewhere.
fn awaiting(parcel: &Message, name: u64) -> MessageReader {
    let mut reader = MessageReader::new(DIMENSION).with_payloads_elsewhere();
    let encoded = encode(parcel.clone());
    let (header, _) = encoded.frames().next().unwrap();
    assert_eq!(reader.feed(&[header, &elsewhere(name)].concat()).unwrap(), []);
    reader
}

fn payload_of(message: &Message) -> Payload {
    let Message::Parcel(parcel) = message else { panic!("{message:?}") };
    parcel.payload.clone()
}

#[test]
fn a_payload_that_came_elsewhere_completes_its_parcel_and_heartbeats_pass_meanwhile() {
    let parcel = sample_parcel(DIMENSION);
    let payload = payload_of(&parcel);
    let mut reader = awaiting(&parcel, 77);
    assert_eq!(reader.awaited(), Some((77, payload.bytes().len())));
    assert_eq!(reader.unfinished(), None, "its pace is not that of the stream");
    assert_eq!(reader.feed(&bytes_of(&heartbeat())).unwrap(), [heartbeat()]);
    assert_eq!(reader.feed(&aside(b"a word")).unwrap(), []);
    assert_eq!(reader.take_asides(), [b"a word".to_vec()]);
    assert_eq!(reader.supply(payload.bytes()), Some(parcel.clone()));
    assert_eq!((reader.awaited(), reader.supply(payload.bytes())), (None, None));
    assert_eq!(reader.feed(&bytes_of(&parcel)).unwrap(), [parcel], "the next one may come as ever");
}

#[test]
fn a_payload_that_is_not_the_announced_one_is_refused_and_its_chunks_can_still_come() {
    let parcel = sample_parcel(DIMENSION);
    let payload = payload_of(&parcel);
    let mut reader = awaiting(&parcel, 1);
    let mut changed = payload.bytes().to_vec();
    changed[0] ^= 1;
    let infinite = f32::INFINITY.to_le_bytes().repeat(DIMENSION);
    for other in [&changed[..], &payload.bytes()[1..], &[], &infinite] {
        assert_eq!(reader.supply(other), None);
        assert_eq!(reader.awaited(), Some((1, payload.bytes().len())));
    }
    let encoded = encode(parcel.clone());
    let chunks: Vec<u8> = encoded.frames().skip(1).flat_map(|(head, body)| [head, body].concat()).collect();
    assert_eq!(reader.feed(&chunks[..7]).unwrap(), []);
    assert_eq!(reader.awaited(), None, "the stream has the rest");
    assert_eq!(reader.supply(payload.bytes()), None);
    assert_eq!(reader.feed(&chunks[7..]).unwrap(), [parcel]);
}

#[test]
fn frames_about_payloads_elsewhere_are_refused_where_nobody_agreed_on_them() {
    for frame in [elsewhere(3), aside(b"word")] {
        let kind = frame[4];
        assert_eq!(MessageReader::new(DIMENSION).feed(&frame), Err(WireError::UnknownKind { kind }));
    }
    let mut reader = MessageReader::new(DIMENSION).with_payloads_elsewhere();
    assert_eq!(reader.feed(&elsewhere(3)), Err(WireError::UnexpectedChunk), "no header came");
    let mut reader = awaiting(&sample_parcel(DIMENSION), 1);
    assert_eq!(reader.feed(&elsewhere(2)), Err(WireError::UnexpectedChunk), "it has a name");
    let mut reader = awaiting(&sample_parcel(DIMENSION), 1);
    assert!(matches!(reader.feed(&bytes_of(&sample_parcel(DIMENSION))), Err(WireError::Interleaved { .. })));
}

#[test]
fn frames_about_payloads_elsewhere_have_the_bytes_that_they_had() {
    assert_eq!(elsewhere(300), [2, 0, 0, 0, 10, 0xac, 2]);
    assert_eq!(aside(&[7, 8]), [2, 0, 0, 0, 11, 7, 8]);
}
