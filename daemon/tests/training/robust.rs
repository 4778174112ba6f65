//! `--robust clip`: its effect against members that send false models, and its figures in a peer's status.

use std::fs;

use crate::support::pair::Pair;
use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap()
}

/// Eight members on the embedded digits.
fn simulate(more: &[&str]) -> Value {
    let swarm =
        ["simulate", "--json", "--topology", "rg:n=8,r=0.7,seed=0", "--method", "nguyen-he", "--plan-seed", "0"];
    let task = ["--batch-size", "8", "--rounds", "100", "--evaluate-every", "50"];
    json(&[&swarm[..], &task, more].concat())
}

#[test]
fn one_member_of_eight_with_false_models_ruins_training_and_hardly_harms_those_who_clip() {
    for attack in ["sign-flip", "scale:10", "scale:1000"] {
        let liar = ["--attack", attack, "--attackers", "1"];
        let [plain, robust] = ["off", "clip"].map(|robust| simulate(&[&liar[..], &["--robust", robust]].concat()));
        let [without, with] = [&plain, &robust].map(|report| report["mean_accuracy"].as_f64().unwrap());
        assert!(without < 0.6 && with > 0.8, "{attack}: {without} without, {with} with");
        for report in [&plain, &robust] {
            assert!((report["weight"].as_f64().unwrap() - 8.0).abs() < 1e-9, "weight is exact: {report}");
        }
        assert_eq!(plain["received"]["clipped_from_attackers"], 0, "{plain}");
        assert_eq!(robust["received"]["clipped_from_attackers"], robust["received"]["from_attackers"], "{robust}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_with_liars_too() {
    let run = |threads| {
        let mut report =
            simulate(&["--attack", "little:2", "--attackers", "2", "--robust", "clip", "--threads", threads]);
        for time in ["seconds", "training_seconds"] {
            report[time] = Value::Null;
        }
        report
    };
    assert_eq!(run("1"), run("2"));
}

#[test]
fn a_running_peer_shows_what_it_clipped_and_leaves_it_in_its_summary() {
    let pair = Pair::new();
    let endless = ["--model", "softmax", "--rounds", "1000000", "--evaluate-every", "2", "--robust", "clip"];
    let mut peers = pair.start(&endless);
    let round = peers[0].wait_for("round");
    assert!(round["clipped"]["parcels"].is_u64(), "{round}");
    peers[0].wait_for("evaluated");
    let home = pair.home(0);
    let home = text(&home);
    assert!(run(&["wait", "--home", home, "--for", "round=4"]).status.success());
    let status = json(&["status", "--json", "--home", home]);
    assert_eq!(status["robust"]["rule"], "clip", "{status}");
    assert!(status["robust"]["radius"].as_f64().unwrap() > 0.0, "{status}");
    assert!(status["neighbours"][0]["incoming"]["clipped"]["norm"].is_number(), "{status}");
    let shown = stdout(&run(&["status", "--home", home]));
    assert!(shown.contains("robust clip: radius "), "{shown}");
    assert!(run(&["stop", "--home", home]).status.success());
    assert_eq!(peers[0].exit_code(), Some(0), "it has ended when `stop` returns");
    let summary = fs::read_to_string(pair.home(0).join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["robust"]["rule"], "clip", "{summary}");
}

#[test]
fn values_that_mean_nothing_are_refused_with_what_there_is() {
    assert_fails(&run(&["run", "--robust", "krum"]), 2, &["krum", "off and clip"]);
    let simulate = ["simulate", "--topology", "ring:n=4"];
    let refused = |more: &[&str], code, words: &[&str]| assert_fails(&run(&[&simulate, more].concat()), code, words);
    refused(&["--attack", "noise", "--attackers", "1"], 2, &["noise", "sign-flip, scale:FACTOR and little"]);
    refused(&["--attack", "scale:nan", "--attackers", "1"], 2, &["scale:nan"]);
    refused(&["--attack", "sign-flip"], 2, &["--attackers"]);
    refused(&["--attack", "sign-flip", "--attackers", "4"], 4, &["4 attackers leave nobody honest among 4 nodes"]);
    refused(&["--robust", "clip", "--ledger", "off"], 4, &["without a ledger", "--robust"]);

    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    fs::write(&config, "robust = \"clip\"\n").unwrap();
    let shown = run(&["config", "show", "--config", text(&config), "--origin"]);
    assert!(stdout(&shown).contains("robust = \"clip\""), "{}", stdout(&shown));
    fs::write(&config, "robust = \"median\"\n").unwrap();
    assert_fails(&run(&["config", "check", text(&config)]), 4, &["config.toml:1", "median"]);
}
