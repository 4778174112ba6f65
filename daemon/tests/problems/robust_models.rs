//! Distributionally robust models: solved among real peers, through the death of one, and compared with competitors.

use std::fs;

use crate::solving::{assert_peers_find_the_same, regression, robust, solution, solve};
use crate::support::planned_swarm::PlannedSwarm;
use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

#[test]
fn peers_find_the_robust_model_of_one_process_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let swarm = PlannedSwarm::for_a_problem("rg:n=3,r=0.9,seed=2", "nguyen-he", 3);
    assert_peers_find_the_same(&swarm, &robust(folder.path(), ""));
    // The worst hinge loss of the zero model is 1, so the tolerance is that of the gap itself.
    let gap = solution(&swarm.home(0))["certificate"]["gap"].as_f64().unwrap();
    assert!((0.0..=1e-4).contains(&gap), "{gap}");
}

#[test]
fn a_peer_that_was_killed_makes_all_begin_the_robust_model_again() {
    let folder = tempfile::tempdir().unwrap();
    let problem = robust(folder.path(), "tolerance = 1e-7\niterations = 20000");
    let swarm = PlannedSwarm::for_a_problem("complete:n=3", "clique-phi", 3);
    let expected = solve(&problem, &swarm.plan(), &[]);
    let mut peers: Vec<_> = (0..3).map(|node| swarm.solve(node, &problem)).collect();
    let iterated = peers[2].wait_for("iterated");
    assert!(iterated["gap"].as_f64().unwrap() > 1e-7, "{iterated}");
    peers[2].kill();
    peers[2] = swarm.solve(2, &problem);
    assert!(
        peers[0].wait_for("warning")["message"].as_str().unwrap().contains("all begin attempt 1, from what each holds")
    );
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_for("solved")["converged"], true, "node {node}");
        let value = |solution: &Value| solution["objective"].as_f64().unwrap();
        let off = (value(&solution(&swarm.home(node))) - value(&expected[node])).abs();
        assert!(off < 1e-5, "node {node}: {off}");
    }
}

#[test]
fn a_robust_model_is_compared_with_its_competitors_on_test_data() {
    let folder = tempfile::tempdir().unwrap();
    let (problem, plan) = (robust(folder.path(), ""), folder.path().join("plan.json"));
    let made = run(&["plan", "make", "--topology", "ring:n=3", "--method", "clique-phi", "-o", text(&plan)]);
    assert!(made.status.success(), "{}", stderr(&made));
    let (test, out) = (folder.path().join("robust.csv"), folder.path().join("out"));
    let arguments =
        ["solve", "--problem", text(&problem), "--plan", text(&plan), "--compare", text(&test), "-o", text(&out)];
    let output = run(&arguments);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    assert!(["usual", "AFL", "DRFA", "WAFL", "robust"].iter().all(|name| stdout(&output).contains(name)));
    let comparison: Value = serde_json::from_str(&fs::read_to_string(out.join("comparison.json")).unwrap()).unwrap();
    for model in comparison["models"].as_array().unwrap() {
        let (mean, worst) = (&model["mean"], &model["worst_site"]);
        // Most of the training samples are classified right, and noise does not help.
        assert!(mean[0].as_f64().unwrap() > 0.8 && mean[0].as_f64() > mean[6].as_f64(), "{model}");
        assert!((0..10).all(|at| worst[at].as_f64().unwrap() <= mean[at].as_f64().unwrap() + 1e-12), "{model}");
    }
    assert!(fs::read_to_string(out.join("comparison.svg")).unwrap().contains("WAFL"));
    let regression = regression(folder.path(), 1.0, "lambda = 0.02");
    let other = ["solve", "--problem", text(&regression), "--plan", text(&plan), "--compare", text(&test)];
    assert_fails(&run(&other), 4, &["only robust models have competitors"]);
}

#[test]
fn the_robust_demo_ends_with_how_many_patients_are_told_right_as_devices_drift() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let output =
        run(&["demo", "--json", "--problem", "robust-classification", "--peers", "4", "--output", text(&root)]);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let report: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
    assert_eq!(report["difference"], 0.0);
    let models = report["comparison"]["models"].as_array().unwrap();
    let mean = |name: &str, at: usize| {
        models.iter().find(|model| model["name"] == name).unwrap()["mean"][at].as_f64().unwrap()
    };
    assert!(mean("usual", 0) > 0.75 && mean("robust", 0) > 0.75, "{models:?}");
    assert!(mean("robust", 3) > mean("usual", 3) && mean("robust", 5) > mean("usual", 5), "{models:?}");
}
