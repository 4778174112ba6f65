//! Gradient steps: optimizers, learning rates that change by round, clipped gradients, and the peers that adopt these
//! options.

use crate::support;
use std::fs;

use crate::support::pair::Pair;
use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

const ONE: u64 = 1 << 40;

#[test]
fn a_swarm_of_adamw_with_a_schedule_learns_and_a_killed_peer_goes_on_with_its_moments() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let small = ["demo", "--json", "--model", "softmax", "--peers", "3", "--rounds", "60", "--evaluate-every", "20"];
    let adamw = ["--optimizer", "adamw", "--learning-rate", "0.01", "--weight-decay", "0.01", "--schedule", "cosine"];
    let more =
        ["--split", "iid", "--warmup", "5", "--clip-gradients", "1", "--kill", "1@20", "--restart", "-o", text(&root)];
    let output = run(&[&small[..], &adamw, &more].concat());
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let report: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
    assert_eq!(report["audit"]["held"], 3 * ONE);
    assert!(report["swarm"]["worst_accuracy"].as_f64() > Some(0.85), "{report}");
    // The baselines take the same steps by the same schedule.
    assert!(report["without_swarm"]["central"].as_f64() > Some(0.85), "{report}");
}

#[test]
fn a_peer_is_told_how_the_others_train_and_keeps_what_it_says_itself() {
    let pair = Pair::new();
    let short = ["--model", "softmax", "--rounds", "8", "--wait", "sync"];
    let first = [&short[..], &["--optimizer", "adamw", "--schedule", "step:2,0.5", "--warmup", "3"]].concat();
    let mut first = pair.start_first(&first);
    let (home, address) = (pair.home(1), first.address());
    let own = ["--home", text(&home), "--bootstrap", &address, "--learning-rate", "0.004", "--clip-gradients", "2"];
    let mut second = support::RunningPeer::start(&[&own[..], &short].concat());
    for peer in [&mut first, &mut second] {
        let end = peer.wait_for("done");
        assert!(end.get("error").is_none(), "{end}");
    }
    let recipe = |node: usize| {
        let file: Value =
            serde_json::from_str(&fs::read_to_string(pair.home(node).join("task.json")).unwrap()).unwrap();
        file["card"]["recipe"].clone()
    };
    let [told, taken] = [recipe(0), recipe(1)];
    assert_eq!(told["learning_rate"], 0.001, "that of adamw, where nobody says another: {told}");
    assert_eq!((&taken["learning_rate"], &taken["clip_gradients"]), (&0.004.into(), &2.0.into()), "{taken}");
    for key in ["optimizer", "schedule", "warmup", "weight_decay", "batch_size"] {
        assert_eq!(told[key], taken[key], "{key}");
    }
    assert_eq!(told["schedule"], "step:2,0.5");
}

#[test]
fn simulated_nodes_follow_the_schedule_round_by_round() {
    let simulate = |more: &[&str]| {
        let task = ["simulate", "--json", "--topology", "ring:n=4", "--method", "sgp-uniform", "--batch-size", "8"];
        let output = run(&[&task[..], &["--rounds", "20", "--evaluate-every", "10"], more].concat());
        assert!(output.status.success(), "{more:?}: {}", stderr(&output));
        let lines: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.iter().map(|line| line["loss"].as_f64().unwrap()).collect::<Vec<f64>>()
    };
    let constant = simulate(&[]);
    assert_eq!(simulate(&["--schedule", "step:20,0.5"]), constant, "no step comes before the end");
    let halved = simulate(&["--schedule", "step:10,0.5"]);
    assert_eq!(halved[0], constant[0], "the first ten rounds are the same");
    assert_ne!(halved[1], constant[1]);
    // Next to nothing is learnt in the rest of the run at 1e-9 of the rate.
    let stopped = simulate(&["--schedule", "step:10,0.000000001", "--evaluate-every", "20"]);
    assert!(stopped[0] > constant[1], "{stopped:?} and {constant:?}");
    let adamw = ["--optimizer", "adamw", "--learning-rate", "0.01", "--schedule", "cosine", "--warmup", "3"];
    let [nodes, book] = ["on", "off"].map(|ledger| simulate(&[&adamw[..], &["--ledger", ledger]].concat()));
    assert!(nodes.iter().zip(&book).all(|(a, b)| (a - b).abs() < 2e-3), "{nodes:?} and {book:?}");
}

#[test]
fn what_does_nothing_or_means_nothing_is_refused_by_the_name_of_its_option() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let made = run(&["init", "--home", text(&home)]);
    assert!(made.status.success(), "{}", stderr(&made));
    let out = folder.path().join("demo");
    let commands = [
        vec!["run", "--home", text(&home)],
        vec!["demo", "-o", text(&out)],
        vec!["simulate", "--topology", "ring:n=4", "--rounds", "10"],
    ];
    for command in &commands {
        let refused = |options: &[&str], code: i32, words: &[&str]| {
            assert_fails(&run(&[&command[..], options].concat()), code, words);
        };
        let momentum = ["--optimizer", "adamw", "--momentum", "0.9"];
        refused(&momentum, 4, &["--momentum 0.9 does nothing with --optimizer adamw"]);
        refused(&["--rounds", "10", "--warmup", "10"], 4, &["--warmup 10", "none of 10 rounds"]);
        for norm in ["0", "nan", "inf"] {
            refused(&["--clip-gradients", norm], 4, &["--clip-gradients must be a positive number"]);
        }
        refused(&["--optimizer", "adam"], 2, &["--optimizer", "write sgd or adamw"]);
        refused(&["--schedule", "linear"], 2, &["--schedule", "write constant, cosine, cosine:FLOOR"]);
        refused(&["--schedule", "step:10,2"], 2, &["--schedule", "above 0 and below 1"]);
    }
    let unbounded = ["simulate", "--topology", "ring:n=4", "--epochs", "1", "--schedule", "cosine"];
    assert_fails(&run(&unbounded), 4, &["--schedule cosine", "--rounds"]);
    assert!(!out.exists());
}
