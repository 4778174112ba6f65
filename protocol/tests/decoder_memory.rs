//! Memory that a peer can make a reader allocate: never more than one payload and a little for control frames.
#![allow(clippy::unwrap_used)]

use mingle_protocol::wire::{FRAME_HEAD_BYTES, MAX_CHUNK_BYTES, MAX_CONTROL_BYTES, MessageReader, encode};
use mingle_protocol::*;
use peak_alloc::PeakAlloc;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const DIMENSION: usize = 1 << 20;
const PAYLOAD_BYTES: usize = 4 * DIMENSION;

/// Bytes that the host hands to the reader at a time.
const PIECE_BYTES: usize = 4 * 1024;

/// For control frames: a body that grows by doubling (the old half, the new whole, up to twice its length) and what is
/// decoded from it, less than as much again.
const CONTROL_ALLOWANCE: usize = 4 * MAX_CONTROL_BYTES;

/// For the messages that one piece completes, and their vector grows by doubling.
const MESSAGE_ALLOWANCE: usize = 3 * size_of::<Message>() * PIECE_BYTES / (FRAME_HEAD_BYTES + SMALLEST_BODY);

/// The smallest message is one of a collective: a hash, the attempt and no content.
const SMALLEST_BODY: usize = HASH_BYTES + 2;

const HELLO: u8 = 1;
const PARCEL: u8 = 3;
const CHUNK: u8 = 4;
const COLLECTIVE: u8 = 8;
/// The largest kind of a frame.
const PROCESS: u8 = 9;
const HASH_BYTES: usize = 32;

/// The most that a reader and its messages occupied at any time, until the stream ended or was refused.
fn peak_bytes(dimension: usize, stream: &[u8]) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let mut reader = MessageReader::new(dimension);
    for piece in stream.chunks(PIECE_BYTES) {
        if reader.feed(piece).is_err() {
            break;
        }
    }
    MEMORY.peak_usage() - before
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..], &[kind], body].concat()
}

/// A frame that announces more than follows.
fn cut_frame(kind: u8, announced: u32, body: &[u8]) -> Vec<u8> {
    [&announced.to_le_bytes()[..], &[kind], body].concat()
}

/// A number as a varint.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn generation() -> Generation {
    Generation { counter: 0, plan_hash: [7; 32] }
}

/// The header of a parcel that announces `payload_bytes`.
fn parcel_header(payload_bytes: u64) -> Vec<u8> {
    let header = ParcelHeader {
        generation: generation(),
        sender_incarnation: 1,
        receiver_incarnation: 1,
        base: 0,
        acked: 0,
        seq: 1,
        previous: Chain::default(),
        chain: Chain([9; 32]),
        step: 1,
        mass: Mass::ONE,
        mac: mingle_protocol::Mac::default(),
    };
    let empty = encode(Message::Parcel(Parcel { header, payload: Payload::new(&[]).unwrap() }));
    let (control, _) = empty.frames().next().unwrap();
    let (length, hash) = (control.len() - HASH_BYTES - 1, &control[control.len() - HASH_BYTES..]);
    assert_eq!(control[length], 0, "the byte before the hash is the length of the payload");
    frame(PARCEL, &[&control[FRAME_HEAD_BYTES..length], &varint(payload_bytes), hash].concat())
}

/// A greeting that announces a description of `length` bytes and has `follows` of them.
fn hello(length: u64, follows: usize) -> Vec<u8> {
    let before = [varint(u64::from(PROTOCOL_VERSION)), varint(0), vec![0; 2 * HASH_BYTES]].concat();
    frame(HELLO, &[before, varint(length), vec![b'x'; follows]].concat())
}

/// `bytes` of bulk in chunks of `chunk_bytes`.
fn chunks(bytes: usize, chunk_bytes: usize) -> Vec<u8> {
    let whole = frame(CHUNK, &vec![0; chunk_bytes]);
    [whole.repeat(bytes / chunk_bytes), frame(CHUNK, &vec![0; bytes % chunk_bytes])].concat()
}

/// The streams of a peer that announces much and sends little, or sends what was never announced.
fn hostile_streams() -> Vec<(&'static str, Vec<u8>)> {
    let exact = parcel_header(PAYLOAD_BYTES as u64);
    let mut streams = vec![
        ("a payload of 2^64 bytes", [parcel_header(u64::MAX), chunks(10, 10)].concat()),
        ("a payload of 2^63 coordinates", parcel_header(1 << 63)),
        ("a payload one coordinate too long", [parcel_header(PAYLOAD_BYTES as u64 + 4), chunks(10, 10)].concat()),
        ("an empty payload", parcel_header(0)),
        ("the header of a payload, a thousand times", exact.repeat(1000)),
        ("a payload that stops after a byte", [exact.clone(), chunks(1, 1)].concat()),
        ("a payload that is announced again after a byte", [exact.clone(), chunks(1, 1), exact.clone()].concat()),
        ("a payload of zeros under a wrong hash", [exact.clone(), chunks(PAYLOAD_BYTES, MAX_CHUNK_BYTES)].concat()),
        ("a payload that does not end", [exact.clone(), chunks(2 * PAYLOAD_BYTES, MAX_CHUNK_BYTES)].concat()),
        ("a payload in chunks of 3 bytes", [exact.clone(), chunks(60_000, 3)].concat()),
        ("a chunk longer than chunks may be", [exact.clone(), cut_frame(CHUNK, u32::MAX, &[0; 9])].concat()),
        ("a description of 2^64 bytes", hello(u64::MAX, 20)),
        ("a description of 4 GiB", hello(1 << 32, MAX_CONTROL_BYTES / 2)),
        ("a description as long as a control frame", hello(65_000, 65_000)),
        ("nothing but the smallest messages", frame(COLLECTIVE, &[0; SMALLEST_BODY]).repeat(20_000)),
    ];
    for kind in 0..=PROCESS + 1 {
        for announced in [MAX_CONTROL_BYTES, MAX_CONTROL_BYTES + 1, MAX_CHUNK_BYTES, u32::MAX as usize] {
            for follows in [0, 1, 5000, announced.min(MAX_CONTROL_BYTES) - 1] {
                streams.push(("a frame cut short", cut_frame(kind, announced as u32, &vec![0xff; follows])));
            }
        }
    }
    streams
}

/// Frames of every kind with bodies of noise or of plausible headers; each stream breaks off somewhere.
fn noise(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..rng.random_range(1..8) {
        let mut body = vec![0; rng.random_range(0..200)];
        rng.fill_bytes(&mut body);
        stream.extend(match rng.random_range(0..5) {
            0 => parcel_header(PAYLOAD_BYTES as u64),
            1 => parcel_header(rng.next_u64()),
            2 => hello(rng.random_range(0..300), rng.random_range(0..300)),
            3 => frame(CHUNK, &body),
            _ => cut_frame(rng.random_range(0..=PROCESS), rng.next_u32() >> rng.random_range(0..32), &body),
        });
    }
    stream.truncate(rng.random_range(0..=stream.len()));
    stream
}

/// One test, since every thread of the process counts.
#[test]
fn no_stream_makes_a_reader_hold_more_than_one_payload_and_a_few_control_frames() {
    let small = CONTROL_ALLOWANCE + MESSAGE_ALLOWANCE;
    let limit = |dimension: usize| small + 4 * dimension;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let noise: Vec<_> = (0..3_000).map(|_| ("noise", noise(&mut rng))).collect();
    for (number, (name, stream)) in hostile_streams().iter().chain(&noise).enumerate() {
        for dimension in [0, 1, DIMENSION] {
            let (peak, limit) = (peak_bytes(dimension, stream), limit(dimension));
            assert!(peak <= limit, "{name} (stream {number}), dimension {dimension}: {peak} bytes, not {limit}");
        }
    }
    // A header alone costs next to nothing, a reader that took nothing but control frames as little.
    let headers = parcel_header(PAYLOAD_BYTES as u64);
    assert!(peak_bytes(DIMENSION, &headers) < 16 * 1024);
    assert!(peak_bytes(DIMENSION, &hello(65_000, 65_000)) <= CONTROL_ALLOWANCE);
    // The meter works: the first byte of an expected payload does allocate all of it, and it is given back.
    let before = MEMORY.current_usage();
    assert!(peak_bytes(DIMENSION, &[headers, chunks(1, 1)].concat()) >= PAYLOAD_BYTES);
    assert!(MEMORY.current_usage() < before + 16 * 1024);
}
