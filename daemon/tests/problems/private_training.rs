//! Training over masked sums by real peers: one model for all, through the death of a peer, and noise that all share.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::planned_swarm::PlannedSwarm;
use crate::support::{assert_fails, read_json, run, stderr, stdout, text};

const PEERS: usize = 4;
const ROUNDS: u64 = 12;
const PRIVACY: &str = "[privacy]\nclip = 1.0\nepsilon_max = 20.0\n";

fn problem(folder: &Path, more: &str) -> PathBuf {
    let path = folder.join("problem.toml");
    let usual = "kind = \"training\"\ndata = \"digits\"\nmodel = \"softmax\"\nlocal_steps = 5\nrounds = 12\n";
    fs::write(&path, format!("{usual}{more}")).unwrap();
    path
}

/// The number of releases that a peer has counted.
fn counted(home: &Path) -> u64 {
    let noised = read_json(&home.join("privacy.json"))["noised"].as_array().unwrap().clone();
    noised.iter().map(|noised| noised["changes"].as_u64().unwrap()).sum()
}

#[test]
fn peers_and_one_process_train_the_same_model_to_the_bit_and_eval_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(folder.path(), "split = \"label-sorted\"\nouter_momentum = 0.5\n");
    let swarm = PlannedSwarm::for_a_problem("ring:n=4", "nguyen-he", PEERS);
    let out = folder.path().join("out");
    let plan = swarm.plan();
    let solved = run(&["solve", "--problem", text(&problem), "--plan", text(&plan), "-o", text(&out), "--loss", "0.2"]);
    assert!(solved.status.success(), "{}", stderr(&solved));
    let expected = fs::read(out.join("model.safetensors")).unwrap();
    let mut peers: Vec<_> = (0..PEERS).map(|node| swarm.solve(node, &problem)).collect();
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_for("learned")["rounds"], ROUNDS, "node {node}");
        assert_eq!(peer.exit_code(), Some(0), "node {node}");
        assert!(fs::read(swarm.home(node).join("model.safetensors")).unwrap() == expected, "node {node}");
    }
    let model = swarm.home(2).join("model.safetensors");
    let judged = run(&["eval", text(&model), "--data", "digits", "--json"]);
    assert!(judged.status.success(), "{}", stderr(&judged));
    let judged: serde_json::Value = serde_json::from_str(&stdout(&judged)).unwrap();
    let learned = read_json(&swarm.home(2).join("learned.json"));
    assert_eq!(judged["accuracy"], learned["history"][11]["own"][0], "{judged}");
}

#[test]
fn a_private_peer_that_is_killed_goes_on_and_every_round_is_counted_once_over_all_runs() {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(folder.path(), PRIVACY);
    let swarm = PlannedSwarm::for_a_problem("complete:n=4", "nguyen-he", PEERS);
    let mut peers: Vec<_> = (0..PEERS).map(|node| swarm.solve(node, &problem)).collect();
    while peers[1].wait_for("measured")["round"].as_u64().unwrap() < 4 {}
    peers[1].kill();
    peers[1] = swarm.solve(1, &problem);
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_for("learned")["rounds"], ROUNDS, "node {node}");
        assert_eq!(peer.exit_code(), Some(0), "node {node}");
    }
    let model = |node: usize| fs::read(swarm.home(node).join("model.safetensors")).unwrap();
    for node in 0..PEERS {
        assert!(model(node) == model(0), "node {node}");
        // A peer that dies between counting and keeping what it counted counts once more.
        let most = if node == 1 { ROUNDS + 1 } else { ROUNDS };
        assert!((ROUNDS..=most).contains(&counted(&swarm.home(node))), "node {node}: {}", counted(&swarm.home(node)));
    }
    let report = read_json(&swarm.home(0).join("privacy-of-sums.json"));
    let epsilon = report["epsilon"].as_f64().unwrap();
    assert!((19.9..=20.0).contains(&epsilon), "{report}");
    assert_eq!((&report["members"], &report["colluders"]), (&4.into(), &1.into()));

    // Another run in the same homes has nothing left to spend: all add noise alone, and say so.
    let again = ["--problem", text(&problem), "--fresh"];
    let mut peers: Vec<_> = (0..PEERS).map(|node| swarm.start_task(node, &again)).collect();
    for (node, peer) in peers.iter_mut().enumerate() {
        peer.wait_for("learned");
        assert_eq!(peer.exit_code(), Some(0), "node {node}");
        assert!(counted(&swarm.home(node)) <= ROUNDS + 1, "node {node}");
        assert_eq!(read_json(&swarm.home(node).join("privacy-of-sums.json"))["ended_with_noise_alone"], true);
        assert_eq!(read_json(&swarm.home(node).join("learned.json"))["history"][11]["mean"][3], 1.0);
    }
}

#[test]
fn two_private_peers_that_are_killed_at_once_go_on_and_each_round_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(folder.path(), PRIVACY);
    let swarm = PlannedSwarm::for_a_problem("complete:n=5", "nguyen-he", 5);
    let mut peers: Vec<_> = (0..5).map(|node| swarm.solve(node, &problem)).collect();
    while peers[1].wait_for("measured")["round"].as_u64().unwrap() < 4 {}
    for node in [1, 3] {
        peers[node].kill();
    }
    for node in [3, 1] {
        peers[node] = swarm.solve(node, &problem);
    }
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_for("learned")["rounds"], ROUNDS, "node {node}");
        assert_eq!(peer.exit_code(), Some(0), "node {node}");
    }
    let model = |node: usize| fs::read(swarm.home(node).join("model.safetensors")).unwrap();
    for node in 0..5 {
        assert!(model(node) == model(0), "node {node}");
        let most = if [1, 3].contains(&node) { ROUNDS + 1 } else { ROUNDS };
        assert!((ROUNDS..=most).contains(&counted(&swarm.home(node))), "node {node}: {}", counted(&swarm.home(node)));
    }
}

#[test]
fn the_demo_shows_each_alone_no_noise_and_shared_noise() {
    let folder = tempfile::tempdir().unwrap();
    let demo = folder.path().join("demo");
    let shown = run(&["demo", "--problem", "training", "--peers", "4", "--rounds", "5", "--output", text(&demo)]);
    assert!(shown.status.success(), "{}{}", stdout(&shown), stderr(&shown));
    let shown = stdout(&shown);
    for words in ["each alone", "no noise", "shared noise", "4 peers", "all with the bits of one model"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let report = read_json(&demo.join("report.json"));
    let epsilon = report["methods"]["shared noise"]["epsilon"].as_f64().unwrap();
    assert!(epsilon > 7.9 && epsilon <= 8.1, "{report:#}");
    assert!(fs::read_to_string(demo.join("curves.svg")).unwrap().contains("shared noise"));
    let eval = shown.lines().last().unwrap().trim().strip_prefix("mingle ").unwrap().to_owned();
    assert!(run(&eval.split(' ').collect::<Vec<_>>()).status.success(), "{eval}");
}

#[test]
fn noise_that_is_shared_is_refused_where_sums_are_in_clear_or_too_many_collude() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    assert!(run(&["plan", "make", "--topology", "complete:n=3", "-o", text(&plan)]).status.success());
    let solve = |problem: &Path, more: &[&str]| {
        run(&[&["solve", "--problem", text(problem), "--plan", text(&plan)], more].concat())
    };
    let private = problem(folder.path(), PRIVACY);
    assert_fails(&solve(&private, &["--plain-sums"]), 6, &["sums have to be masked", "--plain-sums"]);
    let colluding = problem(folder.path(), &format!("{PRIVACY}colluders = 2\n"));
    assert_fails(&solve(&colluding, &[]), 4, &["give at most 1"]);
    let costly = problem(folder.path(), "[privacy]\nclip = 1.0\nepsilon_max = 2.0\nnoise = 1.0\n");
    assert_fails(&solve(&costly, &[]), 4, &["noise"]);
}

/// A home whose disk was replaced, with a copy of its key alone.
#[test]
fn a_peer_that_lost_all_but_its_key_takes_part_again_and_all_have_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(folder.path(), PRIVACY);
    let swarm = PlannedSwarm::for_a_problem("ring:n=4", "nguyen-he", PEERS);
    let mut peers: Vec<_> = (0..PEERS).map(|node| swarm.solve(node, &problem)).collect();
    while peers[1].wait_for("measured")["round"].as_u64().unwrap() < 3 {}
    peers[1].kill();
    let home = swarm.home(1);
    for lost in ["attempt", "privacy.json"] {
        fs::remove_file(home.join(lost)).unwrap();
    }
    fs::remove_dir_all(home.join("rounds")).unwrap();
    peers[1] = swarm.solve(1, &problem);
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_for("learned")["rounds"], ROUNDS, "node {node}");
        assert_eq!(peer.exit_code(), Some(0), "node {node}");
    }
    let model = |node: usize| fs::read(swarm.home(node).join("model.safetensors")).unwrap();
    assert!((1..PEERS).all(|node| model(node) == model(0)));
}

#[test]
fn peers_that_protect_samples_have_one_model_and_no_whole_guarantee_is_left_in_their_homes() {
    let folder = tempfile::tempdir().unwrap();
    let privacy = "[privacy]\nprotects = \"sample\"\nclip = 1.0\nepsilon_max = 2.0\n";
    let path = folder.path().join("problem.toml");
    let usual = "kind = \"training\"\ndata = \"digits\"\nmodel = \"softmax\"\nlocal_steps = 1\nrounds = 6\nlearning_rate = 2.0\n";
    fs::write(&path, format!("{usual}{privacy}")).unwrap();
    let swarm = PlannedSwarm::for_a_problem("complete:n=4", "nguyen-he", PEERS);
    let mut peers: Vec<_> = (0..PEERS).map(|node| swarm.solve(node, &path)).collect();
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_for("learned")["rounds"], 6, "node {node}");
        assert_eq!(peer.exit_code(), Some(0), "node {node}");
    }
    let model = |node: usize| fs::read(swarm.home(node).join("model.safetensors")).unwrap();
    assert!((1..PEERS).all(|node| model(node) == model(0)));
    let report = read_json(&swarm.home(2).join("privacy-of-sums.json"));
    assert_eq!((&report["protects"], &report["ended_with_noise_alone"]), (&"sample".into(), &false.into()), "{report}");
    let history = &read_json(&swarm.home(2).join("learned.json"))["history"];
    assert!(history[5]["mean"][0].as_f64().unwrap() > 0.5, "{history}");
    let of_members = problem(folder.path(), PRIVACY);
    // The others stop with the first that finds it out.
    let again = ["--problem", text(&of_members), "--fresh"];
    let mut peers: Vec<_> = (0..PEERS).map(|node| swarm.start_task(node, &again)).collect();
    for peer in &mut peers {
        assert_eq!(peer.exit_code(), Some(7));
    }
}
