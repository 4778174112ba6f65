//! `mingle graph`, and problems of kind node-classification.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use support::planned_swarm::PlannedSwarm;
use support::text;

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
    fails(&["edges.csv", "line 2", "two numbers"]);
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
    use mingle_graphs::{
        CollaborationMode, Federation, NodeData, NodeMetric, NodeOptions, Overlap, Sharing, deal_out, two_characters,
    };

    let folder = prepare(PROBLEM);
    succeeds(&["solve", "--problem", "nodes.toml", "--plan", "plan.json", "-o", "out", "--loss", "0.1"], folder.path());
    let data = two_characters(1);
    let parts = deal_out(data.graph(), 4, Overlap::Disjoint, 1).unwrap();
    let clients: Vec<NodeData> = parts.iter().map(|nodes| data.induced(nodes)).collect();
    let options = NodeOptions { orders: 2, hidden: 8, layers: 2, ..NodeOptions::default() };
    let device = mingle_models::DeviceName::Cpu.open().unwrap();
    let sharing = Sharing::Collaboration(CollaborationMode::Angle);
    let mut federation = Federation::new(&options, &clients, sharing, (1, 1), &device).unwrap_or_else(|_| panic!());
    let hash: String = federation.graph().hash().iter().map(|byte| format!("{byte:02x}")).collect();
    (0..4).for_each(|_| federation.round(NodeMetric::Accuracy).unwrap_or_else(|_| panic!()));
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
fn ways_of_sharing_are_compared_over_seeds() {
    let folder = prepare(PROBLEM);
    let text =
        succeeds(&["graph", "compare", "--problem", "nodes.toml", "--clients", "4", "--seeds", "2"], folder.path());
    for words in ["local", "average", "paper", "angle", "robust", "beyond local"] {
        assert!(text.contains(words), "{words}: {text}");
    }
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
