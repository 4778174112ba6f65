//! `--weight`: swarms whose sites count by their samples.

use std::fmt::Write;
use std::fs;

use crate::support::pair::Pair;
use crate::support::planned_swarm::PlannedSwarm;
use crate::support::{RunningPeer, assert_fails, read_json, run, stderr, stdout, text};
use mingle_models::{
    Augmentation, DataSource, DeviceName, Evaluator, OptimizerOptions, SiteWeight, Task, Trainer, TrainerOptions,
};
use serde_json::Value;

const ROUNDS: u64 = 40;
/// Sites with very different numbers of the digits, each of which takes its steps on all it has.
const UNEQUAL: [&str; 8] = ["--split", "dirichlet:0.1", "--batch-size", "2000", "--wait", "sync", "--codec", "f32"];

/// The last object that a simulation printed.
fn simulate(arguments: &[&str]) -> Value {
    let output = run(&[&["simulate", "--json"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap()
}

/// The loss on held-out digits after as many steps on all data in one place.
fn loss_of_one_place() -> f64 {
    let data = "digits".parse::<DataSource>().unwrap().load(0).unwrap();
    let device = DeviceName::Cpu.open().unwrap();
    let task = Task::new("softmax".parse().unwrap(), data.train.shape(), data.train.classes()).unwrap();
    let options = TrainerOptions {
        task,
        device: device.clone(),
        optimizer: OptimizerOptions::sgd(0.1),
        batch_size: data.train.len(),
        augmentation: Augmentation::NONE,
        data_seed: 0,
        weight: SiteWeight::Equal,
    };
    let from = task.initial_parameters(0);
    let outcome = Trainer::new(options, data.train).unwrap().train(&from, ROUNDS as u32).unwrap();
    let model: Vec<f32> = from.iter().zip(&outcome.delta).map(|(from, change)| from + change).collect();
    Evaluator::new(task, &device).evaluate(&model, &data.test).unwrap().loss
}

#[test]
fn a_weighted_swarm_follows_one_place_on_all_data_and_runs_as_it_is_simulated() {
    let swarm = PlannedSwarm::with_design("complete:n=3", "exact-average", 3, ROUNDS);
    let (plan, rounds) = (swarm.plan(), ROUNDS.to_string());
    let simulated = |weight: &str| {
        let fixed = ["--plan", text(&plan), "--rounds", &rounds, "--weight", weight];
        let report = simulate(&[&fixed[..], &UNEQUAL].concat());
        assert_eq!(report, {
            let mut again = simulate(&[&fixed[..], &UNEQUAL].concat());
            for key in ["seconds", "training_seconds"] {
                again[key] = report[key].clone();
            }
            again
        });
        report["loss"].as_f64().unwrap()
    };
    let (one_place, weighted, equal) = (loss_of_one_place(), simulated("samples"), simulated("equal"));
    assert!((weighted - one_place).abs() < 1e-4, "{weighted} and {one_place}");
    assert!((equal - one_place).abs() > 0.02, "{equal} and {one_place}");

    let more = [&UNEQUAL[..], &["--weight", "samples"]].concat();
    let mut peers: Vec<RunningPeer> = (0..3).map(|node| swarm.start_with(node, &more)).collect();
    for (node, peer) in peers.iter_mut().enumerate() {
        let end = peer.wait_through_rounds_for("done");
        let run = end["metrics"]["loss"].as_f64().unwrap_or_else(|| panic!("node {node}: {end}"));
        assert!((run - weighted).abs() < 1e-4, "node {node}: {run}, simulated {weighted}");
        let task = read_json(&swarm.home(node).join("task.json"));
        assert_eq!(task["card"]["weight"]["samples"]["unit"], 479, "a third of 1,437: {task}");
    }
}

/// A table of so many rows of two columns and the class that follows from them.
fn table(rows: std::ops::Range<usize>) -> String {
    rows.fold("a,b,kind\n".to_owned(), |mut table, row| {
        let (a, b) = ((row * 7 % 23) as f64, (row * 11 % 31) as f64);
        writeln!(table, "{a},{b},{}", if a > b { "more" } else { "less" }).unwrap();
        table
    })
}

#[test]
fn the_first_peer_says_how_many_samples_count_as_one_and_who_wants_it_otherwise_is_refused() {
    let pair = Pair::new();
    let data = [("large.csv", 0..100), ("small.csv", 100..130)].map(|(name, rows)| {
        fs::write(pair.file(name), table(rows)).unwrap();
        format!("csv:{}", pair.file(name).display())
    });
    let short = ["--model", "softmax", "--rounds", "8", "--wait", "sync"];
    let mut first = pair.start_first(&[&short[..], &["--data", &data[0], "--weight", "samples"]].concat());
    let (home, address) = (pair.home(1), first.address());
    let loopback = ["--listen", "/ip4/127.0.0.1/udp/0/quic-v1"];
    let second = ["--home", text(&home), "--bootstrap", &address, "--data", &data[1], "--wait", "sync"];
    let refused = |weight: &str| {
        let output = run(&[&["run"], &second[..], &loopback, &["--weight", weight]].concat());
        let words = format!("--weight {weight} contradicts the task of the swarm, which has samples:80");
        assert_fails(&output, 6, &[&words]);
    };
    refused("equal");
    refused("samples:79");
    let mut second = RunningPeer::start(&[&second[..], &["--weight", "samples"]].concat());
    for peer in [&mut first, &mut second] {
        let end = peer.wait_for("done");
        assert!(end.get("error").is_none(), "{end}");
        assert_eq!(peer.exit_code(), Some(0));
    }
    for node in 0..2 {
        assert_eq!(read_json(&pair.home(node).join("task.json"))["card"]["weight"]["samples"]["unit"], 80);
    }
    // The home holds the work of a run in which sites had other weights.
    let again = ["run", "--home", text(&home), "--data", &data[1], "--bootstrap", &address, "--weight", "equal"];
    assert_fails(
        &run(&[&again[..], &loopback].concat()),
        6,
        &["--weight is equal here and samples:80 there", "--fresh"],
    );
}

#[test]
fn what_means_nothing_is_refused_by_the_name_of_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    assert!(run(&["init", "--home", text(&home)]).status.success());
    let run_with = |options: &[&str]| run(&[&["run", "--home", text(&home)], options].concat());
    assert_fails(&run_with(&["--weight", "rows"]), 2, &["--weight", "write equal, samples or samples:N"]);
    assert_fails(&run_with(&["--weight", "samples:0"]), 2, &["--weight", "N of at least 1"]);
    let pair = Pair::new();
    let mut tiny = pair.start_first(&["--model", "softmax", "--rounds", "8", "--weight", "samples:5"]);
    let said = tiny.wait_for_warning("counts 32 times as much");
    assert!(said.contains("1437 samples"), "{said}");
    let dealt = run_with(&["--weight", "samples", "--split", "iid"]);
    assert_fails(&dealt, 4, &["--weight samples", "such as --weight samples:1000"]);
}
