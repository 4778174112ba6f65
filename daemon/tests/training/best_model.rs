//! `--keep-best` and `--tensorboard`: the best model of a run beside the last one, and all metrics in an event file.

use std::fs;
use std::path::Path;

use crate::support::pair::Pair;
use crate::support::{RunningPeer, assert_fails, read_json, run, stderr, stdout, text};
use serde_json::Value;

fn events(home: &Path, kind: &str) -> Vec<Value> {
    let all = fs::read_to_string(home.join("events.jsonl")).unwrap();
    let all = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|event| event["event"] == kind).collect()
}

fn judge(model: &Path) -> Value {
    let output = run(&["eval", "--json", text(model)]);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn the_best_model_by_a_metric_is_kept_and_is_as_good_as_it_says() {
    let pair = Pair::new();
    let options = ["--model", "mlp:hidden=8", "--learning-rate", "1.5", "--rounds", "60", "--evaluate-every", "3"];
    let board = pair.file("board");
    let kept = ["--keep-best", "accuracy", "--tensorboard", text(&board)];
    let mut peers = pair.start(&[&options[..], &kept].concat());
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_through_rounds_for("done")["round"], 60);
        assert_eq!(peer.exit_code(), Some(0));
        let home = pair.home(node);
        let best = read_json(&home.join("summary.json"))["best"].clone();
        let measured = events(&home, "evaluated").into_iter().chain(events(&home, "done"));
        let most = measured.map(|event| event["metrics"]["accuracy"].as_f64().unwrap()).fold(0.0, f64::max);
        assert_eq!((&best["metric"], &best["value"]), (&"accuracy".into(), &most.into()), "{best}");
        assert_eq!(events(&home, "best").last().unwrap()["best"], best);
        assert_eq!(judge(&home.join("best.safetensors"))["accuracy"], best["value"]);
    }
    let files: Vec<Vec<u8>> =
        fs::read_dir(board).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
    assert_eq!(files.len(), 2, "one of each peer");
    for tag in ["evaluation/accuracy", "evaluation/loss", "best/accuracy", "swarm/weight", "train/loss"] {
        assert!(files.iter().all(|file| file.windows(tag.len()).any(|bytes| bytes == tag.as_bytes())), "{tag}");
    }
}

#[test]
fn the_last_model_may_be_the_best_between_two_evaluations() {
    let pair = Pair::new();
    let task = ["--model", "softmax", "--rounds", "20", "--evaluate-every", "1000", "--keep-best", "loss"];
    for (node, peer) in pair.start(&task).iter_mut().enumerate() {
        assert_eq!(peer.wait_through_rounds_for("done")["round"], 20);
        let summary = read_json(&pair.home(node).join("summary.json"));
        assert_eq!((&summary["best"]["round"], &summary["best"]["value"]), (&20.into(), &summary["metrics"]["loss"]));
        assert!(pair.home(node).join("best.safetensors").exists());
    }
}

#[test]
fn a_restarted_peer_replaces_the_best_model_only_by_a_better_one_and_a_new_run_begins_anew() {
    let pair = Pair::new();
    // The loss falls, so the first model has the largest.
    let options = ["--model", "softmax", "--evaluate-every", "5", "--keep-best", "loss:max"];
    let endless = [&options[..], &["--rounds", "1000000"]].concat();
    let start = || pair.start(&endless);
    let mut peers = start();
    let first = peers[0].wait_through_rounds_for("best")["best"].clone();
    peers.iter_mut().for_each(|peer| drop(peer.wait_through_rounds_for("evaluated")));
    peers.iter_mut().for_each(RunningPeer::kill);
    let mut peers = start();
    for _ in 0..3 {
        assert_eq!(peers[0].wait_through_rounds_for("evaluated")["event"], "evaluated");
    }
    peers.iter_mut().for_each(RunningPeer::kill);
    assert_eq!(judge(&pair.home(0).join("best.safetensors"))["loss"], first["value"]);
    assert!(events(&pair.home(0), "best").iter().all(|event| event["best"] == first));

    let mut peers = pair.start(&[&options[..], &["--rounds", "10", "--fresh"]].concat());
    assert!(peers[0].wait_through_rounds_for("best")["best"]["round"].as_u64() <= Some(10));
    for peer in &mut peers {
        peer.wait_through_rounds_for("done");
        assert_eq!(peer.exit_code(), Some(0));
    }
}

#[test]
fn a_metric_without_a_direction_is_refused_and_one_that_is_never_measured_is_told_of() {
    let pair = Pair::new();
    assert_fails(&run(&["run", "--keep-best", "kappa"]), 2, &["larger or when it is smaller"]);
    let mut peers = pair.start(&["--model", "softmax", "--rounds", "5", "--keep-best", "kappa:max"]);
    for (node, peer) in peers.iter_mut().enumerate() {
        peer.wait_through_rounds_for("done");
        assert_eq!(peer.exit_code(), Some(0));
        let warnings = events(&pair.home(node), "warning");
        assert!(warnings.iter().any(|event| event["message"].as_str().unwrap().contains("`kappa` was never measured")));
        assert!(!pair.home(node).join("best.safetensors").exists());
    }
}
