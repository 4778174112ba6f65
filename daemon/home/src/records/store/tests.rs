#![allow(clippy::unwrap_used)]

use crate::error::{Error, ErrorKind};
use std::collections::BTreeMap;

use mingle_protocol::{
    Books, Chain, Codec, Generation, MAX_DIMENSION, Mass, NodeId, OutBooks, Owed, Payload, RecordRoom, WINDOW,
};

use std::fs::OpenOptions;
use std::path::PathBuf;

use super::slot_files::fill;
use super::*;
use crate::records::{Condition, RecordFile, Sound, list, verify};

const DIMENSION: usize = 1000;

/// Record `number` of node 0, which owes the payloads of these records to as many receivers as have windows for them.
pub(super) fn record(number: u64, owed: &[u64]) -> Record {
    let receivers = (1..).map(NodeId);
    let outgoing: BTreeMap<NodeId, OutBooks> = receivers.zip(owed.chunks(WINDOW).map(owing)).collect();
    let books = Books {
        number,
        generation: Generation { counter: 0, plan_hash: [1; 32] },
        task: [2; 32],
        id: NodeId(0),
        incarnation: 1,
        brought: Mass::ONE,
        mass: Mass::ONE,
        step: number,
        split_done: true,
        neighbours: BTreeMap::new(),
        incoming: BTreeMap::new(),
        outgoing,
        left: Vec::new(),
        evidence: BTreeMap::new(),
        host: Default::default(),
    };
    Record {
        books,
        numerator: vec![number as f32; DIMENSION].into(),
        ratio: None,
        held_back: None,
        payload: Some(payload(number)),
    }
}

/// A link that owes the payloads of these records.
pub(super) fn owing(owed: &[u64]) -> OutBooks {
    let parcel = |(seq, record)| Owed { seq, step: record, mass: Mass::ONE, chain: Chain::default(), record };
    let outbox: Vec<Owed> = (1..).zip(owed.iter().copied()).map(parcel).collect();
    OutBooks { next_seq: outbox.len() as u64 + 1, outbox, ..OutBooks::default() }
}

fn payload(number: u64) -> Payload {
    Payload::encoded(Codec::F32, &vec![-(number as f32); DIMENSION], 0).unwrap()
}

/// A store of a node with one receiver.
fn open(folder: &Path) -> RecordStore {
    open_for(folder, room(DIMENSION, 1))
}

/// Room for the records of a node with this many receivers, and one sender.
fn room(dimension: usize, receivers: usize) -> Room {
    Room::new(dimension, RecordRoom::for_links(1, receivers)).unwrap()
}

fn slot_bytes() -> u64 {
    Record::largest_bytes(DIMENSION, 1, 1).unwrap()
}

fn open_for(folder: &Path, room: Room) -> RecordStore {
    let mut store = RecordStore::look(folder).unwrap();
    store.make_room(room).unwrap();
    store
}

/// The number of the newest record, and the records whose payloads it owes and finds.
fn loaded(store: &RecordStore) -> (u64, Vec<u64>) {
    let recovered = store.load().unwrap().unwrap();
    let number = recovered.record.books.number;
    assert_eq!(recovered.record.numerator, record(number, &[]).numerator);
    assert!(recovered.payloads.iter().all(|(number, found)| *found == payload(*number)));
    (number, recovered.payloads.into_keys().collect())
}

/// The slot that holds a record.
fn slot_of(store: &RecordStore, number: u64) -> PathBuf {
    let mut bytes = Vec::new();
    let is_it = |slot: &usize| store.decode(*slot, &mut bytes).is_ok_and(|record| record.books.number == number);
    store.folder.file((0..store.map.len()).find(is_it).unwrap())
}

/// Changes a byte in the middle of a file.
fn spoil(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[3000] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_process_finds_the_last_record_of_the_one_before_and_what_it_owes() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("records");
    assert!(open(&folder).load().unwrap().is_none());
    let owed: [&[u64]; 8] = [&[], &[2], &[2, 3], &[2, 3, 4], &[2, 3, 4, 5], &[2, 3, 4, 5], &[3, 5], &[8]];
    for (number, owed) in (1..).zip(owed) {
        let mut store = open(&folder);
        store.write(&record(number, owed)).unwrap();
        assert_eq!(loaded(&open(&folder)), (number, owed.to_vec()));
    }
}

#[test]
fn a_write_that_was_cut_off_leaves_the_record_before_it_and_its_slot_is_written_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.write(&record(1, &[1])).unwrap();
    store.write(&record(2, &[1, 2])).unwrap();
    let torn = slot_of(&store, 2);
    spoil(&torn);
    let mut store = open(folder.path());
    assert_eq!(loaded(&store), (1, vec![1]));
    store.write(&record(2, &[1])).unwrap();
    assert_eq!(slot_of(&store, 2), torn);
    assert_eq!(loaded(&open(folder.path())), (2, vec![1]));
}

#[test]
fn records_that_cannot_be_relied_on_are_an_error_and_are_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.write(&record(1, &[1])).unwrap();
    store.write(&record(2, &[1])).unwrap();
    spoil(&slot_of(&store, 1));
    let mut store = open(folder.path());
    let error = store.load().unwrap_err();
    let StoreError::Recovery { error: RecoveryError::PayloadsLost { books, .. }, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(books.number, 2);
    let message = error.to_string();
    assert!(["record 1", "weight 1.0", "checksum"].iter().all(|words| message.contains(words)), "{message}");
    assert!(Error::from(error).is(ErrorKind::Integrity));
    assert!(matches!(store.write(&record(3, &[])), Err(StoreError::Recovery { .. })), "nothing may be overwritten");
}

#[test]
fn looking_changes_nothing_and_a_number_is_never_written_twice() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("records");
    assert!(RecordStore::look(&folder).unwrap().load().unwrap().is_none());
    assert!(!folder.exists());
    let mut store = open(&folder);
    store.write(&record(2, &[])).unwrap();
    assert!(matches!(store.write(&record(2, &[])), Err(StoreError::Refused(SlotError::NotNewer { .. }))));
    assert_eq!(loaded(&RecordStore::look(&folder).unwrap()), (2, vec![]));
}

#[test]
fn a_missing_file_is_damage_and_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.write(&record(1, &[])).unwrap();
    let unused = store.folder.file(3);
    fs::remove_file(&unused).unwrap();
    let mut store = open(folder.path());
    assert_eq!(store.load().unwrap().unwrap().torn, Some(3));
    assert!(unused.exists());
    store.write(&record(2, &[])).unwrap();
    assert_eq!(slot_of(&store, 2), unused);
}

#[test]
fn slots_grow_in_number_and_length_around_what_they_hold() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).write(&record(1, &[1])).unwrap();
    let long = Record::largest_bytes(2 * DIMENSION, 1, 3).unwrap();
    let store = open_for(folder.path(), room(2 * DIMENSION, 3));
    assert_eq!(loaded(&store), (1, vec![1]));
    let lengths = || (0..14).map(|slot| fs::metadata(store.folder.file(slot)).unwrap().len()).collect::<Vec<_>>();
    assert_eq!(lengths(), [long; 14]);
    let store = open(folder.path());
    assert_eq!((store.map.len(), lengths()), (14, vec![long; 14]));
    assert_eq!(loaded(&store), (1, vec![1]));
}

/// The numbers of the slots in a folder, ascending.
fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_store_in_use_grows_for_more_receivers_and_shrinks_again_around_what_is_owed() {
    let folder = tempfile::tempdir().unwrap();
    // A founder that is alone has no receiver, so two slots.
    let mut store = open_for(folder.path(), room(DIMENSION, 0));
    store.write(&record(1, &[])).unwrap();
    assert_eq!(files(folder.path()), ["0000.record", "0001.record"]);
    let mut number = 1;
    for receivers in [1, 2, 3, 4, 5, 6, 7, 8] {
        store.reserve(room(DIMENSION, receivers)).unwrap();
        assert_eq!((store.slots(), files(folder.path()).len()), (4 * receivers + 2, 4 * receivers + 2));
        // As much as possible is owed, by as many records as possible, and one more can still be written.
        let mut owed = Vec::new();
        for _ in 0..4 * receivers {
            number += 1;
            owed.push(number);
            store.write(&record(number, &owed)).unwrap();
        }
        number += 1;
        store.write(&record(number, &owed)).unwrap();
        assert_eq!(loaded(&RecordStore::look(folder.path()).unwrap()), (number, owed), "{receivers} receivers");
    }
    // With fewer receivers slots are removed, but never one of which anything is owed.
    let owed: Vec<u64> = (number - 32..number).collect();
    store.reserve(room(DIMENSION, 1)).unwrap();
    number += 1;
    store.write(&record(number, &owed)).unwrap();
    assert_eq!(loaded(&RecordStore::look(folder.path()).unwrap()), (number, owed));
    for _ in 0..40 {
        number += 1;
        store.write(&record(number, &[])).unwrap();
        assert_eq!(loaded(&RecordStore::look(folder.path()).unwrap()).0, number);
    }
    assert_eq!((store.slots(), files(folder.path()).len()), (6, 6));
}

#[test]
fn a_home_with_fewer_slots_than_its_records_need_gets_more_instead_of_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let mut owed = Vec::new();
    for number in 1..=40 {
        owed.push(number);
        store.write(&record(number, &owed)).unwrap();
    }
    assert_eq!(loaded(&open(folder.path())), (40, owed));
    assert_eq!(store.slots(), 40);
}

#[test]
fn a_slot_that_was_being_made_when_the_process_ended_is_none() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path());
    let unfinished = folder.path().join("0006.record.new");
    fs::write(&unfinished, [0; 10]).unwrap();
    let store = open(folder.path());
    assert_eq!((store.map.len(), unfinished.exists()), (6, false));
}

#[test]
fn a_record_that_breaks_the_rules_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.write(&record(1, &[])).unwrap();
    let infinite = Record { numerator: vec![f32::INFINITY; DIMENSION].into(), ..record(2, &[]) };
    assert!(matches!(store.write(&infinite), Err(StoreError::Record { number: 2, .. })));
    let too_many = Room::new(1, RecordRoom::for_links(0, MAX_SLOTS / 4 + 1));
    assert!(matches!(too_many, Err(StoreError::TooManySlots { .. })), "{too_many:?}");
    let too_long = Room::new(MAX_DIMENSION + 1, RecordRoom::for_links(0, 1));
    assert!(matches!(too_long, Err(StoreError::TooLong { .. })), "{too_long:?}");
    assert_eq!(loaded(&open(folder.path())), (1, vec![]));
}

#[test]
fn a_record_that_is_longer_than_its_slot_makes_it_longer() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let host = vec![7; 60_000];
    let mut long = record(1, &[]);
    (long.numerator, long.payload, long.books.host) = (vec![1.0; 40_000].into(), None, host.into());
    store.write(&long).unwrap();
    assert!(fs::metadata(slot_of(&store, 1)).unwrap().len() > slot_bytes());
    assert_eq!(RecordStore::look(folder.path()).unwrap().load().unwrap().unwrap().record, long);
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_the_records() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("a/records");
    let store = open(&folder);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&store.folder.file(0))), (0o700, 0o600));
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_slot_is_neither_waited_for_nor_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.write(&record(1, &[])).unwrap();
    let slot = store.folder.file(store.map.len() - 1);
    fs::remove_file(&slot).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &slot, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let refusal = RecordStore::look(folder.path()).unwrap().make_room(room(DIMENSION, 1)).unwrap_err();
    assert!(
        matches!(&refusal, StoreError::Folder { error, .. } if error.to_string().contains("and no file")),
        "{refusal}"
    );
}

/// The kernel's own devices stand in for a disk that is full and for one that cannot be synced.
#[cfg(target_os = "linux")]
mod failing_disks {
    use super::*;

    /// Replaces all slots by a device.
    fn replace_slots(store: &RecordStore, device: &str) {
        for slot in 0..store.map.len() {
            fs::remove_file(store.folder.file(slot)).unwrap();
            std::os::unix::fs::symlink(device, store.folder.file(slot)).unwrap();
        }
    }

    #[test]
    fn a_sync_that_fails_is_final() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path()).through_links();
        replace_slots(&store, "/dev/null");
        let error = store.write(&record(1, &[])).unwrap_err();
        assert!(matches!(error, StoreError::Sync { .. }) && !error.is_full_disk(), "{error}");
        let again = store.write(&record(1, &[])).unwrap_err();
        assert!(matches!(again, StoreError::Spoiled), "it is not tried again: {again}");
    }

    #[test]
    fn a_write_that_does_not_fit_on_the_disk_can_be_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path()).through_links();
        replace_slots(&store, "/dev/full");
        let error = store.write(&record(1, &[])).unwrap_err();
        assert!(matches!(&error, StoreError::Write { error, .. } if error.kind() == io::ErrorKind::StorageFull));
        assert!(error.is_full_disk());
        (0..store.map.len()).for_each(|slot| fs::remove_file(store.folder.file(slot)).unwrap());
        fill_slots(&store.folder, store.map.len(), slot_bytes()).unwrap();
        store.write(&record(1, &[])).unwrap();
        assert_eq!(loaded(&open(folder.path())), (1, vec![]));
    }

    #[test]
    fn a_disk_that_is_too_full_for_the_slots_is_said_with_the_bytes_that_are_missing() {
        let mut full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert_eq!(fill(&mut full, 1).unwrap_err().kind(), io::ErrorKind::StorageFull);
        // A slot that exists but is too short is lengthened, here on a full disk.
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).through_links();
        replace_slots(&store, "/dev/full");
        let error = fill_slots(&store.folder, 6, 1000).unwrap_err();
        let StoreError::NoSpace { slots: 6, slot_bytes: 1000, missing_bytes: 6000, .. } = &error else {
            panic!("{error}");
        };
        assert!(error.to_string().contains("6000 bytes"), "{error}");
        assert!(Error::from(error).is(ErrorKind::BadInput));
    }
}

#[test]
fn a_listing_says_of_each_file_how_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.write(&record(1, &[])).unwrap();
    store.write(&record(2, &[1])).unwrap();
    let files = || list(folder.path()).unwrap();
    let slot_of = |number: u64| {
        let is_it = |file: &RecordFile| file.outline.as_ref().is_some_and(|outline| outline.books.number == number);
        files().iter().position(is_it).unwrap()
    };
    let (first, second) = (slot_of(1), slot_of(2));
    assert_eq!((&files()[first].condition, &files()[second].condition), (&Condition::Whole, &Condition::Newest));
    assert!(files().iter().all(|file| file.bytes == Some(slot_bytes())));
    assert!(files().iter().filter(|file| file.outline.is_none()).all(|file| file.condition == Condition::Empty));
    assert_eq!(verify(folder.path()).unwrap(), Some(Sound { newest: 2, owed_payloads: 1 }));

    let torn = files()[second].path.clone();
    let mut bytes = fs::read(&torn).unwrap();
    bytes[200] ^= 1;
    fs::write(&torn, bytes).unwrap();
    assert_eq!((&files()[first].condition, &files()[second].condition), (&Condition::Newest, &Condition::Torn));
    assert!(verify(folder.path()).unwrap_err().is(ErrorKind::Integrity));
}
