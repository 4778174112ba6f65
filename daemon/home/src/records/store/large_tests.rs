//! Records of models whose slots are made as they are needed.
#![allow(clippy::unwrap_used)]

use mingle_protocol::record::{Outline, SlotContent, record_length};
use mingle_protocol::{Mass, NodeId, Payload, RecordRoom, WINDOW};

use super::tests::{owing, record};
use super::*;
use crate::error::ErrorKind;
use crate::records::{Condition, list, verify};

const DIMENSION: usize = 300_000;
const MODEL_BYTES: u64 = 4 * DIMENSION as u64;
const RECEIVERS: usize = 8;

fn room() -> Room {
    let room = Room::new(DIMENSION, RecordRoom::for_links(1, RECEIVERS)).unwrap();
    assert!(room.is_made_as_needed());
    room
}

fn open(folder: &Path) -> RecordStore {
    let mut store = RecordStore::look(folder).unwrap();
    store.make_room(room()).unwrap();
    store
}

/// Record `number`, of a node that held weight 1 and gave three quarters of it away, as a split writes it.
fn split(number: u64, owed: &[u64]) -> Record {
    let ratio: Vec<f32> = (0..DIMENSION).map(|at| (at as f32).sin() * number as f32).collect();
    let numerator = ratio.iter().map(|z| z - 0.75 * z).collect();
    let mut record = Record { payload: Some(Payload::new(&ratio).unwrap()), numerator, ..record(number, &[]) };
    let quarter = Mass::from_units(Mass::ONE.units() / 4);
    record.books.mass = quarter;
    let mut link = owing(owed);
    if let Some(own) = link.outbox.iter_mut().find(|parcel| parcel.record == number) {
        own.mass = Mass::from_units(3 * quarter.units());
    }
    record.books.outgoing = [(NodeId(1), link)].into();
    record
}

/// The record of a node whose parcels up to this number are acknowledged, where each record has split off one.
fn acknowledged(mut record: Record, acked: u64) -> Record {
    let link = record.books.outgoing.get_mut(&NodeId(1)).unwrap();
    (acked + 1..).zip(&mut link.outbox).for_each(|(seq, parcel)| parcel.seq = seq);
    (link.acked, link.next_seq) = (acked, acked + 1 + link.outbox.len() as u64);
    record
}

/// Bytes of all files of a folder.
fn bytes_in(folder: &Path) -> u64 {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[track_caller]
fn assert_found(folder: &Path, number: u64, owed: &[u64]) {
    let found = RecordStore::look(folder).unwrap().load().unwrap().unwrap();
    assert_eq!(found.record.books.number, number);
    assert!(found.record == split(number, owed), "record {number} is another than was written");
    let payloads = owed.iter().map(|&number| (number, split(number, &[]).payload.unwrap())).collect();
    assert_eq!(found.payloads, payloads);
}

#[test]
fn rounds_that_are_acknowledged_take_two_and_a_half_models_and_each_round_behind_takes_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let models = || bytes_in(folder.path()) as f64 / MODEL_BYTES as f64;
    assert!(models() < 2.5, "{} models before the first record", models());
    for number in 1..=6 {
        store.write(&split(number, &[number])).unwrap();
        assert!(models() < 2.5, "{} models after record {number}", models());
        assert_found(folder.path(), number, &[number]);
    }
    // The acknowledgement of each parcel comes a record later, as where all split at once.
    for number in 7..=12 {
        store.write(&acknowledged(split(number, &[number - 1, number]), number - 2)).unwrap();
        assert!(models() < 2.5, "{} models after record {number}", models());
        let found = RecordStore::look(folder.path()).unwrap().load().unwrap().unwrap();
        assert_eq!(found.payloads.into_keys().collect::<Vec<_>>(), [number - 1, number]);
    }
    for (number, owed, most) in [
        (13, vec![12, 13], 2.5),
        (14, vec![12, 13, 14], 3.7),
        (15, vec![12, 13, 14, 15], 4.9),
        (16, vec![15, 16], 4.9),
        (17, vec![16, 17], 4.9),
        (18, vec![17, 18], 3.7),
        (19, vec![18, 19], 2.5),
    ] {
        let record = acknowledged(split(number, &owed), owed[0] - 1);
        store.write(&record).unwrap();
        assert!(models() < most, "{} models after record {number}", models());
        let found = RecordStore::look(folder.path()).unwrap().load().unwrap().unwrap();
        assert_eq!((found.record, found.payloads.into_keys().collect()), (record, owed));
    }
    assert_eq!(store.slots(), RECEIVERS * WINDOW + 2, "the node need not wait for slots");
}

#[test]
fn a_home_of_an_earlier_release_gives_back_what_its_slots_do_not_need() {
    let folder = tempfile::tempdir().unwrap();
    let records = RecordFolder::at(folder.path());
    fill_slots(&records, 8, 3 * MODEL_BYTES).unwrap();
    let mut old = RecordStore::look(folder.path()).unwrap();
    old.write(&split(1, &[1])).unwrap();
    old.write(&split(2, &[1, 2])).unwrap();
    let mut store = open(folder.path());
    assert_found(folder.path(), 2, &[1, 2]);
    for number in 3..=5 {
        store.write(&split(number, &[number])).unwrap();
    }
    let models = bytes_in(folder.path()) as f64 / MODEL_BYTES as f64;
    assert!(models < 2.5, "{models} models");
    assert_found(folder.path(), 5, &[5]);
}

#[test]
fn half_of_a_record_counts_as_none_and_the_one_before_it_is_whole() {
    for cut in [0.01, 0.3, 0.5, 0.97] {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path());
        (1..=3).for_each(|number| store.write(&split(number, &[number])).unwrap());
        let newest = list(folder.path()).unwrap().into_iter().find(|file| file.condition == Condition::Newest).unwrap();
        let bytes = fs::read(&newest.path).unwrap();
        // The slot has some room behind its record.
        let length = record_length(&bytes).unwrap();
        let half = &bytes[..(cut * length as f64) as usize];
        let ends = [half.to_vec(), [half, &vec![0; bytes.len() - half.len()]].concat()];
        for (way, torn) in ends.into_iter().enumerate() {
            fs::write(&newest.path, torn).unwrap();
            assert_found(folder.path(), 2, &[2]);
            let said = verify(folder.path()).unwrap_err();
            assert!(
                said.is(ErrorKind::Integrity) && said.to_string().contains("The newest good record is 2"),
                "{said}"
            );
            let mut again = open(folder.path());
            again.write(&split(4, &[2, 4])).unwrap();
            assert_found(folder.path(), 4, &[2, 4]);
            assert!(verify(folder.path()).is_ok(), "{cut}, {way}: it was written over");
            // As it was, for the other way.
            fs::remove_dir_all(folder.path()).unwrap();
            let mut store = open(folder.path());
            (1..=3).for_each(|number| store.write(&split(number, &[number])).unwrap());
        }
    }
}

#[test]
fn a_process_that_ends_after_any_operation_on_a_slot_leaves_the_record_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    (1..=2).for_each(|number| store.write(&split(number, &[1, 2][..number as usize])).unwrap());
    // The third one needs a slot of its own. It is made under another name, then renamed, written, and cut to length.
    let unfinished = store.folder.file(2).with_extension("record.new");
    fs::write(&unfinished, vec![0; 1000]).unwrap();
    assert_found(folder.path(), 2, &[1, 2]);
    let mut store = open(folder.path());
    assert!(!unfinished.exists());
    store.extend_to(3).unwrap();
    assert_found(folder.path(), 2, &[1, 2]);
    let third = split(3, &[1, 2, 3]);
    let encoded = third.encoded().unwrap();
    let parts: Vec<&[u8]> = encoded.slices().collect();
    let path = store.folder.file(2);
    for written in 1..parts.len() {
        fs::write(&path, parts[..written].concat()).unwrap();
        assert_found(folder.path(), 2, &[1, 2]);
    }
    fs::write(&path, parts.concat()).unwrap();
    assert_found(folder.path(), 3, &[1, 2, 3]);
    assert!(matches!(SlotContent::from(Outline::read(&fs::read(&path).unwrap())), SlotContent::Holds(_)));
}

/// A device of the kernel stands in for a disk without room for a third copy of the model.
#[cfg(target_os = "linux")]
#[test]
fn a_record_that_finds_no_room_for_another_slot_is_an_error_of_a_full_disk_and_is_written_once_there_is_some() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    (1..=2).for_each(|number| store.write(&split(number, &[1, 2][..number as usize])).unwrap());
    store.folder.opens = |path, options| {
        let is_third = path.file_name().is_some_and(|name| name == "0002.record");
        options.open(if is_third { Path::new("/dev/full") } else { path })
    };
    for _ in 0..2 {
        let error = store.write(&split(3, &[1, 2, 3])).unwrap_err();
        assert!(error.is_full_disk() && error.to_string().contains("0002.record"), "{error}");
        assert_found(folder.path(), 2, &[1, 2]);
    }
    store.folder.opens = crate::owner_only::open;
    store.write(&split(3, &[1, 2, 3])).unwrap();
    assert_found(folder.path(), 3, &[1, 2, 3]);
}

#[test]
fn a_disk_without_room_for_another_slot_is_reported_with_the_bytes_of_a_record_and_not_of_an_empty_slot() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    (1..=2).for_each(|number| store.write(&split(number, &[1, 2][..number as usize])).unwrap());
    store.folder.opens = |path, options| {
        let is_third = path.file_name().is_some_and(|name| name == "0002.record.new");
        if is_third { Err(std::io::ErrorKind::StorageFull.into()) } else { options.open(path) }
    };
    let error = store.write(&split(3, &[1, 2, 3])).unwrap_err();
    let StoreError::NoSpace { missing_bytes, slots, .. } = error else { panic!("{error}") };
    assert_eq!((missing_bytes, slots), (room().slot_bytes(), 3));
    assert!(missing_bytes > MODEL_BYTES, "{missing_bytes}");
}
