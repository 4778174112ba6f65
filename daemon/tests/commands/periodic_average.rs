//! Periodic averages, from the command line.

use crate::support::{assert_fails, run, stderr, stdout};
use serde_json::Value;

/// The result of a short training of eight whose data differ, by a plan of this method.
fn simulate(method: &str) -> Value {
    let swarm = ["--topology", "complete:n=8", "--split", "dirichlet:0.3", "--local-steps", "10"];
    let length = ["--rounds", "20", "--last-rounds", "train", "--evaluate-every", "20", "--learning-rate", "0.01"];
    let output = run(&[&["simulate", "--json", "--method", method][..], &swarm, &length].concat());
    assert!(output.status.success(), "{method}: {}", stderr(&output));
    serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap()
}

#[test]
fn a_periodic_average_trains_with_rounds_of_gossip_and_of_exact_averages() {
    let with_averages = simulate("periodic-average:inner=one-peer-exponential,k=3");
    assert_eq!(with_averages["method"], "periodic-average");
    // Every fourth round ends with an exact average.
    assert!(with_averages["disagreement"].as_f64().unwrap() < 1e-5, "{with_averages}");
    assert!(simulate("one-peer-exponential")["disagreement"].as_f64().unwrap() > 1e-3);
    assert!((with_averages["weight"].as_f64().unwrap() - 8.0).abs() < 1e-9);
    for (method, words) in [
        ("periodic-average:k=0", "without any it is exact-average"),
        ("periodic-average:inner=exact-average", "the gossip of a periodic average is one of nguyen-he"),
        ("periodic-average:often", "write inner=METHOD, k=ROUNDS"),
        ("d-psgd:k=3", "method d-psgd takes nothing behind its name"),
    ] {
        assert_fails(&run(&["plan", "make", "--topology", "complete:n=8", "--method", method]), 4, &[words]);
    }
}
