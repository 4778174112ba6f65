#![allow(clippy::unwrap_used)]
use super::*;
use crate::evidence::{Applied, Evidence, Sent};
use crate::mass::Mass;
use crate::message::{Generation, Incarnation};
use crate::record::tests::{books, full_record, owing, record};
use crate::record::{InBooks, OutBooks, Owed, most_host_bytes, most_training_bytes};
use crate::reference::ReferenceId;
use crate::schedule::{MAX_NODES, MAX_PERIOD, NodeId};
use crate::statement::SignedIdentity;

fn encoded(record: &Record) -> Vec<u8> {
    let mut bytes = vec![0xaa; 7];
    record.encode(&mut bytes).unwrap();
    bytes
}

/// The bytes with a checksum that fits them.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let content = bytes.len() - CHECKSUM_BYTES;
    let checksum = blake3::hash(&bytes[..content]);
    bytes[content..].copy_from_slice(checksum.as_bytes());
    bytes
}

/// The error of a record after a change, which must be the same for one that is written and for one that is read.
fn refusal(change: impl Fn(&mut Record)) -> RecordError {
    let mut record = full_record();
    change(&mut record);
    let error = record.check().unwrap_err();
    assert_eq!(record.encode(&mut vec![1]), Err(error.clone()));
    let bytes = sealed(written_anyway(&record));
    assert_eq!(Record::decode(&bytes), Err(error.clone()));
    assert_eq!(Outline::read(&bytes), Err(error.clone()));
    assert!(!error.to_string().is_empty());
    error
}

/// The bytes of a writer that does not check the record; the checksum is missing.
fn written_anyway(record: &Record) -> Vec<u8> {
    let books = postcard::to_stdvec(&record.books).unwrap();
    let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    let payload = record.payload.as_ref();
    [
        &MAGIC[..],
        &FORMAT_VERSION.to_le_bytes(),
        &[payload.map_or(NO_PAYLOAD, |payload| payload.codec().id()), u8::from(record.ratio.is_some()), 0, 0],
        &(books.len() as u32).to_le_bytes(),
        &(record.numerator.len() as u32).to_le_bytes(),
        &books,
        &floats(&record.numerator),
        &floats(record.ratio.as_deref().unwrap_or_default()),
        payload.map_or(&[], Payload::bytes),
        &[0; CHECKSUM_BYTES],
    ]
    .concat()
}

/// The link of the full record that owes three parcels.
fn link(record: &mut Record) -> &mut OutBooks {
    record.books.outgoing.get_mut(&NodeId(1)).unwrap()
}

#[test]
fn every_shape_of_record_survives_its_bytes() {
    let without = |record: Record| Record { ratio: None, payload: None, ..record };
    let empty = Record { numerator: [].into(), payload: Some(Payload::new(&[]).unwrap()), ..record(1) };
    for record in [full_record(), record(1), without(record(2)), empty] {
        let bytes = encoded(&record);
        assert_eq!(Record::decode(&bytes).as_ref(), Ok(&record));
        assert_eq!(Outline::read(&bytes).as_ref(), Ok(&record.outline()));
        assert_eq!(record.encoded().unwrap().total_bytes(), bytes.len() as u64);
        assert_eq!(sealed(written_anyway(&record)), bytes, "the layout is that of the module's page");
    }
}

#[test]
fn what_stands_behind_a_record_in_its_slot_does_not_matter() {
    let bytes = [encoded(&record(1)), encoded(&full_record())].concat();
    assert_eq!(Record::decode(&bytes), Ok(record(1)));
}

#[test]
fn no_single_bit_can_change_and_no_byte_be_missing() {
    let bytes = encoded(&full_record());
    for at in (0..bytes.len()).step_by(if cfg!(miri) { 29 } else { 1 }) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(Record::decode(&changed).is_err(), "byte {at}");
        assert!(Outline::read(&bytes[..at]).is_err(), "cut to {at} bytes");
    }
    let last = bytes.len() - 1;
    let cut = RecordError::Cut { bytes: last as u64, needed: bytes.len() as u64 };
    assert_eq!(Record::decode(&bytes[..last]), Err(cut));
}

#[test]
fn an_unused_slot_is_told_from_a_spoiled_one() {
    for length in [0, 1, HEAD_BYTES, 5000] {
        assert_eq!(Record::decode(&vec![0; length]), Err(RecordError::Empty), "{length}");
    }
    // A first write of which the end reached the disk, and the beginning did not.
    let mut bytes = vec![0; 5000];
    bytes[4999] = 1;
    assert_eq!(Record::decode(&bytes), Err(RecordError::NotARecord));
    assert!(matches!(Record::decode(&[0, 1]), Err(RecordError::Cut { .. })));
    // A write that was cut off in the middle of an older record.
    let mut bytes = encoded(&full_record());
    bytes.resize(5000, 0);
    let end = encoded(&full_record()).len();
    bytes[end - 40..end].fill(0);
    assert_eq!(Record::decode(&bytes), Err(RecordError::Torn));
}

#[test]
fn heads_of_other_versions_and_with_unknown_fields_are_refused() {
    let with = |at: usize, value: u8| {
        let mut bytes = encoded(&full_record());
        bytes[at] = value;
        Record::decode(&sealed(bytes)).unwrap_err()
    };
    assert_eq!(with(0, b'M'), RecordError::NotARecord);
    for found in [1, 2, 7] {
        assert_eq!(with(8, found), RecordError::Version { found: u32::from(found) });
    }
    assert_eq!(with(12, 9), RecordError::Head { field: "codec", value: 9 });
    assert_eq!(with(13, 8), RecordError::Head { field: "vectors", value: 8 });
    assert_eq!(with(15, 1), RecordError::Head { field: "reserved", value: 256 });
    assert_eq!(
        with(19, 0xff),
        RecordError::BooksTooLong {
            bytes: 0xff00_0000 + u64::from(encoded(&full_record())[16]) + (u64::from(encoded(&full_record())[17]) << 8)
        }
    );
    assert_eq!(with(23, 0xff), RecordError::TooManyCoordinates { dimension: 0xff00_0003 });
    assert!(matches!(with(23, 0x0f), RecordError::Cut { .. }));
}

#[test]
fn books_are_read_only_as_they_are_written() {
    let decode = |books: &[u8]| {
        let mut bytes = encoded(&Record { payload: None, ..record(1) });
        let length = u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]) as usize;
        bytes.splice(HEAD_BYTES..HEAD_BYTES + length, books.iter().copied());
        bytes[16..20].copy_from_slice(&(books.len() as u32).to_le_bytes());
        Record::decode(&sealed(bytes))
    };
    let plain = postcard::to_stdvec(&books(1)).unwrap();
    assert!(decode(&plain).is_ok());
    assert_eq!(plain[0], 1, "the number comes first");
    // The same number with a needless byte, something behind the books, books that end early.
    let long_number = [&[0x81, 0x00], &plain[1..]].concat();
    for wrong in [long_number, [&plain[..], &[0]].concat(), plain[..plain.len() - 1].to_vec(), Vec::new()] {
        assert!(matches!(decode(&wrong), Err(RecordError::Malformed { .. })), "{wrong:?}");
    }
    // The same link twice: a map would keep the second and forget the first.
    let mut twice = books(1);
    twice.incoming = [(NodeId(1), InBooks::default()), (NodeId(2), InBooks::default())].into();
    let mut twice = postcard::to_stdvec(&twice).unwrap();
    let second = twice.iter().rposition(|byte| *byte == 2).unwrap();
    assert_eq!(Ok(2), decode(&twice).map(|record| record.books.incoming.len()));
    twice[second] = 1;
    assert!(matches!(decode(&twice), Err(RecordError::Malformed { .. })));
}

#[test]
fn vectors_must_be_finite_and_of_one_length() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = refusal(|record| record.numerator = [0.0, value, 0.0].into());
        assert_eq!(error, RecordError::NotFinite { vector: "numerator", index: 1 });
        let error = refusal(|record| record.ratio = Some([0.0, 0.0, value].into()));
        assert_eq!(error, RecordError::NotFinite { vector: "ratio", index: 2 });
    }
    let mut long = vec![0.0; 5000];
    long[4321] = f32::NAN;
    let error = check_finite("numerator", bytemuck::cast_slice(&long));
    assert_eq!(error, Err(RecordError::NotFinite { vector: "numerator", index: 4321 }));
    // In bytes another length of one vector is a wrong checksum, so these two are mistakes of a writer only.
    let written = |change: &dyn Fn(&mut Record)| {
        let mut record = full_record();
        change(&mut record);
        record.check().unwrap_err()
    };
    let error = written(&|record| record.ratio = Some([0.0].into()));
    assert_eq!(error, RecordError::Dimension { vector: "ratio", found: 1, dimension: 3 });
    let error = written(&|record| record.payload = Some(Payload::new(&[0.0; 4]).unwrap()));
    assert_eq!(error, RecordError::Dimension { vector: "payload", found: 4, dimension: 3 });
}

/// The full record with a payload that is a difference to a reference.
fn record_with_base() -> Record {
    let record = full_record();
    let base = Reference::new([2.0, -3.0, 0.0].into()).unwrap();
    let payload = record.payload.clone().map(|payload| payload.against(&base));
    Record { payload, ..record }
}

#[test]
fn a_payload_is_read_with_the_reference_that_it_is_a_difference_to() {
    let record = record_with_base();
    let read = Record::decode(&encoded(&record)).unwrap();
    assert_eq!(read, record);
    let (payload, plain) = (read.payload.unwrap(), full_record().payload.unwrap());
    assert_eq!(payload.values()[0], plain.values()[0] + 2.0);
    assert_eq!(payload.hash(), record.payload.as_ref().unwrap().hash());
    assert_ne!(payload.hash(), plain.hash());
    assert_eq!(Outline::read(&encoded(&record)).unwrap(), record.outline());
}

#[test]
fn a_reference_that_no_node_has_is_refused() {
    let bytes = encoded(&record_with_base());
    let base = bytes.len() - CHECKSUM_BYTES - Codec::F16.encoded_len(3) - 12;
    for value in [f32::NAN, f32::INFINITY, 1e29] {
        let mut bytes = bytes.clone();
        bytes[base..base + 4].copy_from_slice(&value.to_le_bytes());
        let bytes = sealed(bytes);
        assert_eq!(Record::decode(&bytes), Err(RecordError::UnfitBase));
        assert_eq!(Outline::read(&bytes), Err(RecordError::UnfitBase));
    }
    // Format 4 has none, and without a payload there is nothing that it could be the reference of.
    for (at, value) in [(8, 4), (12, NO_PAYLOAD)] {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        let marks = u32::from(bytes[13]);
        assert_eq!(Record::decode(&sealed(bytes)), Err(RecordError::Head { field: "vectors", value: marks }));
    }
}

#[test]
fn a_difference_whose_reference_is_not_known_is_not_written() {
    let record = full_record();
    let payload = record.payload.clone().map(|payload| payload.against_named(ReferenceId([1; 16])));
    assert_eq!(Record { payload, ..record }.check(), Err(RecordError::UnfitBase));
}

#[test]
fn a_payload_that_no_node_would_take_is_refused() {
    let mut bytes = encoded(&full_record());
    let payload = bytes.len() - CHECKSUM_BYTES - Codec::F16.encoded_len(3);
    bytes[payload + 2..payload + 4].copy_from_slice(&0x7c00_u16.to_le_bytes());
    let bytes = sealed(bytes);
    let error = RecordError::Payload(PayloadError::Unreadable { codec: Codec::F16, index: 1 });
    assert_eq!(Record::decode(&bytes), Err(error.clone()));
    assert_eq!(Outline::read(&bytes), Err(error));
}

#[test]
fn nodes_links_and_masses_that_no_plan_has_are_refused() {
    let far = NodeId(MAX_NODES as u32);
    assert_eq!(refusal(|record| record.books.id = far), RecordError::NotANode { id: far });
    let outgoing = refusal(|record| drop(record.books.outgoing.insert(far, owing(0, &[]))));
    assert_eq!(outgoing, RecordError::NotANode { id: far });
    let own = refusal(|record| {
        record.books.incoming.insert(NodeId(0), InBooks::default());
    });
    assert_eq!(own, RecordError::SelfLink { id: NodeId(0) });
    let units = (1 << 60) + 1;
    let overweight = RecordError::Overweight { units };
    assert_eq!(refusal(|record| record.books.mass = Mass::from_units(units)), overweight);
    assert_eq!(refusal(|record| record.books.brought = Mass::from_units(units)), overweight);
    assert_eq!(refusal(|record| link(record).outbox[1].mass = Mass::from_units(units)), overweight);
}

#[test]
#[cfg_attr(miri, ignore = "64 KiB are a lot of hashing there")]
fn more_of_the_hosts_bytes_than_fit_are_refused() {
    let most = most_host_bytes(3);
    assert_eq!(most, (64 << 10) + 3 * 4 * 3 + 32, "three vectors, and some");
    assert_eq!(most_training_bytes(3), (64 << 10) + 2 * 4 * 3, "two of them for the training");
    let bytes = most + 1;
    assert_eq!(refusal(|record| record.books.host = vec![0; bytes].into()), RecordError::HostTooLong { bytes, most });
}

#[test]
fn numbers_out_of_order_are_refused() {
    let to = NodeId(1);
    let incoming = refusal(|record| record.books.incoming.get_mut(&to).unwrap().base = 301);
    assert_eq!(incoming, RecordError::AppliedBeforeBase { from: to, base: 301, applied: 300 });
    assert_eq!(
        refusal(|record| link(record).base = 7),
        RecordError::AckedOutOfRange { to, base: 7, acked: 6, next_seq: 10 }
    );
    assert_eq!(
        refusal(|record| link(record).next_seq = 6),
        RecordError::AckedOutOfRange { to, base: 0, acked: 6, next_seq: 6 }
    );
    assert_eq!(refusal(|record| link(record).next_seq = 11), RecordError::OutboxLength { to, parcels: 3, expected: 4 });
    let most = u64::MAX - 7;
    assert_eq!(
        refusal(|record| link(record).next_seq = u64::MAX),
        RecordError::OutboxLength { to, parcels: 3, expected: most }
    );
    assert_eq!(
        refusal(|record| *link(record) = owing(0, &[1, 2, 3, 4, 5])),
        RecordError::WindowExceeded { to, parcels: 5 }
    );
    assert_eq!(refusal(|record| link(record).outbox[1].seq = 9), RecordError::OutboxGap { to, seq: 9, expected: 8 });
    // A node that leaves may use a link a period before its turn, and no more.
    let beyond = full_record().books.step + MAX_PERIOD as u64 + 1;
    for step in [0, 17, beyond] {
        assert_eq!(refusal(|record| link(record).outbox[1].step = step), RecordError::OutboxStep { to, seq: 8, step });
    }
    for named in [0, 5, 10] {
        let error = refusal(|record| link(record).outbox[1].record = named);
        assert_eq!(error, RecordError::OutboxRecord { to, seq: 8, record: named });
    }
    assert_eq!(refusal(|record| record.payload = None), RecordError::NoPayload { to, seq: 9, record: 9 });
}

#[test]
#[cfg_attr(miri, ignore = "arithmetic on many links: slow there, and nothing to find")]
fn the_largest_numbers_fit_the_size_of_a_slot() {
    let owed = Owed {
        seq: u64::MAX,
        step: u64::MAX,
        mass: Mass::from_units(u64::MAX),
        record: u64::MAX,
        ..owing(0, &[1]).outbox[0]
    };
    let incoming = InBooks {
        sender_incarnation: u64::MAX,
        base: u64::MAX,
        applied: u64::MAX,
        last_step: Some(u64::MAX),
        applied_total: u128::MAX,
        applied_from_earlier_lives: u128::MAX,
        ..InBooks::default()
    };
    let outgoing = OutBooks {
        receiver_incarnation: u64::MAX,
        base: u64::MAX,
        next_seq: u64::MAX,
        acked: u64::MAX,
        outbox: vec![owed; WINDOW],
        sent_total: u128::MAX,
        acked_total: u128::MAX,
        acked_by_earlier_lives: u128::MAX,
        written_off: u128::MAX,
        returned: u128::MAX,
        ..OutBooks::default()
    };
    let identity = SignedIdentity::unsigned(Incarnation { incarnation: u64::MAX, boot_nonce: u64::MAX });
    let sent = Sent { seq: u64::MAX, ..Sent::default() };
    let evidence = Evidence { sent: Some(sent), applied: Some(Applied { seq: u64::MAX, ..Applied::default() }) };
    let far = |index: u32| NodeId(u32::MAX - index);
    let largest = Books {
        number: u64::MAX,
        generation: Generation { counter: u64::MAX, plan_hash: [255; 32] },
        id: far(0),
        incarnation: u64::MAX,
        brought: Mass::from_units(u64::MAX),
        mass: Mass::from_units(u64::MAX),
        step: u64::MAX,
        neighbours: (0..700).map(|index| (far(index), identity)).collect(),
        incoming: (0..300).map(|index| (far(index), incoming.clone())).collect(),
        outgoing: (300..700).map(|index| (far(index), outgoing.clone())).collect(),
        evidence: (0..700).map(|index| (far(index), evidence)).collect(),
        host: vec![0; MAX_HOST_BYTES].into(),
        ..books(1)
    };
    let bytes = postcard::to_stdvec(&largest).unwrap().len() as u64;
    let bound = largest_books(300, 400).unwrap();
    // The lengths of the maps, the outboxes and the host's bytes are shorter than the longest integer.
    let slack = 400 * 9 + 6 * 8;
    assert!(bytes <= bound && bound <= bytes + slack, "{bytes} bytes, {bound} at most");
    // Three vectors of 4 bytes a coordinate, head and checksum.
    assert_eq!(Record::largest_bytes(1000, 300, 400), Some(bound + 12_000 + 56));
    assert!(encoded(&full_record()).len() as u64 <= Record::largest_bytes(3, 2, 2).unwrap());
    assert_eq!(Record::largest_bytes(1, usize::MAX, 0), None);
    assert_eq!(Record::largest_bytes(1, MAX_NODES, MAX_NODES), None);
    assert!(Record::largest_bytes(1, 100_000, 100_000).is_some());
    assert_eq!(Record::largest_bytes(MAX_DIMENSION + 1, 1, 1), None);
}
