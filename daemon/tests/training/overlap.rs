//! `--overlap`: training of the next round while the present one is mixed.

use std::fs;

use crate::support::planned_swarm::PlannedSwarm;
use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

/// The last line of a simulation of eight nodes whose data differ.
fn simulate(arguments: &[&str]) -> Value {
    let swarm = ["--split", "dirichlet:0.3", "--model", "softmax", "--local-steps", "10", "--rounds", "40"];
    let output = run(&[&["simulate", "--json", "--topology", "complete:n=8"], &swarm[..], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap()
}

fn summary(swarm: &PlannedSwarm, node: usize) -> Value {
    serde_json::from_str(&fs::read_to_string(swarm.home(node).join("summary.json")).unwrap()).unwrap()
}

#[test]
fn a_round_late_costs_little_accuracy_and_is_another_run() {
    let exact = ["--method", "exact-average", "--codec", "f32"];
    let [off, on] = ["off", "on"].map(|overlap| simulate(&[&exact[..], &["--overlap", overlap]].concat()));
    let [usual, late] = [&off, &on].map(|report| report["loss"].as_f64().unwrap());
    assert!(late > usual && late < 1.2 * usual, "{late} instead of {usual}");
    assert_eq!(off["slots"], on["slots"]);
    assert_eq!(on["weight"].as_f64(), Some(8.0));
}

#[test]
fn peers_train_ahead_keep_their_weight_and_tell_for_how_many_rounds() {
    let swarm = PlannedSwarm::with_design("ring:n=3", "exact-average", 3, 60);
    let mut peers: Vec<_> = (0..3).map(|node| swarm.start_with(node, &["--overlap", "on"])).collect();
    swarm.finish(&mut peers, "exact-average with overlap");
    for node in 0..3 {
        let overlap = &summary(&swarm, node)["overlap"];
        assert_eq!(overlap["choice"], "on", "{overlap}");
        assert!(overlap["rounds"].as_u64().is_some_and(|rounds| (50..56).contains(&rounds)), "{overlap}");
    }
}

#[test]
fn a_running_peer_shows_it() {
    let swarm = PlannedSwarm::with_design("ring:n=3", "exact-average", 3, 1_000_000);
    let mut peers: Vec<_> = (0..3).map(|node| swarm.start_with(node, &["--overlap", "on"])).collect();
    peers[0].wait_for("round");
    let shown = stdout(&run(&["status", "--home", text(&swarm.home(0))]));
    assert!(shown.contains("overlap on: ") && shown.contains("rounds trained while the one before"), "{shown}");
}

#[test]
fn a_plan_that_does_not_average_exactly_in_every_round_is_named_and_mixes_first() {
    let swarm = PlannedSwarm::with_design("ring:n=4", "d-psgd", 4, 200);
    let mut peers: Vec<_> = (0..4).map(|node| swarm.start_with(node, &["--overlap", "on"])).collect();
    swarm.finish(&mut peers, "d-psgd with overlap");
    let events = fs::read_to_string(swarm.home(0).join("events.jsonl")).unwrap();
    assert!(events.contains("--overlap on: this plan does not average exactly in every round"), "{events}");
    assert_eq!(summary(&swarm, 0)["overlap"]["rounds"], 0);
}

#[test]
fn a_simulation_and_a_demo_refuse_what_they_cannot_show() {
    let start = ["simulate", "--topology", "ring:n=6", "--rounds", "3"];
    let refused = |more: &[&str], words: &[&str]| assert_fails(&run(&[&start, more].concat()), 4, words);
    refused(&["--method", "d-psgd", "--overlap", "on"], &["does not average exactly", "--method exact-average"]);
    refused(&["--method", "exact-average", "--overlap", "on", "--ledger", "off"], &["without a ledger", "--overlap"]);
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("demo");
    let demo = run(&["demo", "--overlap", "on", "--output", text(&output)]);
    assert_fails(&demo, 4, &["does not average exactly", "--method exact-average"]);
    assert!(!output.exists(), "a demo that is refused writes nothing");
    assert_fails(&run(&["run", "--overlap", "auto"]), 2, &["auto", "there are off and on"]);
}
