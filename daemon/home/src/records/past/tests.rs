#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use mingle_protocol::{Effect, Input, Node, NodeId, RecordRoom, Schedule, Step, Time};

use super::*;
use crate::records::Room;

const DIMENSION: usize = 3;

/// Node 0 of two that pass mass to each other.
fn config(seed: u8) -> NodeConfig {
    let (a, b) = (NodeId(0), NodeId(1));
    let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
    let schedule = Arc::new(Schedule::new(2, &[step], 1).unwrap());
    let mut config = NodeConfig::new(a, schedule, vec![0.0; DIMENSION], 5);
    config.task.hash = [seed; 32];
    config.durability = Durability::On;
    config
}

/// A home in which node 0 has written its first record.
fn home_with_record() -> (tempfile::TempDir, Home) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(Some(folder.path())).unwrap();
    let (past, mut store) = Past::find(&home, &config(1)).unwrap();
    assert!(matches!(past, Past::None));
    store.make_room(Room::new(DIMENSION, RecordRoom::for_links(1, 1)).unwrap()).unwrap();
    let effects = Node::new(config(1)).unwrap().handle(Time::default(), Input::Start);
    let Some(Effect::Persist(record)) = effects.into_iter().find(|effect| matches!(effect, Effect::Persist(_))) else {
        panic!("a node that starts writes a record");
    };
    store.write(&record).unwrap();
    (folder, home)
}

fn refusal(home: &Home, config: &NodeConfig) -> String {
    let failure = Past::find(home, config).unwrap_err();
    assert!(failure.is(ErrorKind::Refused));
    format!("{failure:#}")
}

#[test]
fn a_run_that_was_cut_off_is_gone_on_with() {
    let (_folder, home) = home_with_record();
    let (past, _) = Past::find(&home, &config(1)).unwrap();
    let Past::Unfinished(recovered) = past else { panic!("{past:?}") };
    assert!(Node::resume(config(1), recovered.record, &recovered.payloads).is_ok());
}

#[test]
fn weight_of_another_run_is_not_forgotten_unasked() {
    let (_folder, home) = home_with_record();
    assert!(refusal(&home, &config(2)).contains("trains something else"));
    let mut other_plan = config(1);
    other_plan.generation.plan_hash = [9; 32];
    assert!(refusal(&home, &other_plan).contains("blake3:0000"));
    let mut other_node = config(1);
    other_node.id = NodeId(1);
    assert!(refusal(&home, &other_node).contains("as node 0"));
    let mut volatile = config(1);
    volatile.durability = Durability::Off;
    assert!(refusal(&home, &volatile).contains("weight 1"));
    discard(&home).unwrap();
    assert!(!home.records().exists());
    assert!(matches!(Past::find(&home, &config(2)).unwrap(), (Past::None, _)));
}

#[test]
fn a_run_that_is_over_is_not_begun_again_and_makes_room_for_another() {
    let (_folder, home) = home_with_record();
    let ending = Ending::new(1, 5, false);
    ending.write(&home).unwrap();
    let (past, _) = Past::find(&home, &config(1)).unwrap();
    assert!(matches!(&past, Past::Finished(found) if *found == ending), "{past:?}");
    assert!(matches!(Past::find(&home, &config(2)).unwrap(), (Past::None, _)));
    assert!(!home.records().exists());
}

#[test]
fn the_mark_of_an_earlier_record_does_not_count() {
    let (_folder, home) = home_with_record();
    Ending::new(0, 5, false).write(&home).unwrap();
    assert!(matches!(Past::find(&home, &config(1)).unwrap(), (Past::Unfinished(_), _)));
    fs::write(home.records().join("ending.json"), "no mark at all").unwrap();
    assert!(matches!(Past::find(&home, &config(1)).unwrap(), (Past::Unfinished(_), _)));
}

#[test]
fn records_that_were_being_discarded_when_the_process_ended_are_gone() {
    let (_folder, home) = home_with_record();
    fs::rename(home.records(), home.discarded_records()).unwrap();
    assert!(matches!(Past::find(&home, &config(1)).unwrap(), (Past::None, _)));
    assert!(!home.discarded_records().exists());
}

#[test]
fn damage_is_an_error_that_says_how_to_go_on() {
    let (_folder, home) = home_with_record();
    for slot in [0, 1] {
        fs::write(home.records().join(format!("000{slot}.record")), "spoilt").unwrap();
    }
    let failure = Past::find(&home, &config(1)).unwrap_err();
    assert!(failure.is(ErrorKind::Integrity), "{failure:#}");
    assert!(failure.to_json()["hint"].as_str().unwrap().contains("--fresh"), "{failure:#}");
}
