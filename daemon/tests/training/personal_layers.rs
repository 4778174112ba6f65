//! `--personal`: tensors of a model that never leave their peer.

use crate::support;
use std::path::Path;

use crate::support::pair::Pair;
use crate::support::planned_swarm::PlannedSwarm;
use crate::support::{RunningPeer, assert_fails, run, text};
use mingle_models::{Checkpoint, SampleShape, Task};

const HIDDEN: usize = 16;
/// The first layer has 64 inputs and a bias.
const SHARED: usize = 65 * HIDDEN;
const TASK: [&str; 6] = ["--model", "mlp:hidden=16", "--split", "label-sorted", "--personal", "fc2.*"];

fn task() -> Task {
    let images = SampleShape::Image { channels: 1, height: 8, width: 8 };
    Task::new("mlp:hidden=16".parse().unwrap(), images, 10).unwrap()
}

/// The shared and the personal part of the model in a file.
fn parts_of(file: &Path) -> (Vec<f32>, Vec<f32>) {
    let task = task();
    let tensors = task.flat_tensors();
    assert_eq!(tensors[..2].iter().map(|(_, length)| length).sum::<usize>(), SHARED, "{tensors:?}");
    let mut parameters = Checkpoint::load(file, &task).unwrap().parameters;
    let personal = parameters.split_off(SHARED);
    (parameters, personal)
}

fn largest_difference(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max)
}

#[test]
fn the_first_layer_is_that_of_all_peers_and_the_last_one_is_each_peers_own() {
    let swarm = PlannedSwarm::with_design("complete:n=3", "exact-average", 3, 60);
    let mut peers: Vec<RunningPeer> = (0..3)
        .map(|node| swarm.start_with(node, &[&TASK[..], &["--wait", "sync", "--compare-alone", "on"]].concat()))
        .collect();
    for peer in &mut peers {
        assert!(peer.wait_for("task")["description"].as_str().unwrap().contains("personal: fc2.*"));
        assert_eq!(peer.wait_through_rounds_for("done")["round"], 60);
        assert_eq!(peer.exit_code(), Some(0));
    }
    let models = [0, 1, 2].map(|node| parts_of(&swarm.home(node).join("model.safetensors")));
    for (one, other) in [(0, 1), (1, 2)] {
        let (shared, personal) = (
            largest_difference(&models[one].0, &models[other].0),
            largest_difference(&models[one].1, &models[other].1),
        );
        assert!(shared < 1e-5, "{shared}");
        assert!(personal > 0.1, "each has other classes to tell apart: {personal}");
    }
    // The model of the file is the one that the summary is about.
    let summary = support::read_json(&swarm.home(0).join("summary.json"));
    let model = swarm.home(0).join("model.safetensors");
    let output = run(&["eval", text(&model), "--data", "digits", "--json"]);
    let judged: serde_json::Value = serde_json::from_str(&support::stdout(&output)).unwrap();
    assert_eq!(judged["accuracy"], summary["metrics"]["accuracy"], "{judged} and {summary}");
}

#[test]
fn a_peer_that_is_killed_goes_on_with_its_own_layer() {
    let pair = Pair::new();
    let endless = [&TASK[..], &["--rounds", "100000000"]].concat();
    let mut first = pair.start_first(&endless);
    let (home, address) = (pair.home(1), first.address());
    let arguments = [&["--home", text(&home), "--bootstrap", &address][..], &endless].concat();
    let mut second = RunningPeer::start(&arguments);
    while second.wait_for("round")["round"].as_u64() < Some(200) {}
    second.kill();
    let exported = pair.file("exported.safetensors");
    let output = run(&["export", "--home", text(&home), "-o", text(&exported)]);
    assert!(output.status.success(), "{}", support::stderr(&output));
    let (_, kept) = parts_of(&exported);

    let mut second = RunningPeer::start(&arguments);
    second.wait_for("joined");
    let stopped = run(&["stop", "--home", text(&home)]);
    assert!(stopped.status.success(), "{}", support::stderr(&stopped));
    second.wait_through_rounds_for("done");
    let (_, ended) = parts_of(&home.join("model.safetensors"));
    let initial = task().initial_parameters(0).split_off(SHARED);
    let (since, in_all) = (largest_difference(&ended, &kept), largest_difference(&ended, &initial));
    assert!(2.0 * since < in_all, "it changed by {since} since the record, and by {in_all} in all");
    first.kill();
}

#[test]
fn names_that_no_tensor_has_and_other_names_than_those_of_the_swarm_are_refused() {
    let pair = Pair::new();
    let task = ["--model", "mlp:hidden=16", "--rounds", "100000000", "--personal"];
    let mut first = pair.start_first(&[&task[..], &["fc2.*"]].concat());
    let (home, address) = (pair.home(1), first.address());
    let way_in = ["run", "--home", text(&home), "--listen", "/ip4/127.0.0.1/udp/0/quic-v1"];
    let refused = |more: &[&str], code: i32, words: &str| {
        assert_fails(&run(&[&way_in[..], &task, more].concat()), code, &[words]);
    };
    let words = "--personal fc1.* contradicts the task of the swarm, which has fc2.*";
    refused(&["fc1.*", "--bootstrap", &address], 6, words);
    first.kill();
    let plan = pair.plan();
    let alone = |names: &str, words: &str| refused(&[names, "--plan", text(&plan)], 4, words);
    alone("fc3.*", "no tensor of the model is called `fc3.*`: it has fc1.weight, fc1.bias, fc2.weight, fc2.bias");
    alone("fc1.*,fc2.*", "all tensors of the model would be personal");
}
