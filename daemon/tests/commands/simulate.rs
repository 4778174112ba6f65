//! `mingle simulate`: swarms of production nodes on virtual time.

use std::path::Path;

use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

const TASK: [&str; 6] = ["--batch-size", "8", "--evaluate-every", "10", "--rounds", "40"];

/// All objects that a simulation printed; the last is the report.
fn simulate(arguments: &[&str]) -> Vec<Value> {
    let output = run(&[&["simulate", "--json"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(object: &Value, key: &str) -> f64 {
    object[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {object}"))
}

#[test]
fn production_nodes_and_the_textbook_come_to_the_same_models() {
    // Symmetric, one directed graph, and a period that moves everything up a tree and down again.
    for method in ["d-psgd", "sgp-uniform", "exact-average"] {
        let plan = ["--topology", "grid:rows=3,cols=3", "--method", method, "--codec", "f32"];
        let arguments = [&plan[..], &TASK].concat();
        let [nodes, book] = ["on", "off"].map(|ledger| simulate(&[&arguments[..], &["--ledger", ledger]].concat()));
        assert_eq!(nodes.len(), book.len(), "{method}");
        for (node, book) in nodes.iter().zip(&book) {
            for exact in ["round", "slots", "epochs"] {
                assert_eq!(node[exact], book[exact], "{method}, {exact}");
            }
            let apart = (number(node, "loss") - number(book, "loss")).abs();
            assert!(apart < 2e-3, "{method}: {node} and {book}");
        }
        assert!((number(nodes.last().unwrap(), "weight") - 9.0).abs() < 1e-9, "{method}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_on_any_number_of_threads() {
    // Nodes with the larger model have threads of their own.
    for model in ["softmax", "mlp:hidden=1024"] {
        let once = |threads: &str| {
            let losses = ["--topology", "ring:n=6", "--method", "sgp-uniform", "--loss", "0.1"];
            let mut lines = simulate(&[&losses[..], &["--model", model, "--threads", threads], &TASK].concat());
            let report = lines.pop().unwrap();
            (lines, report["lost_parcels"].clone(), report["weight"].clone())
        };
        let first = once("1");
        assert_eq!(first, once("3"), "{model}");
        assert!(first.1.as_u64().unwrap() > 0);
    }
}

/// The wait policy that a command uses by default, as its help says.
fn default_policy(command: &str) -> String {
    let help = stdout(&run(&[command, "--help"]));
    let about = help.split("--wait <POLICY>").nth(1).unwrap_or_else(|| panic!("{help}"));
    let default = about.split("[default: ").nth(1).and_then(|rest| rest.split([',', ']']).next());
    default.unwrap_or_else(|| panic!("{help}")).to_owned()
}

#[test]
fn nodes_wait_by_default_as_those_of_run_do() {
    let policy = default_policy("run");
    assert_eq!(default_policy("simulate"), policy);
    let report = |wait: &[&str]| {
        let losses = ["--topology", "ring:n=6", "--method", "sgp-uniform", "--loss", "0.8"];
        let mut report = simulate(&[&losses[..], wait, &TASK].concat()).pop().unwrap();
        for measured in ["seconds", "training_seconds"] {
            report[measured].take();
        }
        report
    };
    let usual = report(&[]);
    assert_eq!(usual, report(&["--wait", &policy]));
    // With so many losses the neighbours that a node waits for decide what it mixes.
    for other in ["bounded:3", "bounded:5", "sync", "async"] {
        assert_ne!(usual, report(&["--wait", other]), "--wait {other} makes no difference here");
    }
}

/// The mean and the least accuracy of five final models, and their disagreement, as means over three seeds; of real peers and of a simulation
/// of the same training by the same plans.
fn final_models() -> [[f64; 3]; 2] {
    let folder = tempfile::tempdir().unwrap();
    let training = ["--split", "label-sorted", "--model", "mlp", "--learning-rate", "0.2", "--rounds", "100"];
    let mut means = [[0.0; 3]; 2];
    for seed in ["1", "2", "3"] {
        let output = folder.path().join(seed);
        let swarm = ["demo", "--json", "--no-comparison", "--peers", "5", "--local-steps", "5", "-o", text(&output)];
        let demo = run(&[&swarm[..], &training, &["--seed", seed]].concat());
        assert!(demo.status.success(), "{}", stderr(&demo));
        let peers: Value = serde_json::from_str(stdout(&demo).lines().last().unwrap()).unwrap();
        let plan = output.join("plan.json");
        let simulated = simulate(&[&["--plan", text(&plan), "--seed", seed][..], &training].concat()).pop().unwrap();
        for (mean, end) in means.iter_mut().zip([&peers["swarm"], &simulated]) {
            let keys = ["mean_accuracy", "worst_accuracy", "disagreement"];
            mean.iter_mut().zip(keys).for_each(|(mean, key)| *mean += number(end, key) / 3.0);
        }
    }
    means
}

#[test]
fn a_simulation_with_default_options_ends_with_models_as_good_as_those_of_real_peers() {
    let [peers, simulated] = final_models();
    println!("mean and least accuracy and disagreement of peers {peers:.4?}, simulated {simulated:.4?}");
    for (peers, simulated) in peers.iter().zip(simulated) {
        assert!((peers - simulated).abs() < 0.015, "peers {peers}, simulated {simulated}");
    }
}

#[test]
fn the_last_rounds_train_where_that_is_wanted() {
    let end = |last: &[&str]| {
        let task = ["--topology", "ring:n=6", "--method", "d-psgd", "--split", "label-sorted"];
        simulate(&[&task[..], &TASK, last].concat()).pop().unwrap()
    };
    let [mixed, trained] = [&[][..], &["--last-rounds", "train"]].map(end);
    assert!(number(&mixed, "disagreement") < 0.2 * number(&trained, "disagreement"), "{mixed} and {trained}");
    assert!(number(&mixed, "epochs") < number(&trained, "epochs"), "{mixed} and {trained}");
    assert_eq!(mixed["slots"], trained["slots"]);
}

#[test]
fn a_round_takes_the_slots_of_its_plan() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    let made = run(&["plan", "make", "--topology", "rg:n=12,r=0.5,seed=3", "--method", "nguyen-he", "-o", text(&plan)]);
    assert!(made.status.success(), "{}", stderr(&made));
    let forecast = std::fs::read_to_string(&plan).unwrap();
    let slots = serde_json::from_str::<Value>(&forecast).unwrap()["forecast"]["slots_per_period"].as_u64().unwrap();
    for progress in simulate(&[&["--plan", text(&plan)][..], &TASK].concat()) {
        assert_eq!(progress["slots"], progress["round"].as_u64().unwrap() * slots);
    }
}

#[test]
fn the_seed_of_a_simulation_is_that_of_its_plan_unless_the_plan_has_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let request = ["--topology", "rg:n=12,r=0.5,seed=3", "--method", "nguyen-he"];
    let made = |seed: &str| {
        let file = folder.path().join(format!("plan-{seed}.json"));
        let made = run(&[&["plan", "make"], &request[..], &["--seed", seed, "-o", text(&file)]].concat());
        assert!(made.status.success(), "{}", stderr(&made));
        file
    };
    let report = |arguments: &[&str]| simulate(&[arguments, &TASK].concat()).pop().unwrap();
    let hash_of = |file: &Path| report(&["--plan", text(file)])["plan"].clone();
    let [zero, seven] = ["0", "7"].map(|seed| hash_of(&made(seed)));
    assert_ne!(zero, seven);
    let with = |seeds: &[&str]| report(&[&request[..], seeds].concat());
    assert_eq!(with(&[])["plan"], zero);
    assert_eq!(with(&["--seed", "7"])["plan"], seven);
    // The same plan on other data, and another plan on the same data.
    let (same_plan, other_plan) = (with(&["--seed", "7", "--plan-seed", "0"]), with(&["--plan-seed", "7"]));
    assert_eq!((&same_plan["plan"], &other_plan["plan"]), (&zero, &seven));
    assert_ne!(same_plan["loss"], other_plan["loss"]);
    let both = run(&["simulate", "--plan", text(&made("7")), "--plan-seed", "7"]);
    assert_fails(&both, 2, &["--plan", "--plan-seed"]);
}

#[test]
fn what_is_lost_is_sent_again_by_the_ledger_and_gone_in_the_textbook() {
    let losses = ["--topology", "rg:n=12,r=0.5,seed=3", "--method", "sgp-uniform", "--loss", "0.2"];
    let arguments = [&losses[..], &["--split", "label-sorted"], &TASK].concat();
    let [ledger, book] = ["on", "off"].map(|ledger| simulate(&[&arguments[..], &["--ledger", ledger]].concat()));
    let (ledger, book) = (ledger.last().unwrap(), book.last().unwrap());
    // The parcels lost last are still under way.
    assert!((6.0..=12.0).contains(&number(ledger, "weight")), "{ledger}");
    assert!(number(book, "weight") < 0.1, "{book}");
    assert!(number(ledger, "mean_accuracy") > number(book, "mean_accuracy") + 0.1, "{ledger} and {book}");
    for report in [ledger, book] {
        let share = number(report, "lost_parcels") / number(report, "parcels");
        assert!((0.15..0.25).contains(&share), "{report}");
    }
}

#[test]
fn it_stops_at_the_first_of_its_goals_and_says_which() {
    let ends = |goal: &[&str]| {
        let arguments = [&["--topology", "complete:n=4", "--method", "d-psgd", "--rounds", "400"], goal].concat();
        simulate(&arguments).pop().unwrap()
    };
    let target = ends(&["--target-accuracy", "0.8"]);
    assert_eq!(target["stop"], "target");
    assert!(number(&target, "recent_accuracy") >= 0.8);
    let loss = ends(&["--target", "loss=0.9"]);
    assert_eq!(loss["stop"], "target");
    assert!(number(&loss, "loss") < 1.0 && number(&loss, "round") < 400.0, "{loss}");
    let slots = ends(&["--max-slots", "100"]);
    assert_eq!(slots["stop"], "slots");
    assert!((100.0..120.0).contains(&number(&slots, "slots")), "{slots}");
    let epochs = ends(&["--epochs", "1.5"]);
    assert_eq!(epochs["stop"], "epochs");
    assert!((1.5..1.9).contains(&number(&epochs, "epochs")), "{epochs}");
}

#[test]
fn what_cannot_be_simulated_is_refused_with_the_reason() {
    let refused = |arguments: &[&str], words: &[&str]| {
        assert_fails(&run(&[&["simulate", "--topology", "ring:n=4"], arguments].concat()), 4, words);
    };
    refused(&["--loss", "1"], &["--loss", "below 1"]);
    refused(&["--target-accuracy", "93"], &["--target accuracy 93", "0.93"]);
    refused(&["--target", "bits_per_byte=2"], &["--target bits_per_byte 2", "accuracy, loss are"]);
    refused(&["--method", "magic"], &["--method magic"]);
    refused(&["--data", "nowhere"], &["--data nowhere"]);
    refused(&["--wait", "sometimes"], &["--wait sometimes"]);
    refused(&["--local-steps", "0"], &["only averages", "--local-steps 1"]);
    let missing = Path::new("no-such-plan.json");
    assert_fails(&run(&["simulate", "--plan", text(missing)]), 4, &["no-such-plan.json"]);
}
