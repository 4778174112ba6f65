//! Memory that a file can make a reader of records allocate: a small multiple of its own length, whatever its content.
#![allow(clippy::unwrap_used)]

use mingle_protocol::record::{Outline, RecordError};
use mingle_protocol::*;
use peak_alloc::PeakAlloc;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const HEAD_BYTES: usize = 24;
const CHECKSUM_BYTES: usize = 32;

/// Vectors are copied once. Books are larger in memory than as bytes (a parcel takes at least 36 of them and 64 there,
/// a link as many again), and are written again to be compared.
const MULTIPLE: usize = 8;
/// The most that Serde reserves for a list before it has seen one of its items.
const ALLOWANCE: usize = (1 << 20) + (16 << 10);

fn peak_bytes(read: impl Fn() -> bool) -> (usize, bool) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let was_read = read();
    (MEMORY.peak_usage() - before, was_read)
}

fn books(links: u32, host: usize) -> Books {
    let parcel = |seq| Owed { seq, step: seq, mass: Mass::ONE, chain: Chain::default(), record: seq };
    let outbox: Vec<Owed> = (1..=WINDOW as u64).map(parcel).collect();
    let link = OutBooks { next_seq: WINDOW as u64 + 1, outbox, ..OutBooks::default() };
    Books {
        number: 10,
        generation: Generation { counter: 0, plan_hash: [7; 32] },
        task: [8; 32],
        id: NodeId(0),
        incarnation: 1,
        brought: Mass::ONE,
        mass: Mass::ONE,
        step: 10,
        split_done: true,
        neighbours: [].into(),
        incoming: (1..=links).map(|id| (NodeId(id), InBooks::default())).collect(),
        outgoing: (1..=links).map(|id| (NodeId(id), link.clone())).collect(),
        left: Vec::new(),
        evidence: Default::default(),
        host: vec![1; host].into(),
    }
}

fn encoded(books: Books, dimension: usize) -> Vec<u8> {
    let values = vec![1.0; dimension];
    let payload = Some(Payload::new(&values).unwrap());
    // Far from what follows from the payload, so that it is written whole.
    let numerator = (0..dimension).map(|at| if at % 2 == 0 { 1.0 } else { -1e-30 }).collect();
    let record = Record { books, numerator, ratio: Some(values.into()), held_back: None, payload };
    let mut bytes = Vec::new();
    record.encode(&mut bytes).unwrap();
    bytes
}

/// A record without vectors, of these books, with the right checksum, in the format that is written.
fn sealed(books: &[u8]) -> Vec<u8> {
    let honest = encoded(self::books(1, 0), 1);
    let (magic_and_version, lengths) = (&honest[..12], [books.len() as u32, 0]);
    let content = [magic_and_version, &[255, 0, 0, 0], bytemuck::cast_slice(&lengths), books].concat();
    [&content[..], blake3::hash(&content).as_bytes()].concat()
}

/// Files that claim to be longer than they are, in one place or another.
fn hostile_files() -> Vec<(String, Vec<u8>)> {
    let honest = encoded(books(3, 10), 5);
    let books_bytes = u32::from_le_bytes(honest[16..20].try_into().unwrap()) as usize;
    let mut files = Vec::new();
    for (at, field) in [(16, "books"), (20, "coordinates")] {
        for value in [1 << 20, 1 << 26, 1 << 28, u32::MAX] {
            let mut file = honest.clone();
            file[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
            files.push((format!("{value} {field} that are not there"), file));
        }
    }
    // They get past the head: as they are, the books are read.
    let plain = &honest[HEAD_BYTES..HEAD_BYTES + books_bytes];
    assert!(!matches!(Record::decode(&sealed(plain)), Err(RecordError::Version { .. } | RecordError::Torn)));
    // Under a right checksum every byte of the books claims, in turn, that very much follows.
    for at in 0..plain.len() {
        for claim in [&[0xff_u8, 0xff, 0x03][..], &[0xff, 0xff, 0xff, 0x7f], &[0xff; 10]] {
            let changed = [&plain[..at], claim, &plain[at + 1..]].concat();
            files.push((format!("a claim of {} bytes at {at}", claim.len()), sealed(&changed)));
            files.push((format!("a claim of {} bytes at {at}, and padding", claim.len()), {
                sealed(&[&changed[..], &[0; 100_000]].concat())
            }));
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    for number in 0..2000 {
        let mut noise = vec![0; rng.random_range(0..2000)];
        rng.fill_bytes(&mut noise);
        files.push((format!("noise {number}"), sealed(&noise)));
    }
    files
}

/// One test, since every thread of the process counts.
#[test]
fn no_file_makes_a_reader_hold_more_than_a_small_multiple_of_its_length() {
    for (name, file) in hostile_files() {
        let limit = MULTIPLE * file.len() + ALLOWANCE;
        let (peak, _) = peak_bytes(|| Record::decode(&file).is_ok());
        assert!(peak <= limit, "{name}: {peak} bytes, not {limit}");
    }
    // Honest records, large in one way or another, stay far below: the vectors once, and the books a few times.
    for (links, host, dimension) in [(2, 0, 1 << 20), (20_000, 0, 1), (1, 64 << 10, 1)] {
        let file = encoded(books(links, host), dimension);
        let (peak, was_read) = peak_bytes(|| Record::decode(&file).is_ok());
        assert!(was_read);
        let limit = 12 * dimension + MULTIPLE * (file.len() - 12 * dimension) + (64 << 10);
        assert!((file.len() - CHECKSUM_BYTES..=limit).contains(&peak), "{links} links: {peak} bytes, not {limit}");
        // An outline has no vectors.
        let (peak, was_read) = peak_bytes(|| Outline::read(&file).is_ok());
        assert!(
            was_read && peak <= MULTIPLE * (file.len() - 12 * dimension) + (64 << 10),
            "{links} links: {peak} bytes"
        );
    }
}
