//! `mingle graph`, and problems of kind node-classification.

use crate::federation::Federation;
use crate::support;
use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::planned_swarm::PlannedSwarm;
use crate::support::text;
use serde_json::Value;

fn run(arguments: &[&str], folder: &Path) -> Output {
    support::mingle().args(arguments).current_dir(folder).output().unwrap()
}

fn succeeds(arguments: &[&str], folder: &Path) -> String {
    let output = run(arguments, folder);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const PROBLEM: &str = "kind = \"node-classification\"\ndata = \"two-characters\"\nrounds = 4\n\n[model]\norders = 2\nhidden = 8\nlayers = 2\n";

fn prepare(problem: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("nodes.toml"), problem).unwrap();
    succeeds(&["plan", "make", "--topology", "ring:n=4", "-o", "plan.json"], folder.path());
    folder
}

#[test]
fn the_embedded_graph_is_shown_with_its_homophily_and_that_of_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let text = succeeds(&["graph", "show", "--clients", "8"], folder.path());
    for words in ["nodes      800", "classes    4", "homophily  edge", "8 clients keep"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json: Value =
        serde_json::from_str(&succeeds(&["graph", "show", "--clients", "8", "--json"], folder.path())).unwrap();
    let adjusted: Vec<f64> =
        json["clients"].as_array().unwrap().iter().map(|part| part["adjusted_homophily"].as_f64().unwrap()).collect();
    assert_eq!(adjusted.iter().filter(|value| **value > 0.5).count(), 4, "{adjusted:?}");
}

#[test]
fn a_graph_in_text_is_read_and_what_is_wrong_with_it_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("edges.csv", "source,target\n0,1\n1,2\n2,1\n1,1\n");
    write("features.csv", "1,0\n0,1\n1,1\n0,0\n");
    write("labels.csv", "0\n2\n0\n-1\n");
    let text = succeeds(&["graph", "show", "--data", "."], folder.path());
    for words in
        ["edges      2", "1 edges from a node to itself", "1 nodes have no neighbour", "classes without a node here: 1"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let fails = |words: &[&str]| {
        let output = run(&["graph", "show", "--data", "."], folder.path());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{told}");
        words.iter().for_each(|words| assert!(told.contains(words), "{words}: {told}"));
    };
    write("edges.csv", "0,1\n1,9\n");
    fails(&["edges.csv", "line 2", "node 9 has no features"]);
    write("edges.csv", "0,1\n1,x\n");
    fails(&["edges.csv", "line 2", "\"x\" is no number of a node"]);
    write("edges.csv", "0,1\n");
    write("labels.csv", "0\n2\n0\nblue\n");
    fails(&["labels.csv", "line 4", "whole number"]);
    write("labels.csv", "0\n2\n");
    fails(&["labels.csv", "2 labels", "4 nodes"]);
    write("features.csv", "1,0\n0\n");
    fails(&["features.csv", "line 2", "1 numbers"]);
    fs::remove_file(folder.path().join("features.csv")).unwrap();
    fails(&["features.csv", "is not there"]);
}

#[test]
fn clients_without_a_server_have_the_parameters_and_weights_of_those_in_one_place() {
    use mingle_graphs::{CollaborationMode, NodeData, NodeOptions, Overlap, Sharing, deal_out, two_characters};

    let folder = prepare(PROBLEM);
    succeeds(&["solve", "--problem", "nodes.toml", "--plan", "plan.json", "-o", "out", "--loss", "0.1"], folder.path());
    let data = two_characters(1);
    let parts = deal_out(data.graph(), 4, Overlap::Disjoint, 1).unwrap();
    let clients: Vec<NodeData> = parts.iter().map(|nodes| data.induced(nodes)).collect();
    let options = NodeOptions { orders: 2, hidden: 8, layers: 2, ..NodeOptions::default() };
    let device = mingle_models::DeviceName::Cpu.open().unwrap();
    let sharing = Sharing::Collaboration(CollaborationMode::Angle);
    let mut federation = Federation::new(&options, &clients, sharing, (1, 1), &device);
    let hash: String = federation.graph().hash().iter().map(|byte| format!("{byte:02x}")).collect();
    (0..4).for_each(|_| federation.round());
    let learned: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(folder.path().join("out/learned.json")).unwrap()).unwrap();
    for (at, best) in federation.best().iter().enumerate() {
        let own = learned.iter().find(|one| one["node"] == at).unwrap();
        let last = own["history"].as_array().unwrap().last().unwrap();
        assert_eq!(last["own"][2].as_f64(), best.0.test.accuracy, "client {at}");
    }
    for (at, (_, expected)) in federation.best().iter().enumerate() {
        let client = folder.path().join(format!("out/node-{at}"));
        let told: Value = serde_json::from_str(&fs::read_to_string(client.join("nodes.json")).unwrap()).unwrap();
        assert_eq!(told["weights_hash"], hash.as_str());
        let bytes = fs::read(client.join("parameters.f32")).unwrap();
        let found: Vec<f32> = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        assert_eq!((found.len(), &found), (options.shape(32, 4).parameters(), expected), "client {at}");
    }
    assert!(fs::read_to_string(folder.path().join("out/collaboration.svg")).unwrap().contains("Who learns from whom"));
}

#[test]
fn real_peers_one_of_them_killed_end_with_the_bits_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let problem = folder.path().join("nodes.toml");
    fs::write(&problem, PROBLEM.replace("rounds = 4", "rounds = 12")).unwrap();
    let swarm = PlannedSwarm::for_a_problem("complete:n=3", "nguyen-he", 3);
    let plan = swarm.plan();
    succeeds(&["solve", "--problem", "nodes.toml", "--plan", text(&plan), "-o", "out"], folder.path());
    let mut peers: Vec<_> = (0..3).map(|node| swarm.solve(node, &problem)).collect();
    let data = peers[1].wait_for_warning("data: ");
    assert!(data.starts_with("data: ") && data.contains(" nodes, ") && data.contains(" features"), "{data}");
    while peers[1].wait_for("measured")["round"].as_u64().unwrap() < 4 {}
    peers[1].kill();
    peers[1] = swarm.solve(1, &problem);
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_for("learned")["rounds"], 12, "node {node}");
        assert_eq!(peer.exit_code(), Some(0), "node {node}");
        for file in ["parameters.f32", "nodes.json", "collaboration.svg"] {
            let own = fs::read(swarm.home(node).join(file)).unwrap();
            assert_eq!(own, fs::read(folder.path().join(format!("out/node-{node}/{file}"))).unwrap(), "{node}: {file}");
        }
    }
}

#[test]
fn ways_of_sharing_are_compared_over_seeds_and_are_those_of_one_place() {
    use mingle_graphs::{NodeData, NodeOptions, Overlap, Sharing, deal_out, two_characters};

    let folder = prepare(PROBLEM);
    let suite = "problem = \"nodes.toml\"\nclients = 4\nseeds = [1, 2]\nmetrics = [\"test_at_best\"]\n";
    fs::write(folder.path().join("suite.toml"), suite).unwrap();
    succeeds(&["evaluate", "suite.toml", "-o", "out"], folder.path());
    let report = fs::read_to_string(folder.path().join("out/report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let methods = report["metrics"][0]["methods"].as_array().unwrap();
    let names: Vec<&str> = methods.iter().map(|row| row["method"].as_str().unwrap()).collect();
    assert_eq!(names, ["local", "average", "paper", "angle", "robust"]);
    assert!(methods[0]["difference"].is_null());
    for row in &methods[1..] {
        let of = |at: usize| row["values"][at][1].as_f64().unwrap() - methods[0]["values"][at][1].as_f64().unwrap();
        // For two pairs, t is the sum of the differences divided by their distance.
        let (sum, apart) = (of(0) + of(1), (of(0) - of(1)).abs());
        assert!((row["difference"]["t"].as_f64().unwrap() - sum / apart).abs() < 1e-6 * (sum / apart).abs(), "{row}");
    }
    let data = two_characters(1);
    let parts = deal_out(data.graph(), 4, Overlap::Disjoint, 2).unwrap();
    let clients: Vec<NodeData> = parts.iter().map(|nodes| data.induced(nodes)).collect();
    let options = NodeOptions { orders: 2, hidden: 8, layers: 2, seed: 2, data_seed: 2, ..NodeOptions::default() };
    let device = mingle_models::DeviceName::Cpu.open().unwrap();
    for (at, sharing) in [(0, Sharing::Local), (1, Sharing::Average)] {
        let mut federation = Federation::new(&options, &clients, sharing, (2, 1), &device);
        (0..4).for_each(|_| federation.round());
        let found = methods[at]["values"][1][1].as_f64().unwrap();
        assert!((found - federation.test().unwrap()).abs() < 1e-12, "{sharing:?}: {found}");
    }
}

#[test]
fn the_demo_shows_each_client_alone_averaged_and_with_personal_weights() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["demo", "--problem", "node-classification", "--peers", "4", "--rounds", "5", "--output", "demo"];
    let shown = succeeds(&arguments, folder.path());
    let file = |name: &str| fs::read_to_string(folder.path().join("demo").join(name)).unwrap();
    let report: Value = serde_json::from_str(&file("report.json")).unwrap();
    let clients = report["clients"].as_array().unwrap();
    assert_eq!(clients.iter().map(|client| client["nodes"].as_u64().unwrap()).sum::<u64>(), 800);
    let alike = clients.iter().filter(|client| client["homophily"].as_f64().unwrap() > 0.5).count();
    assert_eq!(alike, 2, "half of the graph links nodes of one class: {shown}");
    let of = |way: &str| report["methods"][way]["test_at_best"].as_f64().unwrap();
    let row = shown.lines().find(|line| line.starts_with("mean")).unwrap();
    for (at, way) in ["alone", "FedAvg", "angle"].into_iter().enumerate() {
        let mean = clients.iter().map(|client| client["accuracy"][at].as_f64().unwrap()).sum::<f64>() / 4.0;
        assert!((mean - of(way)).abs() < 1e-9 && row.contains(&format!("{:.4}", of(way))), "{way}: {mean} {row}");
        assert!(file("curves.svg").contains(way));
    }
    let is_better = of("FedAvg").max(of("angle")) > of("alone");
    assert_eq!(shown.contains("Nothing beats learning alone here"), !is_better, "{shown}");
    assert!(shown.contains("4 peers") && shown.contains("all with the bits of one process"), "{shown}");
    assert_eq!(file("collaboration.svg"), file("peers/0/collaboration.svg"));
    assert_eq!(report["different"], serde_json::json!([]));

    let output = run(&["demo", "--problem", "node-classification", "--rounds", "0", "--output", "demo"], folder.path());
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("0 rounds"));
    let output = run(&["demo", "--problem", "sparse-regression", "--rounds", "9", "--output", "demo"], folder.path());
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--rounds 9"));
}

#[test]
fn a_task_that_is_a_problem_is_answered_with_the_command_that_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["run", "simulate", "demo"] {
        for (task, kind) in [("nodes", "node-classification"), ("recommend", "recommendation")] {
            let output = run(&[command, "--task", task], folder.path());
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{told}");
            for words in
                [format!("kind = \"{kind}\""), "mingle run --problem FILE".to_owned(), format!("demo --problem {kind}")]
            {
                assert!(told.contains(&words), "{command}: {told}");
            }
        }
        let output = run(&[command, "--task", "juggling"], folder.path());
        assert!(String::from_utf8_lossy(&output.stderr).contains("write classification or regression"));
    }
}

/// Nodes in a ring, with two features that separate two classes.
fn write_ring(folder: &Path, name: &str, nodes: usize) {
    let folder = folder.join(name);
    fs::create_dir_all(&folder).unwrap();
    let lines = |line: &dyn Fn(usize) -> String| (0..nodes).map(|at| line(at) + "\n").collect::<String>();
    fs::write(folder.join("edges.csv"), lines(&|at| format!("{at},{}", (at + 1) % nodes))).unwrap();
    fs::write(folder.join("features.csv"), lines(&|at| format!("{},{}", at % 2, (at + 1) % 2))).unwrap();
    fs::write(folder.join("labels.csv"), lines(&|at| (at % 2).to_string())).unwrap();
}

#[test]
fn clients_with_odd_data_learn_and_their_notes_say_what_is_odd() {
    let folder = prepare(&PROBLEM.replace("two-characters", "{node}"));
    for (name, nodes) in [("node-0", 20), ("node-1", 20), ("node-2", 20), ("node-3", 3)] {
        write_ring(folder.path(), name, nodes);
    }
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("node-1/features.csv", &"0,0\n".repeat(20));
    write("node-1/labels.csv", &"1\n".repeat(20));
    // Nodes 2 and 5 to 19 have no neighbour; one edge is there three times, one leads from a node to itself.
    write("node-2/edges.csv", "0,1\n1,0\n0,1\n2,2\n3,4\n");
    write("node-2/labels.csv", &"0\n4\n-1\n0\n".repeat(5));
    let solve = ["solve", "--problem", "nodes.toml", "--plan", "plan.json", "-o", "out"];
    succeeds(&solve, folder.path());
    let told = |node: usize| fs::read_to_string(folder.path().join(format!("out/node-{node}/nodes.json"))).unwrap();
    for (node, words) in [
        (1, &["2 columns of features are zero", "all labelled nodes here have the same class"][..]),
        (2, &["1 edges from a node to itself", "2 edges were there before", "16 nodes have no neighbour"]),
        (2, &["5 nodes have no label", "classes without a node here: 1, 2, 3"]),
        (3, &["directions of signatures are not there: fewer nodes"]),
    ] {
        let told = told(node);
        words.iter().for_each(|words| assert!(told.contains(words), "node {node}, {words}: {told}"));
        let value: Value = serde_json::from_str(&told).unwrap();
        let weights = value["weights"][node].as_array().unwrap().iter().map(|weight| weight.as_f64().unwrap());
        assert!((weights.sum::<f64>() - 1.0).abs() < 1e-9, "{told}");
    }
    let fails = |words: &[&str]| {
        let output = run(&solve, folder.path());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(7), "{told}");
        words.iter().for_each(|words| assert!(told.contains(words), "{words}: {told}"));
    };
    write("node-2/labels.csv", &"-1\n".repeat(20));
    fails(&["node 2 cannot go on learning", "no node with a label"]);
    write("node-2/labels.csv", &"0\n".repeat(20));
    write("node-2/features.csv", &"1,0,1\n".repeat(20));
    fails(&["nodes here have 2 features, those of node-2 have 3", "the same features in the same order"]);
}

#[test]
fn a_problem_that_does_not_hold_says_why() {
    for (from, to, words) in [
        ("orders = 2", "orders = 99", "orders is 99"),
        ("rounds = 4", "rounds = 0", "0 rounds"),
        ("hidden = 8", "width = 8", "width"),
        ("two-characters", "nowhere", "nowhere"),
    ] {
        let folder = prepare(&PROBLEM.replace(from, to));
        let output = run(&["solve", "--problem", "nodes.toml", "--plan", "plan.json"], folder.path());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{told}");
        assert!(told.contains(words), "{words}: {told}");
    }
}
