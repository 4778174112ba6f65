//! `mingle run --compare-alone`: the result that a peer would reach without the others, beside that of the swarm.

use crate::support;
use std::process::Stdio;

use crate::support::pair::Pair;
use crate::support::{RunningPeer, assert_fails, mingle, read_json, run, text};
use serde_json::Value;

const TASK: [&str; 7] = ["--model", "softmax", "--split", "label-sorted", "--wait", "sync", "--rounds"];

#[test]
fn a_peer_with_half_of_the_classes_is_worse_alone_and_the_summary_says_by_how_much() {
    let pair = Pair::new();
    let task = [&TASK[..], &["200", "--learning-rate", "0.2"]].concat();
    let mut first = pair.start_first(&task);
    let (home, address) = (pair.home(1), first.address());
    // The second shows its table to a person.
    let way_in = ["run", "--home", text(&home), "--bootstrap", &address, "--listen", "/ip4/127.0.0.1/udp/0/quic-v1"];
    let arguments = [&way_in[..], &task, &["--compare-alone"]].concat();
    let output = mingle().args(&arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", support::stderr(&output));
    assert_eq!(first.wait_through_rounds_for("done")["round"], 200);
    assert_eq!(first.exit_code(), Some(0));

    let summary = read_json(&home.join("summary.json"));
    let metric = |of: &Value, name: &str| of[name].as_f64().unwrap_or_else(|| panic!("no {name} in {summary}"));
    let (swarm, alone) = (&summary["metrics"], &summary["alone"]["metrics"]);
    assert!(metric(alone, "accuracy") < 0.6, "it never saw five of ten classes: {summary}");
    assert!(metric(swarm, "accuracy") > 0.8 && metric(swarm, "loss") < metric(alone, "loss"), "{summary}");
    assert_eq!((&summary["alone"]["rounds"], &summary["alone"]["held_out_samples"]), (&200.into(), &360.into()));
    assert!(read_json(&pair.home(0).join("summary.json"))["alone"].is_null(), "nobody asked for it there");

    let table = support::stdout(&output);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["on", "360", "held-out", "samples", "this", "peer", "the", "swarm"], "{table}");
    for (row, name) in rows[1..].iter().zip(["accuracy", "loss"]) {
        let [shown, by_itself, by_swarm] = [row[0], row[1], row[2]];
        assert_eq!((shown, row[3]), (name, "better"), "{table}");
        for (shown, of) in [(by_itself, alone), (by_swarm, swarm)] {
            assert!((shown.parse::<f64>().unwrap() - metric(of, name)).abs() < 1e-3, "{table} and {summary}");
        }
    }
}

#[test]
fn whoever_wants_the_peer_to_stop_waits_for_no_comparison() {
    let pair = Pair::new();
    let task = [&TASK[..], &["1000000", "--compare-alone", "on"]].concat();
    let mut peers = pair.start(&task);
    for peer in &mut peers {
        assert_eq!(peer.wait_for("round")["event"], "round");
    }
    peers.iter().for_each(|peer: &RunningPeer| peer.signal("TERM"));
    for (node, peer) in peers.iter_mut().enumerate() {
        assert!(peer.wait_through_rounds_for("done").get("error").is_none());
        assert_eq!(peer.exit_code(), Some(0));
        assert!(read_json(&pair.home(node).join("summary.json"))["alone"].is_null());
    }
}

#[test]
fn another_programs_model_and_a_problem_cannot_be_compared_so() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    assert!(run(&["init", "--home", text(&home)]).status.success());
    let trainer = run(&["run", "--home", text(&home), "--trainer", "attach", "--compare-alone"]);
    assert_fails(&trainer, 4, &["--compare-alone is about the built-in models"]);
    let problem = run(&["run", "--home", text(&home), "--problem", "problem.toml", "--compare-alone"]);
    assert_fails(&problem, 2, &["--problem", "--compare-alone"]);
}
