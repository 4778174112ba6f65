#![allow(clippy::unwrap_used)]
use std::fs;
use std::path::Path;
use std::sync::Arc;

use mingle_protocol::{Durability, Effect, Input, Node, NodeConfig, NodeId, Record, RecordRoom, Schedule, Step, Time};

use super::*;
use crate::records::Ending;
use crate::records::replacement::{STEPS, folder_of};
use crate::small_file::or_missing;

const DIMENSION: usize = 3;
const OLD: f32 = 1.0;
const NEW: f32 = 2.0;

fn room() -> Room {
    Room::new(DIMENSION, RecordRoom::for_links(1, 1)).unwrap()
}

/// The first record of a node whose model is `value` everywhere.
fn record(value: f32) -> Arc<Record> {
    let (a, b) = (NodeId(0), NodeId(1));
    let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
    let schedule = Arc::new(Schedule::new(2, &[step], 1).unwrap());
    let mut config = NodeConfig::new(a, schedule, vec![value; DIMENSION], 5);
    config.durability = Durability::On;
    let effects = Node::new(config).unwrap().handle(Time::default(), Input::Start);
    let records = effects.into_iter().find_map(|effect| match effect {
        Effect::Persist(record) => Some(record),
        _ => None,
    });
    records.unwrap()
}

/// A home with the record of a run that is over.
fn home() -> (tempfile::TempDir, Home) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(Some(folder.path())).unwrap();
    let mut store = RecordStore::look(&home.records()).unwrap();
    store.make_room(room()).unwrap();
    store.write(&record(OLD)).unwrap();
    Ending::new(1, 5, false).write(&home).unwrap();
    (folder, home)
}

/// The model that a process finds which starts or reads now, and whether its run is over.
fn found(home: &Home) -> (f32, bool) {
    let read = |folder: &Path| RecordStore::look(folder).unwrap().load().unwrap().unwrap().record;
    let seen = read(&folder_of(home));
    put_back(home).unwrap();
    assert_eq!(folder_of(home), home.records());
    let record = read(&home.records());
    assert_eq!(record, seen, "a command that reads the home finds something else than a start");
    (record.numerator[0], Ending::find(home, record.books.number).unwrap().is_some())
}

/// Removes files of a folder one after the other, as a process does that empties it, and looks after each.
fn remove_bit_by_bit(folder: &Path, mut look: impl FnMut()) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // A look puts the former start back, and with it removes its folder.
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        or_missing(removed).unwrap();
        look();
    }
    fs::remove_dir(folder).unwrap();
    look();
}

#[test]
fn a_process_that_ends_between_any_two_file_operations_leaves_the_old_records_or_the_new_ones_whole() {
    for steps in 0..=STEPS.len() {
        let (_folder, home) = home();
        let mut store = begin_anew(&home, room()).unwrap();
        assert_eq!(found(&home), (OLD, true), "with new slots");
        store.put(&record(NEW)).unwrap();
        assert_eq!(found(&home), (OLD, true), "with a first record");
        let replacement = Replacement::of(&home);
        STEPS[..steps].iter().for_each(|step| step(&replacement).unwrap());
        let is_in_place = steps > 2;
        let expected = if is_in_place { (NEW, false) } else { (OLD, true) };
        assert_eq!(found(&home), expected, "after {steps} steps");
        // Whatever was left behind, the same command again comes to the new run.
        let mut again = begin_anew(&home, room()).unwrap();
        assert_eq!(found(&home), expected, "after {steps} steps, begun again");
        again.write(&record(NEW)).unwrap();
        assert_eq!(found(&home), (NEW, false), "after {steps} steps, begun and written again");
        assert!(!home.next_records().exists() && !home.discarded_records().exists());
    }
}

#[test]
fn a_process_that_ends_while_it_makes_slots_or_removes_records_harms_neither_run() {
    let (_folder, home) = home();
    drop(begin_anew(&home, room()).unwrap());
    remove_bit_by_bit(&home.next_records(), || assert_eq!(found(&home), (OLD, true)));
    let mut store = begin_anew(&home, room()).unwrap();
    store.put(&record(NEW)).unwrap();
    let replacement = Replacement::of(&home);
    STEPS[..STEPS.len() - 1].iter().for_each(|step| step(&replacement).unwrap());
    remove_bit_by_bit(&home.discarded_records(), || assert_eq!(found(&home), (NEW, false)));
}

#[test]
fn the_first_record_of_a_new_run_replaces_those_before_and_the_store_goes_on_in_their_place() {
    let (_folder, home) = home();
    let mut store = begin_anew(&home, room()).unwrap();
    let first = record(NEW);
    store.write(&first).unwrap();
    assert_eq!(found(&home), (NEW, false));
    let mut second = Record::clone(&first);
    second.books.number += 1;
    second.numerator = vec![3.0; DIMENSION].into();
    store.write(&second).unwrap();
    assert_eq!(found(&home), (3.0, false));
}

#[test]
fn a_new_run_in_a_home_without_records_needs_none_to_replace() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(Some(folder.path())).unwrap();
    let mut store = begin_anew(&home, room()).unwrap();
    store.write(&record(NEW)).unwrap();
    assert_eq!(found(&home), (NEW, false));
}

#[test]
fn records_that_cannot_be_replaced_end_the_process_and_stay() {
    let (_folder, home) = home();
    let mut store = begin_anew(&home, room()).unwrap();
    // A file where the old records should go to.
    fs::write(home.discarded_records(), "").unwrap();
    assert!(matches!(store.write(&record(NEW)), Err(StoreError::Sync { .. })));
    assert!(matches!(store.write(&record(NEW)), Err(StoreError::Spoiled)));
    assert_eq!(found(&home), (OLD, true));
}
