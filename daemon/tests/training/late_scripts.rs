//! Scripts that attach long after those of the other peers, or never.
#![cfg(unix)]

use std::path::PathBuf;
use std::thread::JoinHandle;

use serde_json::json;

use crate::support::planned_swarm::PlannedSwarm;
use crate::support::trainer::Trainer;
use crate::support::{RunningPeer, run, stderr, text};

/// Trains for the peer of this home until its run is over. Returns the first model that it got, and the last.
fn train_for(home: PathBuf, target: [f32; 2]) -> JoinHandle<[Vec<f32>; 2]> {
    std::thread::spawn(move || {
        let mut trainer = Trainer::new(&home, target);
        trainer.attach();
        let first = trainer.order().vector();
        [first, trainer.train()]
    })
}

fn start_all(swarm: &PlannedSwarm) -> Vec<RunningPeer> {
    (0..swarm.nodes()).map(|node| swarm.start_for_a_trainer(node)).collect()
}

fn warned_of(peer: &mut RunningPeer, words: &str) {
    let warning = peer.wait_for_warning_soon_after("trainer_attached", words);
    assert!(warning.contains("node 2"), "{warning}");
}

#[test]
fn a_script_that_does_not_come_holds_nobody_for_a_minute_and_joins_with_its_weight_when_it_comes() {
    let swarm = PlannedSwarm::new(3, 1_000_000);
    let mut peers = start_all(&swarm);
    let mut trainers = vec![train_for(swarm.home(0), [0.0, 3.0]), train_for(swarm.home(1), [4.0, 1.0])];
    for peer in &mut peers[..2] {
        warned_of(peer, "has nothing to train yet");
        let later = RunningPeer::wait_for_warning_of_any(&mut [peer], "still waits for its script");
        assert!(later.contains("node 2"), "{later}");
        let joined = peer.recall_or_wait_for("joined");
        assert_eq!((&joined["neighbours"], &joined["missing"]), (&1.into(), &json!([2])), "{joined}");
        let waited_ms = joined["at_ms"].as_u64().unwrap();
        assert!(waited_ms < 40_000, "{waited_ms} ms, and --join-timeout is 60 s");
    }
    trainers.push(train_for(swarm.home(2), [8.0, 8.0]));
    let joined = peers[2].wait_for("joined");
    assert_eq!((&joined["neighbours"], &joined["missing"]), (&2.into(), &json!(null)), "{joined}");
    for _ in 0..100 {
        peers[2].wait_for("round");
    }
    for node in 0..3 {
        let stopped = run(&["stop", "--home", text(&swarm.home(node))]);
        assert!(stopped.status.success(), "{}", stderr(&stopped));
    }
    let models: Vec<[Vec<f32>; 2]> = trainers.into_iter().map(|trainer| trainer.join().unwrap()).collect();
    // The founder's model is (0, 30); the late script offers (80, 80).
    let others_were_at = &models[2][0];
    assert!(others_were_at.iter().all(|value| *value < 40.0), "not the model that it offered: {others_were_at:?}");
    for peer in &mut peers {
        assert_eq!(peer.exit_code(), Some(0));
    }
    swarm.audit("one came late");
}

#[test]
fn a_run_that_goes_on_with_more_rounds_waits_for_the_scripts_as_the_first_one_did() {
    let mut swarm = PlannedSwarm::new(2, 12);
    let mut peers = start_all(&swarm);
    let trained = [train_for(swarm.home(0), [0.0, 3.0]), train_for(swarm.home(1), [4.0, 1.0])];
    let _ = trained.map(|trainer| trainer.join().unwrap());
    peers.iter_mut().for_each(|peer| assert_eq!(peer.exit_code(), Some(0)));

    swarm.rounds = 24;
    let mut peers = start_all(&swarm);
    let early = train_for(swarm.home(0), [0.0, 3.0]);
    let warning =
        RunningPeer::wait_for_warning_of_any(&mut peers.iter_mut().collect::<Vec<_>>(), "has nothing to train yet");
    assert!(warning.contains("node 1"), "{warning}");
    let mut late = Trainer::new(&swarm.home(1), [4.0, 1.0]);
    late.attach();
    let first = late.order();
    assert_eq!((first.kind(), first.number("mingle-round")), ("train", 12), "no round is over without it");
    late.train();
    early.join().unwrap();
    peers.iter_mut().for_each(|peer| assert_eq!(peer.exit_code(), Some(0)));
    swarm.audit("one came late to the longer run");
}

#[test]
fn a_peer_whose_script_trains_something_else_holds_nobody_for_a_minute() {
    for (what, other) in [("name", json!("three numbers")), ("layout", json!([["x", [1]], ["y", [3]]]))] {
        one_of_three_differs(what, &other);
    }
}

/// Two scripts agree, and the third attaches with another value of this field.
fn one_of_three_differs(what: &str, value: &serde_json::Value) {
    let swarm = PlannedSwarm::new(3, 1_000_000);
    let mut peers = start_all(&swarm);
    for node in 0..2 {
        Trainer::new(&swarm.home(node), [node as f32, 1.0]).attach();
    }
    let other = Trainer::new(&swarm.home(2), [1.0, 2.0]);
    let mut introduction = other.introduction();
    introduction[what] = value.clone();
    introduction["initial"] = "take".into();
    let attached = other.call("POST", "/v1/trainer/attach", &[], introduction.to_string().as_bytes());
    assert_eq!(attached.status, 200, "{attached:?}");
    for peer in &mut peers[..2] {
        warned_of(peer, "trains something else");
        let joined = peer.recall_or_wait_for("joined");
        // The stream of the refused one may still be open.
        assert_eq!(joined["missing"], json!([2]), "{joined}");
        let waited_ms = joined["at_ms"].as_u64().unwrap();
        assert!(waited_ms < 40_000, "{waited_ms} ms, and --join-timeout is 60 s");
    }
    let end = peers[2].wait_for("done");
    let why = end["error"]["message"].as_str().unwrap_or_else(|| panic!("{end}"));
    assert!(
        why.contains("trains something else") && why.contains(if what == "name" { "three numbers" } else { "`y`" }),
        "{end}"
    );
    assert_eq!(peers[2].exit_code(), Some(6));
}

#[test]
fn a_script_that_crashes_at_its_start_is_named_to_the_others_and_ends_its_peer() {
    let swarm = PlannedSwarm::new(3, 1_000_000);
    let crashing = ["--trainer", "echo no such module >&2; exit 3", "--rounds", "1000000"];
    let mut peers: Vec<RunningPeer> = (0..2).map(|node| swarm.start_for_a_trainer(node)).collect();
    let mut third = swarm.start_task(2, &crashing);
    for node in 0..2 {
        Trainer::new(&swarm.home(node), [node as f32, 1.0]).attach();
    }
    let end = third.wait_for("done");
    assert!(end["error"]["message"].as_str().unwrap_or_default().contains("no such module"), "{end}");
    for peer in &mut peers {
        warned_of(peer, "has ended before training began");
        let joined = peer.recall_or_wait_for("joined");
        assert_eq!(joined["missing"], json!([2]), "{joined}");
        let waited_ms = joined["at_ms"].as_u64().unwrap();
        println!("{waited_ms} ms after the start");
        assert!(waited_ms < 20_000, "{waited_ms} ms, three starts of the script included");
    }
}

#[test]
fn a_founder_whose_script_does_not_come_is_named_to_those_that_wait_for_its_model() {
    let swarm = PlannedSwarm::new(2, 1_000_000);
    let mut peers = start_all(&swarm);
    Trainer::new(&swarm.home(1), [4.0, 1.0]).attach();
    let warning = peers[1].wait_for_warning_soon_after("trainer_attached", "no member has a model to begin with");
    assert!(warning.contains("runs without its script"), "{warning}");
    peers[0].kill();
    let warning = RunningPeer::wait_for_warning_of_any(&mut [&mut peers[1]], "the founder, does not answer");
    assert!(warning.contains("start it again"), "{warning}");
}
