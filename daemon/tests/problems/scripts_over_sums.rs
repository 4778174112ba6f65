//! Training over masked sums where the model is that of another program: real peers, with trainers that attach to them.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use crate::support::planned_swarm::PlannedSwarm;
use crate::support::trainer::{SHELL_TRAINER, Trainer};
use crate::support::{RunningPeer, assert_fails, read_json, run, text};

const PEERS: usize = 3;
const ROUNDS: u64 = 12;
const TARGETS: [[f32; 2]; PEERS] = [[1.0, 3.0], [4.0, -1.0], [2.0, 2.0]];
const PRIVACY: &str = "[privacy]\nclip = 1.0\nepsilon_max = 20.0\n";

fn problem(folder: &Path, more: &str) -> PathBuf {
    let path = folder.join("problem.toml");
    let usual = "kind = \"training\"\nmodel = \"trainer\"\nlocal_steps = 5\nrounds = 12\n";
    fs::write(&path, format!("{usual}{more}")).unwrap();
    path
}

fn swarm() -> PlannedSwarm {
    PlannedSwarm::for_a_problem("complete:n=3", "nguyen-he", PEERS)
}

fn start(swarm: &PlannedSwarm, node: usize, problem: &Path) -> RunningPeer {
    swarm.start_task(node, &["--problem", text(problem), "--trainer", "attach"])
}

/// Trains for the peer of this node to the end of its run; returns the final model.
fn train_for(swarm: &PlannedSwarm, node: usize) -> JoinHandle<Vec<f32>> {
    let home = swarm.home(node);
    std::thread::spawn(move || {
        let mut trainer = Trainer::new(&home, TARGETS[node]);
        trainer.attach();
        trainer.train()
    })
}

fn model(swarm: &PlannedSwarm, node: usize) -> Vec<u8> {
    fs::read(swarm.home(node).join("model.safetensors")).unwrap()
}

/// The number of releases that a peer has counted.
fn counted(home: &Path) -> u64 {
    let noised = read_json(&home.join("privacy.json"))["noised"].as_array().unwrap().clone();
    noised.iter().map(|noised| noised["changes"].as_u64().unwrap()).sum()
}

/// The model of all after all rounds: it begins with ten times the target of node 0, and moves by the mean of all changes.
fn expected() -> Vec<f64> {
    let rate = |round: i32| (0.15 * 0.98_f64.powi(round)).max(0.001);
    let number = |at: usize| {
        let mean = TARGETS.iter().map(|target| f64::from(target[at])).sum::<f64>() / PEERS as f64;
        (0..ROUNDS as i32).fold(10.0 * f64::from(TARGETS[0][at]), |x, round| x + rate(round) * (mean - x))
    };
    vec![number(0), number(1)]
}

fn assert_expected(model: &[f32]) {
    for (got, wanted) in model.iter().zip(expected()) {
        assert!((f64::from(*got) - wanted).abs() < 1e-4, "{model:?} for {:?}", expected());
    }
}

/// Waits for the end of all peers: each has learned, and exits with 0.
fn wait_for_the_end(peers: &mut [RunningPeer]) {
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_for("learned")["rounds"], ROUNDS, "node {node}");
        assert_eq!(peer.exit_code(), Some(0), "node {node}");
    }
}

#[test]
fn scripts_begin_with_the_founders_model_and_end_with_one_model_of_the_mean_of_all_changes() {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(folder.path(), "metrics = [\"distance\", \"train_loss\"]\nevaluate_every = 5\n");
    let swarm = swarm();
    let mut peers: Vec<_> = (0..PEERS).map(|node| start(&swarm, node, &problem)).collect();
    let trainers: Vec<_> = (0..PEERS).map(|node| train_for(&swarm, node)).collect();
    wait_for_the_end(&mut peers);
    for (node, trainer) in trainers.into_iter().enumerate() {
        let last = trainer.join().unwrap();
        assert_expected(&last);
        let file = model(&swarm, node);
        let bytes: Vec<u8> = last.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert!(file.ends_with(&bytes) && file == model(&swarm, 0), "node {node}");
    }
    let learned = read_json(&swarm.home(1).join("learned.json"));
    assert_eq!(learned["metrics"], serde_json::json!(["distance", "train_loss", "epsilon", "spent"]));
    let measured = |round: usize| learned["history"][round - 1]["mean"].clone();
    assert_eq!(measured(5), serde_json::json!([2.5, 0.5, null, null]));
    assert_eq!(measured(6), serde_json::json!([null, null, null, null]));
    assert_eq!(measured(12), measured(5));
}

#[test]
fn a_private_peer_that_is_killed_with_its_script_goes_on_and_one_round_at_most_is_counted_twice() {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(folder.path(), PRIVACY);
    let swarm = swarm();
    let mut peers: Vec<_> = (0..PEERS).map(|node| start(&swarm, node, &problem)).collect();
    let trainers: Vec<_> = [0, 2].map(|node| train_for(&swarm, node)).into();
    let mut trainer = Trainer::new(&swarm.home(1), TARGETS[1]);
    trainer.attach();
    for _ in 0..4 {
        let order = trainer.order();
        trainer.answer(&order);
    }
    peers[1].kill();
    peers[1] = start(&swarm, 1, &problem);
    let trainers = trainers.into_iter().chain([train_for(&swarm, 1)]);
    let finals: Vec<_> = {
        wait_for_the_end(&mut peers);
        trainers.map(|trainer| trainer.join().unwrap()).collect()
    };
    assert!(finals.iter().all(|model| *model == finals[0]), "{finals:?}");
    for node in 0..PEERS {
        assert!(model(&swarm, node) == model(&swarm, 0), "node {node}");
        // Where the killed one had not released the round, all release it anew: its script would come to other numbers.
        let counted = counted(&swarm.home(node));
        assert!((ROUNDS..=ROUNDS + 1).contains(&counted), "node {node}: {counted}");
    }
    let report = read_json(&swarm.home(0).join("privacy-of-sums.json"));
    assert!((18.0..=20.0).contains(&report["epsilon"].as_f64().unwrap()), "{report}");
    assert_eq!(report["ended_with_noise_alone"], false, "a release was spare: {report}");
    let learned = read_json(&swarm.home(0).join("learned.json"));
    assert_eq!(learned["metrics"], serde_json::json!(["epsilon", "spent"]), "no number of a script leaves by itself");
}

#[test]
fn all_wait_for_a_script_that_went_away() {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(folder.path(), "");
    let swarm = swarm();
    let mut peers: Vec<_> = (0..PEERS).map(|node| start(&swarm, node, &problem)).collect();
    let third = train_for(&swarm, 2);
    let [mut first, mut second] = [0, 1].map(|node| Trainer::new(&swarm.home(node), TARGETS[node]));
    first.attach();
    second.attach();
    for _ in 0..3 {
        first.answer(&first.order());
        second.answer(&second.order());
    }
    let order = first.order();
    let detached = first.call("POST", "/v1/trainer/detach", &[], &[]);
    assert_eq!(detached.status, 204, "{detached:?}");
    second.answer(&second.order());
    // The round is not over for the others, and goes on with the script that comes back.
    let next = second.call("GET", "/v1/trainer/order?wait=2", &[], &[]);
    assert_eq!(next.status, 202, "{next:?}");
    first.attach();
    let again = first.order();
    assert_eq!(again.number("mingle-round"), order.number("mingle-round"));
    first.answer(&again);
    let trainers = [first, second].map(|trainer| std::thread::spawn(move || trainer.train()));
    wait_for_the_end(&mut peers);
    trainers.into_iter().chain([third]).for_each(|trainer| assert_expected(&trainer.join().unwrap()));
}

#[test]
fn a_peer_whose_script_ended_or_is_given_up_ends_and_no_other_does() {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(folder.path(), "");
    let swarm = swarm();
    let mut peers: Vec<_> = (0..2).map(|node| start(&swarm, node, &problem)).collect();
    let trainers = [0, 1].map(|node| train_for(&swarm, node));
    let begins = SHELL_TRAINER.split("while").next().unwrap();
    let begins =
        begins.replace("\"shell\"", "\"two numbers\"").replace("[[\"x\", [2]]]", "[[\"x\", [1]], [\"y\", [1]]]");
    for end in ["exit 0", "exit 3"] {
        let script = format!("cd {} && {begins}; {end}", text(folder.path()));
        let arguments = ["--problem", text(&problem), "--trainer", &script, "--trainer-crashes", "1"];
        let mut failing = swarm.start_task(2, &arguments);
        let failure = failing.wait_for("done");
        assert_eq!(failure["error"]["kind"], "training", "{end}: {failure}");
        assert_eq!(failing.exit_code(), Some(7), "{end}");
    }
    peers.push(start(&swarm, 2, &problem));
    let third = train_for(&swarm, 2);
    wait_for_the_end(&mut peers);
    trainers.into_iter().chain([third]).for_each(|trainer| assert_expected(&trainer.join().unwrap()));
}

#[test]
fn what_does_not_go_together_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    assert!(run(&["init", "--home", text(&home)]).status.success());
    let refused = |problem: &Path, more: &[&str], words: &[&str]| {
        let arguments = ["run", "--home", text(&home), "--problem", text(problem)];
        assert_fails(&run(&[&arguments, more].concat()), 4, words);
    };
    let trainer = ["--trainer", "attach"];
    refused(&problem(folder.path(), ""), &[], &["model = \"trainer\"", "--trainer COMMAND"]);
    refused(&problem(folder.path(), "data = \"digits\"\n"), &trainer, &["data is about built-in models"]);
    let built_in = folder.path().join("built_in.toml");
    fs::write(&built_in, "kind = \"training\"\ndata = \"digits\"\nmodel = \"softmax\"\n").unwrap();
    refused(&built_in, &trainer, &["\"softmax\" is a built-in model", "leave --trainer out"]);
    fs::write(&built_in, "kind = \"sparse-regression\"\n").unwrap();
    refused(&built_in, &trainer, &["sparse-regression", "kind = \"training\""]);

    let problem = problem(folder.path(), "");
    let swarm = swarm();
    let mut peers: Vec<_> = (0..PEERS).map(|node| start(&swarm, node, &problem)).collect();
    let _trainers: Vec<_> = [0, 2].map(|node| train_for(&swarm, node)).into();
    let mut other = Trainer::new(&swarm.home(1), TARGETS[1]);
    let mut introduction = other.introduction();
    introduction["layout"] = serde_json::json!([["x", [1]], ["z", [1]]]);
    other.attach_as(&introduction);
    let failure = peers[1].wait_for("done");
    let message = failure["error"]["message"].as_str().unwrap();
    assert!(message.contains("the model here is not that of"), "{failure}");
}
