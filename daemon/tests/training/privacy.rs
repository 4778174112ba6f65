//! Differential privacy as a user meets it: options that are refused, agreement, the count of spending, and the end.

use std::fs;
use std::path::Path;

use crate::support::pair::Pair;
use crate::support::{RunningPeer, assert_fails, read_json, run, status, stderr, stdout, text};
use serde_json::Value;

const ONE: u64 = 1 << 40;
/// Trains until it is stopped, and never spends all.
const ENDLESS: [&str; 10] =
    ["--model", "softmax", "--rounds", "1000000", "--dp-clip", "0.5", "--dp-noise", "40", "--dp-epsilon-max", "500"];

/// Changes that a home has counted.
fn counted(home: &Path) -> u64 {
    let parts = read_json(&home.join("privacy.json"))["noised"].clone();
    parts.as_array().unwrap().iter().map(|part| part["changes"].as_u64().unwrap()).sum()
}

#[test]
fn a_swarm_trains_until_its_privacy_is_spent_and_mixes_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let private = ["--dp-clip", "1", "--dp-noise", "6", "--dp-epsilon-max", "3", "--dp-delta", "1e-6"];
    let shape = ["--peers", "3", "--rounds", "40", "--split", "iid", "--model", "softmax", "--no-comparison", "--json"];
    let output = run(&[&["demo", "--output", text(&root)], &shape[..], &private].concat());
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let report: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
    assert_eq!(report["audit"]["held"], 3 * ONE);
    let most = report["privacy"]["epsilon"].as_f64().unwrap();
    assert!(most > 2.5 && most <= 3.0, "{report}");
    for node in 0..3 {
        let home = root.join(format!("peers/{node}"));
        let summary = read_json(&home.join("summary.json"));
        assert_eq!(summary["rounds"], 40, "it goes on to the end");
        let spent = &summary["privacy"];
        let changes = spent["changes"].as_u64().unwrap();
        assert!((10..40).contains(&changes) && spent["is_spent"] == true, "{summary}");
        assert_eq!((counted(&home), &spent["delta"]), (changes, &Value::from(1e-6)));
        let events = fs::read_to_string(home.join("events.jsonl")).unwrap();
        let told = |kind: &str| events.lines().filter(|line| line.contains(&format!(r#""event":"{kind}""#))).count();
        assert_eq!((told("privacy"), told("privacy_spent"), told("warning")), (1, 1, 0), "{events}");
        assert!(summary["task"].as_str().unwrap().contains("private: clip 1, noise 6"), "{summary}");
    }
}

/// The norm of a peer's final model.
fn norm_of_model(home: &Path) -> f64 {
    let bytes = fs::read(home.join("model.safetensors")).unwrap();
    let (header, rest) = bytes.split_first_chunk().unwrap();
    let values = rest[usize::try_from(u64::from_le_bytes(*header)).unwrap()..].as_chunks().0;
    values.iter().map(|value| f64::from(f32::from_le_bytes(*value)).powi(2)).sum::<f64>().sqrt()
}

/// Noise drowns what is learnt here, so the norm of a model is that of the noise in it.
#[test]
fn noise_that_members_share_leaves_the_models_of_a_swarm() {
    let folder = tempfile::tempdir().unwrap();
    let private = ["--dp-clip", "0.01", "--dp-noise", "40", "--dp-epsilon-max", "500"];
    let shape = ["--peers", "6", "--rounds", "24", "--split", "iid", "--model", "softmax", "--no-comparison"];
    let norm = |name: &str, more: &[&str]| {
        let root = folder.path().join(name);
        let output = run(&[&["demo", "--output", text(&root)], &shape[..], &private, more].concat());
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        let norms = (0..6).map(|node| norm_of_model(&root.join(format!("peers/{node}"))));
        norms.sum::<f64>() / 6.0
    };
    let shared = norm("shared", &["--dp-colluders", "1"]);
    let home = folder.path().join("shared/peers/0");
    let events = fs::read_to_string(home.join("events.jsonl")).unwrap();
    let told = events.lines().find(|line| line.contains(r#""event":"noise""#)).unwrap();
    let told: Value = serde_json::from_str(told).unwrap();
    let own = told["own"].as_f64().unwrap();
    assert_eq!((told["noise"].as_f64(), told["colluders"].as_u64()), (Some(40.0), Some(1)), "{told}");
    let count = read_json(&home.join("privacy.json"));
    let summary = read_json(&home.join("summary.json"));
    assert_eq!(count["correlated"]["changes"][0]["changes"], summary["privacy"]["changes"], "{count} {summary}");
    assert_eq!(count["correlated"]["changes"][0]["own"].as_f64(), Some(own));
    let ratio = shared / norm("own", &[]);
    let expected = own / 40.0;
    assert!((ratio / expected - 1.0).abs() < 0.25, "{ratio}, where the own part is {expected} of the noise");
}

/// A swarm that forms by tickets can have two members in its first plan: it must not end there.
#[test]
fn colluders_that_leave_nobody_to_share_noise_with_leave_each_its_own_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let private = ["--dp-clip", "1", "--dp-noise", "6", "--dp-epsilon-max", "3", "--dp-colluders", "2"];
    let root = folder.path().join("demo");
    let output = run(&[&["demo", "--output", text(&root), "--peers", "3", "--rounds", "5"], &private[..]].concat());
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let home = root.join("peers/1");
    let events = fs::read_to_string(home.join("events.jsonl")).unwrap();
    let words = "--dp-colluders: 2 colluders among 3 members leave no two honest ones to share noise: 1 is the most";
    assert!(events.lines().any(|line| line.contains(r#""event":"warning""#) && line.contains(words)), "{events}");
    assert!(counted(&home) > 0 && read_json(&home.join("privacy.json")).get("correlated").is_none());
}

#[test]
fn half_of_privacy_is_refused_and_so_are_numbers_that_mean_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    assert!(run(&["init", "--home", text(&home)]).status.success());
    let whole = ["--dp-clip", "1", "--dp-noise", "4", "--dp-epsilon-max", "8"];
    for command in [["run", "--home", text(&home)], ["demo", "--output", text(&folder.path().join("demo"))]] {
        let refused = |more: &[&str], words: &[&str]| {
            assert_fails(&run(&[&command[..], more].concat()), 4, words);
        };
        refused(&["--dp-noise", "4"], &["--dp-noise protects nothing without --dp-clip and --dp-epsilon-max"]);
        refused(&whole[..4], &["--dp-clip protects nothing without --dp-epsilon-max", "docs/privacy.md"]);
        refused(&["--dp-delta", "1e-6"], &["--dp-delta protects nothing without"]);
        refused(&["--dp-colluders", "1"], &["--dp-colluders protects nothing without"]);
        for bad in ["0", "-1", "nan", "inf"] {
            let noise = format!("--dp-noise={bad}");
            refused(&[&whole[..2], &whole[4..], &[&noise]].concat(), &["--dp-noise: the noise is"]);
        }
        refused(&["--dp-clip", "1", "--dp-noise", "0.5", "--dp-epsilon-max", "1"], &["one change", "costs epsilon 10"]);
        refused(&[&whole[..], &["--dp-delta", "1"]].concat(), &["--dp-delta: delta is 1"]);
    }
    let solves = run(&["run", "--home", text(&home), "--problem", "p.toml", "--dp-clip", "1"]);
    assert_fails(&solves, 2, &["--dp-clip"]);
}

#[test]
fn a_peer_with_other_privacy_is_refused_by_name_and_one_that_says_nothing_takes_it_over() {
    let pair = Pair::new();
    let mut first = pair.start_first(&ENDLESS);
    let (home, address) = (pair.home(1), first.address());
    let joining = ["--home", text(&home), "--bootstrap", &address, "--model", "softmax"];
    let refused = |more: &[&str], words: &str| {
        let mut peer = RunningPeer::start(&[&joining[..], more].concat());
        let end = peer.wait_for("done");
        assert!(end["error"]["message"].as_str().unwrap().contains(words), "{end}");
        assert_eq!(peer.exit_code(), Some(6));
    };
    let noisier = ["--dp-clip", "0.5", "--dp-noise", "50", "--dp-epsilon-max", "500"];
    refused(&noisier, "--dp-noise 50 contradicts the task of the swarm, which has 40");
    refused(
        &[&ENDLESS[4..], &["--dp-delta", "1e-6"]].concat(),
        "--dp-delta 0.000001 contradicts the task of the swarm, which has 0.00001",
    );
    let mut second = RunningPeer::start(&joining);
    let told = second.wait_for("privacy");
    assert_eq!((&told["clip"], &told["noise"], &told["changes"]), (&0.5.into(), &40.0.into(), &0.into()));
    assert_eq!(second.wait_for("round")["event"], "round");
    assert_eq!(first.wait_for("round")["event"], "round");
}

#[test]
fn peers_that_settled_their_tasks_before_they_met_name_the_first_difference() {
    let noisier = ["--dp-clip", "0.5", "--dp-noise", "50", "--dp-epsilon-max", "500"];
    let cases = [
        (&noisier[..], "the noise of differential privacy is 50 here and 40 there"),
        (&[], "changes are not private here, and are there (clip 0.5, noise 40, epsilon at most 500"),
    ];
    for (more, words) in cases {
        let pair = Pair::new();
        let mut first = pair.start_first(&ENDLESS);
        let (home, card, address) = (pair.home(1), pair.file("card.json"), first.address());
        assert!(run(&["data", "card", "-o", text(&card)]).status.success());
        let settled = ["--home", text(&home), "--bootstrap", &address, "--card", text(&card)];
        let mut second = RunningPeer::start(&[&settled[..], &ENDLESS[..4], more].concat());
        let end = second.wait_for("done");
        assert!(end["error"]["message"].as_str().unwrap().contains(words), "{end}");
        assert_eq!(second.exit_code(), Some(6));
    }
}

#[test]
fn a_peer_that_wants_privacy_is_refused_where_the_swarm_has_none() {
    let pair = Pair::new();
    let mut first = pair.start_first(&ENDLESS[..4]);
    let (home, address) = (pair.home(1), first.address());
    let mut second = RunningPeer::start(&[&["--home", text(&home), "--bootstrap", &address], &ENDLESS[4..]].concat());
    let end = second.wait_for("done");
    let words = "--dp-clip 0.5 contradicts the task of the swarm, which has none";
    assert!(end["error"]["message"].as_str().unwrap().contains(words), "{end}");
}

#[test]
fn a_peer_that_is_killed_goes_on_with_the_count_and_so_does_one_that_begins_anew() {
    let pair = Pair::new();
    let homes = [pair.home(0), pair.home(1)];
    let rounds = |peers: &mut [RunningPeer; 2], count: u32| {
        for _ in 0..count {
            let event = peers[0].wait_for("round");
            assert_eq!(event["event"], "round", "{event}");
        }
    };
    let mut before = 0;
    for more in [&[][..], &[], &["--fresh"]] {
        let mut peers = pair.start(&[&ENDLESS[..], more].concat());
        let told = peers[0].wait_for("privacy")["changes"].as_u64().unwrap();
        assert!(told >= before, "{more:?}: {told} of {before}");
        rounds(&mut peers, 12);
        let shown = status(&homes[0]);
        let spent = &shown["privacy"];
        before = spent["changes"].as_u64().unwrap();
        assert!(before >= told + 11 && spent["epsilon"].as_f64().unwrap() > 0.0, "{shown}");
        let words = stdout(&run(&["status", "--home", text(&homes[0])]));
        assert!(words.contains("privacy: epsilon") && words.contains("of 500 at delta 1e-5"), "{words}");
        peers.iter_mut().for_each(RunningPeer::kill);
        assert!(counted(&homes[0]) >= before, "what was shown is on disk");
    }
}
