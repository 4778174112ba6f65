//! Momentum across rounds, from the command line.

use crate::support::{assert_fails, run, stderr, stdout};
use serde_json::Value;

/// A swarm of eight whose data differ, with few and long rounds.
const SWARM: [&str; 12] = [
    "--split",
    "dirichlet:0.3",
    "--model",
    "softmax",
    "--local-steps",
    "10",
    "--rounds",
    "20",
    "--evaluate-every",
    "20",
    "--learning-rate",
    "0.01",
];

fn simulate(arguments: &[&str]) -> Value {
    let output = run(&[&["simulate", "--json"], &SWARM[..], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap()
}

#[test]
fn momentum_across_rounds_lowers_the_loss_at_equal_rounds() {
    let exact = ["--topology", "complete:n=8", "--method", "exact-average"];
    let loss = |momentum: &str| {
        let report = simulate(&[&exact[..], &["--momentum-across-rounds", momentum]].concat());
        (report["momentum_across_rounds"].as_f64().unwrap(), report["loss"].as_f64().unwrap())
    };
    let [(none, without), (auto, some), (most, with)] = ["off", "auto", "0.8"].map(loss);
    assert_eq!((none, auto, most), (0.0, 0.4, 0.8));
    assert!(some < 0.95 * without && with < 0.8 * some, "{with} and {some} with, {without} without");
    // The same code works on textbook push-sum.
    let [book, nodes] = [["--ledger", "off"], ["--codec", "f32"]]
        .map(|way| simulate(&[&exact[..], &["--momentum-across-rounds", "0.8"], &way].concat()));
    let apart = book["loss"].as_f64().unwrap() - nodes["loss"].as_f64().unwrap();
    assert!((nodes["loss"].as_f64().unwrap() - with).abs() < 0.01, "four bits, which auto takes: {with}");
    assert!(apart.abs() < 2e-3, "{apart} apart");
}

#[test]
fn momentum_above_the_limit_of_a_plan_is_refused_with_the_limit() {
    let plan = ["--topology", "exponential:n=8", "--method", "one-peer-exponential"];
    let arguments = [&["simulate"], &SWARM[..], &plan, &["--momentum-across-rounds", "0.8"]].concat();
    assert_fails(&run(&arguments), 4, &["above 0.61, the differences between peers grow", "the column `momentum`"]);
    let limited = simulate(&[&plan[..], &["--momentum-across-rounds", "0.6"]].concat());
    assert_eq!(limited["momentum_across_rounds"], 0.6);
}

#[test]
fn a_plan_says_which_momentum_it_bears() {
    let topology = ["--topology", "exponential:n=8"];
    let compared = run(&[&["plan", "compare"], &topology[..], &["--methods", "one-peer-exponential"]].concat());
    let table = stdout(&compared);
    let cells =
        |line: usize| table.lines().nth(line).unwrap().split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    let column = cells(1).position(|heading| heading == "momentum").unwrap();
    assert_eq!(cells(2).nth(column), Some("0.61"), "{table}");
    let made = run(&[&["plan", "make", "--json"], &topology[..], &["--method", "one-peer-exponential"]].concat());
    let forecast: Value = serde_json::from_str(&stdout(&made)).unwrap();
    assert_eq!(forecast["largest_momentum"], 0.61);
}
