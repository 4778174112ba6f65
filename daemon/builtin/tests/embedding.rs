//! Peers in this process, on loopback, that train a built-in model on data dealt by their plan.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::time::Duration;

use mingle_builtin::data_task::{DataTask, DataTaskOptions, HomeTask};
use mingle_builtin::options::TrainingOptions;
use mingle_builtin::{meaning, model_files, verification};
use mingle_peer::{Home, Outcome, Peer};
use mingle_planner::{DesignOptions, Method, Topology, design};

/// Time limit of a run.
const PATIENCE: Duration = Duration::from_secs(120);
const ROUNDS: u64 = 60;

fn options() -> TrainingOptions {
    TrainingOptions {
        model: "softmax".to_owned(),
        split: Some("iid".to_owned()),
        rounds: ROUNDS,
        learning_rate: 0.2,
        ..TrainingOptions::default()
    }
}

#[tokio::test]
async fn a_built_in_model_is_trained_by_peers_of_another_program_and_its_file_says_what_it_means() {
    let with_steps = DesignOptions { local_steps: 4, ..DesignOptions::default() };
    let mut plan = design(&Topology::generate("ring:n=3").unwrap(), Method::NguyenHe, &with_steps).unwrap();
    let homes = [(); 3].map(|()| Home::temporary().unwrap());
    for (node, home) in homes.iter().enumerate() {
        plan.bind(node, &home.peer_id().unwrap().to_string()).unwrap();
    }
    let (mut peers, mut known) = (Vec::new(), Vec::new());
    for home in &homes {
        let has_bootstraps = !known.is_empty();
        let task = DataTaskOptions { training: options(), has_bootstraps, ..DataTaskOptions::default() };
        let mut task = DataTask::begin(task, home.clone()).unwrap();
        task.settle_by_itself(HomeTask::of(home).unwrap(), false).unwrap();
        let builder = Peer::builder(home.clone()).plan(plan.clone()).bootstrap(&known).task(task);
        let builder = builder.options(|options| options.listen = vec!["/ip4/127.0.0.1/tcp/0".parse().unwrap()]);
        peers.push(builder.start().await.unwrap());
        known.extend_from_slice(peers[peers.len() - 1].addresses());
    }
    for (peer, home) in peers.into_iter().zip(&homes) {
        let Outcome::Trained { summary, parameters, .. } =
            tokio::time::timeout(PATIENCE, peer.outcome()).await.unwrap().unwrap()
        else {
            panic!("it did not train")
        };
        assert_eq!(summary.rounds, ROUNDS);
        assert!(summary.metrics.get("accuracy").unwrap() > 0.5, "{:?}", summary.metrics);
        let file = model_files::read(&home.model()).unwrap();
        assert_eq!(file.parameter_count(), parameters.len());
        let card = meaning::read(&file, &home.model()).unwrap().unwrap();
        let classes: BTreeSet<&str> = card.classes().iter().map(String::as_str).collect();
        assert_eq!(classes, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"].into());
        let verdicts = verification::verify(&home.model()).unwrap();
        assert!(verdicts.iter().all(|verdict| verdict.result.is_ok()), "{verdicts:?}");
    }
}
