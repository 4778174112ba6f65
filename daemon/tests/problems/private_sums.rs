//! Masked sums of real peers: by default, refused where they hide too little, and in clear where the user says so.

use std::fs;

use crate::solving::{regression, solution, solve};
use crate::support::planned_swarm::PlannedSwarm;
use crate::support::{assert_fails, run, stdout, text};

#[test]
fn peers_with_plain_sums_find_the_bits_of_one_process_with_plain_sums_and_say_that_they_are_plain() {
    let folder = tempfile::tempdir().unwrap();
    let swarm = PlannedSwarm::for_a_problem("ring:n=3", "clique-phi", 3);
    let problem = regression(folder.path(), 1.0, "lambda = 0.02");
    let expected = solve(&problem, &swarm.plan(), &["--plain-sums"]);
    let masked = solve(&problem, &swarm.plan(), &[]);
    let mut peers: Vec<_> =
        (0..3).map(|node| swarm.start_task(node, &["--problem", text(&problem), "--plain-sums"])).collect();
    for (node, peer) in peers.iter_mut().enumerate() {
        let warned = peer.wait_for("warning");
        assert!(warned["message"].as_str().unwrap().contains("sums are in clear (--plain-sums)"), "{warned}");
        peer.wait_for("solved");
        assert_eq!(peer.exit_code(), Some(0));
        assert_eq!(solution(&swarm.home(node)), expected[node], "node {node}");
    }
    let objective = |solution: &serde_json::Value| solution["objective"].as_f64().unwrap();
    assert!((objective(&masked[0]) - objective(&expected[0])).abs() < 1e-10 * objective(&expected[0]));
}

#[test]
fn peers_that_differ_in_plain_sums_are_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let problem = regression(folder.path(), 1.0, "lambda = 0.02");
    let swarm = PlannedSwarm::for_a_problem("complete:n=3", "clique-phi", 3);
    let mut peers: Vec<_> = ["off", "on", "off"]
        .iter()
        .enumerate()
        .map(|(node, plain)| swarm.start_task(node, &["--problem", text(&problem), "--plain-sums", plain]))
        .collect();
    let message = peers[1].wait_for("failed")["error"].to_string();
    for words in ["solves another problem", "--plain-sums at all of them or at none"] {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn two_peers_add_up_in_clear_with_a_word_and_not_where_more_members_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let problem = regression(folder.path(), 1.0, "lambda = 0.02");
    let swarm = PlannedSwarm::for_a_problem("complete:n=2", "clique-phi", 2);
    let mut peers: Vec<_> = (0..2).map(|node| swarm.solve(node, &problem)).collect();
    for peer in &mut peers {
        let warned = peer.wait_for("warning");
        assert!(warned["message"].as_str().unwrap().contains("fewer than 3 members"), "{warned}");
        peer.wait_for("solved");
        assert_eq!(peer.exit_code(), Some(0));
    }
    let swarm = PlannedSwarm::for_a_problem("complete:n=3", "clique-phi", 3);
    let mut peer = swarm.start_task(0, &["--problem", text(&problem), "--least-members", "4"]);
    let failed = peer.wait_for("failed");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("a sum of 3 members hides too little: this peer wants 4 or more"), "{failed}");
    let refused = run(&["run", "--least-members", "2"]);
    assert!(!refused.status.success());
}

#[test]
fn one_process_masks_sums_and_says_so_and_takes_the_same_options() {
    let folder = tempfile::tempdir().unwrap();
    let problem = regression(folder.path(), 1.0, "lambda = 0.02");
    let plan = folder.path().join("plan.json");
    let say = |nodes: u32, more: &[&str]| {
        let topology = format!("complete:n={nodes}");
        let made = run(&["plan", "make", "--topology", &topology, "--method", "clique-phi", "-o", text(&plan)]);
        assert!(made.status.success());
        let output = run(&[&["solve", "--problem", text(&problem), "--plan", text(&plan)], more].concat());
        fs::remove_file(&plan).unwrap();
        output
    };
    assert!(stdout(&say(3, &[])).contains("sums     masked"));
    assert!(stdout(&say(3, &["--plain-sums"])).contains("sums     in clear (--plain-sums)"));
    assert!(stdout(&say(2, &[])).contains("sums     in clear: with fewer than 3 members"));
    assert_fails(&say(3, &["--least-members", "4"]), 6, &["a sum of 3 members hides too little"]);
}
