//! Records: they are read as they were written, and nothing in a file does harm.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use mingle_protocol::record::{FORMAT_VERSION, Outline, RecordError};
use mingle_protocol::*;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

fn masses() -> impl Strategy<Value = Mass> {
    (0..1_u64 << 60).prop_map(Mass::from_units)
}

fn chains() -> impl Strategy<Value = Chain> {
    any::<[u8; 32]>().prop_map(Chain)
}

fn in_links() -> impl Strategy<Value = InBooks> {
    (any::<[u64; 3]>(), chains(), any::<Option<u64>>(), any::<[u128; 2]>()).prop_map(|(n, chain, last_step, totals)| {
        InBooks {
            sender_incarnation: n[0],
            base: n[1].min(n[2]),
            applied: n[1].max(n[2]),
            rejected: Rejections::default(),
            chain,
            last_step,
            applied_total: totals[0],
            applied_from_earlier_lives: totals[1],
        }
    })
}

/// Links of a node in step `top`, whose newest record has the same number.
fn out_links(top: u64) -> impl Strategy<Value = OutBooks> {
    let owed = btree_map(1..=top, (masses(), chains()), 0..=WINDOW);
    (any::<[u32; 3]>(), chains(), owed, any::<[u128; 5]>()).prop_map(|(n, acked_chain, owed, totals)| {
        let (base, acked) = (u64::from(n[1]), u64::from(n[1]) + u64::from(n[2]));
        let outbox: Vec<Owed> = (acked + 1..)
            .zip(owed)
            .map(|(seq, (record, (mass, chain)))| Owed { seq, step: record, mass, chain, record })
            .collect();
        OutBooks {
            receiver_incarnation: u64::from(n[0]),
            base,
            next_seq: acked + 1 + outbox.len() as u64,
            acked,
            acked_chain,
            outbox,
            sent_total: totals[0],
            acked_total: totals[1],
            acked_by_earlier_lives: totals[2],
            written_off: totals[3],
            returned: totals[4],
        }
    })
}

fn evidence() -> impl Strategy<Value = Evidence> {
    let mac = || any::<[u8; 16]>().prop_map(Mac::from);
    let sent =
        (any::<u64>(), any::<[u8; 32]>(), mac()).prop_map(|(seq, chain, mac)| Sent { seq, chain: Chain(chain), mac });
    let applied = (any::<u64>(), mac()).prop_map(|(seq, mac)| Applied { seq, mac });
    (option::of(sent), option::of(applied)).prop_map(|(sent, applied)| Evidence { sent, applied })
}

fn books() -> impl Strategy<Value = Books> {
    let ids = || (1_u32..MAX_NODES as u32).prop_map(NodeId);
    let links = (WINDOW as u64..1 << 40).prop_flat_map(move |top| {
        (Just(top), btree_map(ids(), in_links(), 0..4), btree_map(ids(), out_links(top), 0..4))
    });
    let own = (any::<u64>(), any::<[[u8; 32]; 2]>(), any::<u64>(), [masses(), masses()], any::<bool>());
    (links, own, btree_map(ids(), evidence(), 0..4), vec(any::<u8>(), 0..50)).prop_map(
        |((top, incoming, outgoing), own, evidence, host)| {
            let (counter, [plan_hash, task], incarnation, [brought, mass], split_done) = own;
            Books {
                number: top,
                generation: Generation { counter, plan_hash },
                task,
                id: NodeId(0),
                incarnation,
                brought,
                mass,
                step: top,
                split_done,
                neighbours: BTreeMap::new(),
                incoming,
                outgoing,
                left: Vec::new(),
                evidence,
                host: host.into(),
            }
        },
    )
}

fn records() -> impl Strategy<Value = Record> {
    let numbers = prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO;
    let vectors = (0_usize..600).prop_flat_map(move |dimension| {
        let codec = prop::sample::select(Codec::ALL.to_vec());
        let payload = (codec, vec(-1e9_f32..1e9, dimension));
        let payload = payload.prop_map(|(codec, values)| Payload::encoded(codec, &values, 0).unwrap());
        (vec(numbers, dimension), option::of(vec(numbers, dimension)), option::weighted(0.8, payload))
    });
    (books(), vectors).prop_map(|(mut books, (numerator, ratio, payload))| {
        if payload.is_none() && books.owed_records().contains(&books.number) {
            books.number += 1;
        }
        Record { books, numerator: numerator.into(), ratio: ratio.map(Into::into), held_back: None, payload }
    })
}

fn bytes_of(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes).unwrap();
    bytes
}

proptest! {
    #[test]
    fn what_is_written_comes_back_and_fits_its_slot(record in records(), behind in vec(any::<u8>(), 0..20)) {
        let mut bytes = bytes_of(&record);
        let Books { incoming, outgoing, .. } = &record.books;
        let most = Record::largest_bytes(record.numerator.len(), incoming.len(), outgoing.len()).unwrap();
        prop_assert!(bytes.len() as u64 <= most);
        bytes.extend(behind);
        prop_assert_eq!(Outline::read(&bytes), Ok(record.outline()));
        prop_assert_eq!(Record::decode(&bytes), Ok(record));
    }

    #[test]
    fn no_changed_byte_goes_unseen(record in records(), position: prop::sample::Index, flip in 1_u8..=255) {
        let mut bytes = bytes_of(&record);
        let position = position.index(bytes.len());
        bytes[position] ^= flip;
        prop_assert!(Record::decode(&bytes).is_err());
    }

    #[test]
    fn an_older_record_that_is_overwritten_in_part_is_torn(
        pair in (records(), records()), cut: prop::sample::Index,
    ) {
        let [old, new] = [bytes_of(&pair.0), bytes_of(&pair.1)];
        let cut = cut.index(new.len());
        let mut slot = new[..cut].to_vec();
        slot.extend(old.get(cut..).unwrap_or_default());
        let whole = [&old, &new].into_iter().any(|record| slot.starts_with(record));
        match Record::decode(&slot) {
            Ok(found) => prop_assert!(whole && (found == pair.0 || found == pair.1)),
            Err(error) => prop_assert!(!whole, "{}", error),
        }
    }

    #[test]
    fn arbitrary_books_under_a_right_checksum_never_panic(books in vec(any::<u8>(), 0..300), dimension in 0_u32..3) {
        let head = [&b"mgl-mass"[..], &FORMAT_VERSION.to_le_bytes(), &[255, 0, 0, 0], &(books.len() as u32).to_le_bytes()];
        let content = [&head.concat()[..], &dimension.to_le_bytes(), &books, &vec![0; 4 * dimension as usize]].concat();
        let bytes = [&content[..], blake3::hash(&content).as_bytes()].concat();
        // Almost none are books. The head is right, so no other error can come.
        match Record::decode(&bytes) {
            Err(
                RecordError::NotARecord
                | RecordError::Version { .. }
                | RecordError::Cut { .. }
                | RecordError::Torn
                | RecordError::Empty,
            ) => {
                prop_assert!(false, "the head was refused");
            }
            Ok(record) => prop_assert_eq!(bytes_of(&record), bytes),
            Err(_) => {}
        }
    }
}

/// The record of a format version in its file: later releases read those that earlier ones wrote.
fn golden(version: u32, new: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let path = format!("{}/tests/golden/record-{version}.rec", env!("CARGO_MANIFEST_DIR"));
    if !std::fs::exists(&path).unwrap() && std::env::var_os("MINGLE_GOLDEN").is_some_and(|mode| mode == "write") {
        std::fs::write(&path, new()).unwrap();
    }
    std::fs::read(path).unwrap()
}

/// A record as format 3 could hold it.
fn sample() -> Record {
    let incoming = InBooks { sender_incarnation: 1, applied: 1, chain: Chain([3; 32]), ..InBooks::default() };
    let owed = Owed { seq: 2, step: 5, mass: Mass::ONE, chain: Chain([4; 32]), record: 7 };
    let outgoing = OutBooks { next_seq: 3, acked: 1, outbox: vec![owed], sent_total: 9, ..OutBooks::default() };
    let signature = Signature::from([6; 64]);
    let life = SignedIdentity { identity: Incarnation { incarnation: 1, boot_nonce: 9 }, signature };
    let books = Books {
        number: 7,
        generation: Generation { counter: 1, plan_hash: [1; 32] },
        task: [2; 32],
        id: NodeId(300),
        incarnation: 1,
        brought: Mass::ONE,
        mass: Mass::from_units(5),
        step: 6,
        split_done: false,
        neighbours: BTreeMap::from([(NodeId(1), life)]),
        incoming: BTreeMap::from([(NodeId(1), incoming)]),
        outgoing: BTreeMap::from([(NodeId(2), outgoing)]),
        left: Vec::new(),
        evidence: BTreeMap::new(),
        host: b"h".to_vec().into(),
    };
    let payload = Payload::new(&[0.5, -1.0]).unwrap();
    Record { books, numerator: [1.0, 2.0].into(), ratio: None, held_back: None, payload: Some(payload) }
}

/// A record as formats 4 and 5 could hold it.
fn sample_with_evidence() -> Record {
    let mut record = sample();
    let sent = Sent { seq: 300, chain: Chain([3; 32]), mac: Mac::from([7; 16]) };
    let evidence = Evidence { sent: Some(sent), applied: Some(Applied { seq: 1, mac: Mac::from([8; 16]) }) };
    record.books.evidence = BTreeMap::from([(NodeId(1), evidence)]);
    record
}

#[test]
fn the_bytes_of_a_record_do_not_change_from_version_to_version() {
    // A split as nodes make it: the numerator is nearly what follows from the payload.
    let mut record = sample_with_evidence();
    record.books.outgoing.get_mut(&NodeId(2)).unwrap().outbox[0].mass = Mass::from_units(5);
    let ratio: Vec<f32> = (0..300).map(|at| (at * at) as f32 / 7.0 - 3000.0).collect();
    let numerator = ratio.iter().enumerate().map(|(at, z)| 5e-12 * z * if at == 9 { 1.001 } else { 0.9095 });
    record.numerator = numerator.collect();
    record.payload = Some(Payload::new(&ratio).unwrap());
    let bytes = bytes_of(&record);
    let golden = golden(FORMAT_VERSION, || bytes.clone());
    assert_eq!(golden, bytes, "a change needs another FORMAT_VERSION");
    assert_eq!(Record::decode(&golden).unwrap(), record);
    assert!(bytes.len() < 347 + 2 * 4 * 300 - 300, "{} bytes", bytes.len());
}

#[test]
fn records_of_formats_4_and_5_are_read_and_go_on_in_the_present_one() {
    for version in [4, 5] {
        let golden = golden(version, || panic!("no release writes it any more"));
        let read = Record::decode(&golden).unwrap();
        assert_eq!(read, sample_with_evidence(), "version {version}");
        assert_eq!(Outline::read(&golden).unwrap(), read.outline());
        assert_eq!(Record::decode(&bytes_of(&read)).unwrap(), read);
    }
}

#[test]
fn a_record_of_format_3_is_read_and_goes_on_in_the_present_one() {
    let golden = golden(3, || panic!("no release writes it any more"));
    let digest = blake3::hash(&golden).to_hex();
    assert_eq!((golden.len(), &digest[..16]), (347, "dc657fec3dcf842b"));
    let read = Record::decode(&golden).unwrap();
    assert_eq!(read, sample());
    assert_eq!(Outline::read(&golden).unwrap(), read.outline());
    assert_eq!(Record::decode(&bytes_of(&read)).unwrap(), read);
    // The certificate of a node that left is in it too, with a signature that is good without evidence.
    let mut changed = golden;
    changed[70] ^= 1;
    assert_eq!(Record::decode(&changed), Err(RecordError::Torn));
}
