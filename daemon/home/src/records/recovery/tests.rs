#![allow(clippy::unwrap_used)]
use std::collections::VecDeque;
use std::sync::Arc;

use mingle_protocol::{Effect, Input, Message, Node, NodeId, RecordRoom, Schedule, Step, Time};

use std::fs;

use super::*;
use crate::records::beginning::{begin_anew, begin_anew_by, prolong};
use crate::records::replacement::{discard, put_back};
use crate::records::{Room, StoreError};

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

fn find(home: &Home, config: &NodeConfig) -> Result<(Past, RecordStore)> {
    Past::find(home, config, |_| config.task.hash, false).map(|Found { past, store, .. }| (past, store))
}

/// A home in which node 0 has written its first record.
fn home_with_record() -> (tempfile::TempDir, Home) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(Some(folder.path())).unwrap();
    let (past, mut store) = find(&home, &config(1)).unwrap();
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
    let failure = find(home, config).unwrap_err();
    assert!(failure.is(ErrorKind::Refused));
    format!("{failure:#}")
}

#[test]
fn a_run_that_was_cut_off_is_gone_on_with() {
    let (_folder, home) = home_with_record();
    let (past, _) = find(&home, &config(1)).unwrap();
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
    assert!(matches!(find(&home, &config(2)).unwrap(), (Past::None, _)));
}

#[test]
fn a_run_that_is_over_is_not_begun_again_and_makes_room_for_another() {
    let (_folder, home) = home_with_record();
    let ending = Ending::new(1, 5, false);
    ending.write(&home).unwrap();
    let (past, _) = find(&home, &config(1)).unwrap();
    assert!(matches!(&past, Past::Finished(found) if *found == ending), "{past:?}");
    let found = Past::find(&home, &config(2), |_| [3; 32], false).unwrap();
    assert!(matches!(found.past, Past::None) && found.is_superseded, "{found:?}");
    assert!(matches!(find(&home, &config(1)).unwrap().0, Past::Finished(_)), "looking has changed something");
    let room = Room::new(DIMENSION, RecordRoom::for_links(1, 1)).unwrap();
    assert!(begin_anew(&home, room).unwrap().load().unwrap().is_none());
    assert!(matches!(find(&home, &config(1)).unwrap().0, Past::Finished(_)), "there is no record yet of the new run");
}

#[test]
fn a_run_that_is_over_goes_on_with_another_number_of_rounds() {
    let (_folder, home) = home_with_record();
    Ending::new(1, 5, false).write(&home).unwrap();
    let prolonged = |rounds| [if rounds == 5 { 1 } else { 0 }; 32];
    let Found { past: Past::Unfinished(recovered), is_superseded: false, .. } =
        Past::find(&home, &config(2), prolonged, false).unwrap()
    else {
        panic!("it does not go on")
    };
    assert!(Node::resume(config(2), recovered.record, &recovered.payloads).is_ok());
    let mut fewer = config(2);
    fewer.rounds = 0;
    let refused = Past::find(&home, &fewer, prolonged, false).unwrap_err().to_string();
    assert!(refused.contains("ended after 5 rounds, and --rounds asks for no more"), "{refused}");
    let continued = |config: &NodeConfig| Past::find(&home, config, prolonged, true).unwrap();
    // A peer that says so beside others that do not: they go on together.
    assert!(matches!(continued(&config(2)), Found { past: Past::Unfinished(_), is_prolonged: true, .. }));
    assert!(matches!(continued(&fewer), Found { past: Past::Replaced { .. }, is_superseded: true, .. }));
    Ending::new(1, 5, true).write(&home).unwrap();
    let left = Past::find(&home, &config(2), prolonged, false).unwrap();
    assert!(matches!(left.past, Past::None), "whoever has handed its weight over has none to go on with: {left:?}");
}

/// A home whose newest record owes parcels that node 1 has not acknowledged. Returns the number of that record too.
fn home_with_owed_parcels() -> (tempfile::TempDir, Home, u64) {
    let (a, b) = (NodeId(0), NodeId(1));
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(Some(folder.path())).unwrap();
    let mut store = find(&home, &config(1)).unwrap().1;
    store.make_room(Room::new(DIMENSION, RecordRoom::for_links(1, 1)).unwrap()).unwrap();
    // Without local steps, so that nobody has to train.
    let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
    let schedule = Arc::new(Schedule::new(2, &[step], 0).unwrap());
    let mut configs = [config(1), config(1)];
    configs.iter_mut().for_each(|config| config.schedule = Arc::clone(&schedule));
    configs[1].id = b;
    configs[1].durability = Durability::Off;
    let mut nodes = configs.map(|config| Node::new(config).unwrap());
    let mut inputs = VecDeque::from([
        (a, Input::Start),
        (b, Input::Start),
        (a, Input::LinkUp { peer: b }),
        (b, Input::LinkUp { peer: a }),
    ]);
    let mut newest = 0;
    for _ in 0..200 {
        let Some((id, input)) = inputs.pop_front() else { break };
        for effect in nodes[id.index()].handle(Time::default(), input) {
            match effect {
                Effect::Send { message: Message::Parcel(_), .. } if id == a => {}
                Effect::Send { to, message } => inputs.push_back((to, Input::Received { from: id, message })),
                Effect::Reserve(_) => inputs.push_back((id, Input::Reserved { slots: store.slots() })),
                Effect::Persist(record) => {
                    newest = record.books.number;
                    store.write(&record).unwrap();
                    inputs.push_back((id, Input::Persisted { number: newest }));
                }
                _ => {}
            }
        }
    }
    assert!(!store_of(&home).load().unwrap().unwrap().payloads.is_empty(), "nothing is owed");
    (folder, home, newest)
}

fn store_of(home: &Home) -> RecordStore {
    RecordStore::look(&home.records()).unwrap()
}

#[test]
fn a_longer_run_that_is_cut_off_before_its_parcels_are_acknowledged_is_gone_on_with() {
    let (_folder, home, number) = home_with_owed_parcels();
    Ending::new(number, 5, false).write(&home).unwrap();
    assert_eq!(Ending::of_latest_run(&home).unwrap().map(|ending| ending.rounds), Some(5));
    let longer =
        |home: &Home| Past::find(home, &config(2), |rounds| [if rounds == 5 { 1 } else { 0 }; 32], false).unwrap();
    let Found { past: Past::Unfinished(mut recovered), store, is_prolonged: true, .. } = longer(&home) else {
        panic!("it does not go on")
    };
    let payloads = recovered.payloads.clone();
    let room = Room::new(DIMENSION, RecordRoom::for_links(1, 1)).unwrap();
    let mut store = prolong(&home, room, &store, &mut recovered).unwrap();
    let cut_off = |when: &str| {
        let Found { past: Past::Unfinished(found), is_prolonged: false, .. } = longer(&home) else {
            panic!("{when}: it does not go on")
        };
        assert_eq!(found.payloads, payloads, "{when}");
        assert_eq!(Ending::of_latest_run(&home).unwrap(), None, "{when}");
        assert!(Node::resume(config(2), found.record, &found.payloads).is_ok(), "{when}");
    };
    cut_off("before the next record");
    recovered.record.books.number += 1;
    store.write(&recovered.record).unwrap();
    cut_off("after it");
}

#[test]
fn another_run_goes_on_from_the_model_of_the_one_before_where_that_is_wanted() {
    let (_folder, home) = home_with_record();
    let mut other_plan = config(1);
    other_plan.generation.plan_hash = [9; 32];
    let find = |config: &NodeConfig| Past::find(&home, config, |_| config.task.hash, true);
    for (config, ended) in [(&other_plan, false), (&config(2), false), (&other_plan, true), (&config(2), true)] {
        if ended {
            Ending::new(1, 5, false).write(&home).unwrap();
        }
        let found = find(config).unwrap();
        let Past::Replaced { belief, .. } = found.past else { panic!("{found:?}") };
        assert!(belief.len() == DIMENSION && found.is_superseded);
    }
    assert!(matches!(find(&config(1)).unwrap().past, Past::Finished(_)), "the same run is over");
    let mut larger = config(2);
    larger.initial.push(0.0);
    let refused = format!("{:#}", find(&larger).unwrap_err());
    assert!(refused.contains("3 numbers") && refused.contains("trained 4"), "{refused}");
    discard(&home).unwrap();
    let refused = format!("{:#}", find(&config(1)).unwrap_err());
    assert!(refused.contains("no model of an earlier run"), "{refused}");
}

#[test]
fn a_beginning_without_room_leaves_the_records_before_it() {
    let (_folder, home) = home_with_record();
    let before = fs::read(home.records().join("0000.record")).unwrap();
    let refused = begin_anew_by(&home, |store| {
        store.make_room(Room::new(DIMENSION, RecordRoom::for_links(1, 1)).unwrap())?;
        Err(StoreError::Spoiled)
    });
    assert!(refused.is_err());
    assert_eq!(fs::read(home.records().join("0000.record")).unwrap(), before);
    assert!(!home.discarded_records().exists());
}

#[test]
fn the_mark_of_an_earlier_record_does_not_count() {
    let (_folder, home) = home_with_record();
    Ending::new(0, 5, false).write(&home).unwrap();
    assert!(matches!(find(&home, &config(1)).unwrap(), (Past::Unfinished(_), _)));
    fs::write(home.records().join("ending.json"), "no mark at all").unwrap();
    assert!(matches!(find(&home, &config(1)).unwrap(), (Past::Unfinished(_), _)));
}

#[test]
fn records_that_were_given_up_when_the_process_ended_stay_so() {
    let (_folder, home) = home_with_record();
    fs::rename(home.records(), home.removed_records()).unwrap();
    put_back(&home).unwrap();
    assert!(matches!(find(&home, &config(1)).unwrap(), (Past::None, _)));
    discard(&home).unwrap();
    assert!(!home.removed_records().exists());
}

#[test]
fn damage_is_an_error_that_says_how_to_go_on() {
    let (_folder, home) = home_with_record();
    for slot in [0, 1] {
        fs::write(home.records().join(format!("000{slot}.record")), "spoilt").unwrap();
    }
    let failure = find(&home, &config(1)).unwrap_err();
    assert!(failure.is(ErrorKind::Integrity), "{failure:#}");
    assert!(failure.to_json()["hint"].as_str().unwrap().contains("--fresh"), "{failure:#}");
}
