//! Swarms with trainers that are other programs: admission, growth, and the end of a trainer with its peer.
#![cfg(unix)]

use crate::support::founded_swarm;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::founded_swarm::{PLANS_ITSELF, Swarm};
use crate::support::pair::Pair;
use crate::support::planned_swarm::ONE;
use crate::support::trainer::Trainer;
use crate::support::{RunningPeer, audit, read_json, run, stderr, stdout, text};
use serde_json::Value;

const ENDLESS: [&str; 4] = ["--trainer", "attach", "--rounds", "1000000"];

/// Trains for the peer of this home until its run is over.
fn train_for(home: PathBuf, target: [f32; 2]) -> std::thread::JoinHandle<Vec<f32>> {
    std::thread::spawn(move || {
        let mut trainer = Trainer::new(&home, target);
        trainer.attach();
        trainer.train()
    })
}

/// The error with which the run of a peer ended, which must fail.
fn failure(peer: &mut RunningPeer) -> String {
    let end = peer.wait_through_rounds_for("done");
    end["error"]["message"].as_str().unwrap_or_else(|| panic!("{end}")).to_owned()
}

fn attach_to_take(home: &Path) -> Trainer {
    let trainer = Trainer::new(home, [1.0, 2.0]);
    let mut introduction = trainer.introduction();
    introduction["initial"] = "take".into();
    let attached = trainer.call("POST", "/v1/trainer/attach", &[], introduction.to_string().as_bytes()).json();
    Trainer { session: attached["session"].as_str().unwrap().to_owned(), ..trainer }
}

#[test]
fn a_swarm_that_plans_itself_grows_and_shrinks_while_trainers_train() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &ENDLESS[..]].concat());
    operator.address();
    let ticket = swarm.invite(2);
    let mut trainers = vec![train_for(swarm.home(0), [0.0, 3.0])];
    let mut second = swarm.join(1, &ticket, &ENDLESS);
    trainers.push(train_for(swarm.home(1), [4.0, 1.0]));
    second.wait_for("round");
    let mut third = swarm.join(2, &ticket, &ENDLESS);
    trainers.push(train_for(swarm.home(2), [2.0, 2.0]));
    assert_eq!(operator.wait_through_rounds_for("new_plan")["nodes"], 3);
    third.wait_for("round");
    let stop = |peer: usize| {
        let stopped = run(&["stop", "--home", text(&swarm.home(peer))]);
        assert!(stopped.status.success(), "peer {peer}: {}{}", stdout(&stopped), stderr(&stopped));
    };
    let ended = |peer: &mut RunningPeer| {
        assert_eq!(peer.wait_through_rounds_for("done")["event"], "done");
        assert_eq!(peer.exit_code(), Some(0));
    };
    stop(2);
    ended(&mut third);
    ended(&mut RunningPeer::leave(&["--home", text(&swarm.home(2))]));
    assert_eq!(operator.wait_through_rounds_for("new_plan")["nodes"], 2);
    let mut peers = [operator, second];
    peers.iter_mut().for_each(RunningPeer::forget_what_it_said);
    for peer in &mut peers {
        assert_eq!(peer.wait_for("round")["event"], "round");
    }
    stop(0);
    // Where averages are exact, the operator's peer may hold the weight of both between the halves of one. The other then
    // has nothing to go on with, says so and ends.
    if !run(&["stop", "--home", text(&swarm.home(1))]).status.success() {
        RunningPeer::wait_for_warning_of_any(&mut [&mut peers[1]], "has the weight of this peer");
    }
    peers.iter_mut().for_each(ended);
    let report = audit(&[swarm.home(0), swarm.home(1)]);
    assert_eq!((&report["verdict"], &report["sum_units"]), (&"exact".into(), &(2 * ONE).into()), "{report:#}");
    for model in trainers.into_iter().map(|trainer| trainer.join().unwrap()) {
        assert!(model.iter().all(|value| (value - 2.0).abs() < 2.5), "each hears of the end: {model:?}");
    }
}

#[test]
fn a_peer_with_a_trainer_and_one_with_a_built_in_model_say_that_they_do_not_go_together() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&founded_swarm::ENDLESS);
    operator.address();
    let mut newcomer = swarm.join(1, &swarm.invite(1), &ENDLESS);
    let mut trainer = Trainer::new(&swarm.home(1), [1.0, 1.0]);
    trainer.attach();
    let why = "another program's model is trained here, and a built-in one there";
    assert!(trainer.order().message().contains(why));
    assert!(failure(&mut newcomer).contains(why));
    assert_eq!(newcomer.exit_code(), Some(6));
    drop(operator);

    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    operator.address();
    Trainer::new(&swarm.home(0), [0.0, 0.0]).attach();
    let mut newcomer = swarm.join(1, &swarm.invite(1), &founded_swarm::ENDLESS);
    let message = failure(&mut newcomer);
    assert!(message.contains("trains something else than a built-in model"), "{message}");
    assert_eq!(newcomer.exit_code(), Some(6));
}

#[test]
fn a_newcomer_whose_model_differs_is_told_what_to_do_and_its_home_is_as_it_was() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &ENDLESS[..]].concat());
    operator.address();
    Trainer::new(&swarm.home(0), [0.0, 3.0]).attach();
    let ticket = swarm.invite(1);
    let home = swarm.home(1);
    assert!(run(&["init", "--home", text(&home)]).status.success());
    let files = |home: &Path| -> BTreeSet<_> {
        fs::read_dir(home).unwrap().map(|entry| entry.unwrap().file_name()).filter(|name| name != "lock").collect()
    };
    let before = files(&home);
    let mut newcomer = swarm.join(1, &ticket, &ENDLESS);
    let trainer = Trainer::new(&home, [4.0, 1.0]);
    let mut introduction = trainer.introduction();
    introduction["layout"][1][1] = serde_json::json!([3]);
    introduction["initial"] = "take".into();
    assert_eq!(trainer.call("POST", "/v1/trainer/attach", &[], introduction.to_string().as_bytes()).status, 200);
    let end = newcomer.wait_for("done");
    let said = |key: &str| end["error"][key].as_str().unwrap_or_else(|| panic!("{end}")).to_owned();
    assert!(said("message").contains("tensor `y` has shape [3] here and [1] there"), "{end}");
    assert!(said("hint").contains("tensors have the same names, order and shapes"), "{end}");
    assert_eq!(newcomer.exit_code(), Some(6));
    assert_eq!(files(&home), before);
    let warning = RunningPeer::wait_for_warning_of_any(&mut [&mut operator], "has a ticket, and is refused");
    assert!(warning.contains("tensor `y` has shape [1] here and [3] there"), "{warning}");
}

#[test]
fn a_founder_whose_trainer_offers_no_model_says_that_nobody_has_one() {
    let pair = Pair::new();
    let mut peers = pair.start(&ENDLESS);
    let trainers = [attach_to_take(&pair.home(0)), attach_to_take(&pair.home(1))];
    let why = "begin with the model of this one, and its trainer offers none";
    let told = trainers[0].order();
    assert!(told.status == 410 && told.message().contains(why), "{told:?}");
    assert!(failure(&mut peers[0]).contains(why));
    assert_eq!(peers[0].exit_code(), Some(7));
}

#[test]
fn a_trainer_that_is_replaced_before_the_run_begins_may_train_another_model() {
    let pair = Pair::new();
    let kept = ["--evaluate-every", "5", "--keep-best", "distance:min"];
    let mut peers = pair.start(&[&["--trainer", "attach", "--rounds", "20"], &kept[..]].concat());
    let wrong = Trainer::new(&pair.home(0), [0.0, 0.0]);
    let mut introduction = wrong.introduction();
    introduction["layout"] = serde_json::json!([["x", [7]]]);
    let attached = wrong.call("POST", "/v1/trainer/attach", &[], introduction.to_string().as_bytes()).json();
    assert_eq!((&attached["needs"], &attached["dimension"]), (&"initial".into(), &7.into()), "{attached}");
    let trainers = [train_for(pair.home(0), [0.0, 3.0]), train_for(pair.home(1), [4.0, 1.0])];
    for peer in &mut peers {
        assert_eq!(peer.wait_through_rounds_for("done")["round"], 20);
        assert_eq!(peer.exit_code(), Some(0));
    }
    let best = read_json(&pair.home(0).join("summary.json"))["best"].clone();
    assert_eq!((&best["metric"], &best["value"]), (&"distance".into(), &2.5.into()), "as the trainer reported");
    assert!(pair.home(0).join("best.safetensors").exists());
    trainers.into_iter().for_each(|trainer| assert_eq!(trainer.join().unwrap().len(), 2));
}

#[test]
fn what_a_trainer_trains_is_private_where_that_is_wanted() {
    let pair = Pair::new();
    let private = ["--dp-clip", "1", "--dp-noise", "6", "--dp-epsilon-max", "50"];
    let mut peers = pair.start(&[&["--trainer", "attach", "--rounds", "30"], &private[..]].concat());
    let trainers = [train_for(pair.home(0), [0.0, 3.0]), train_for(pair.home(1), [4.0, 1.0])];
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_through_rounds_for("done")["round"], 30);
        assert_eq!(peer.exit_code(), Some(0));
        let summary = read_json(&pair.home(node).join("summary.json"));
        // The last four rounds mix without training.
        assert_eq!(summary["privacy"]["changes"], 26, "{summary}");
        assert!(summary["privacy"]["epsilon"].as_f64().unwrap() > 0.0, "{summary}");
        assert!(summary["task"].as_str().unwrap().contains("private: clip 1, noise 6"), "{summary}");
    }
    trainers.into_iter().for_each(|trainer| drop(trainer.join().unwrap()));
}

/// Writes a file once it is asked to end. The shell reports that its `sleep` was ended too, on an output without a
/// reader.
const ENDS_WHEN_ASKED: &str = r#"trap 'echo asked > "$MINGLE_HOME/asked"; exit 0' TERM
echo ready
exec 2>/dev/null
while :; do sleep 0.05; done"#;

#[test]
fn a_trainer_that_was_started_with_a_peer_ends_when_that_is_killed() {
    let pair = Pair::new();
    let mut peer = pair.start_first(&["--trainer", ENDS_WHEN_ASKED]);
    assert_eq!(peer.wait_for("trainer_said")["line"], "ready");
    peer.kill();
    let until = Instant::now() + Duration::from_secs(60);
    while !pair.home(0).join("asked").exists() {
        assert!(Instant::now() < until, "the trainer outlives its peer");
        std::thread::yield_now();
    }
}

#[test]
fn a_trainer_that_writes_without_end_does_not_fill_the_events() {
    let pair = Pair::new();
    let command = "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); echo line $i; done; echo no such module >&2; exit 3";
    let (home, plan) = (pair.home(0), pair.plan());
    let listen = ["--listen", "/ip4/127.0.0.1/tcp/0", "--trainer", command];
    let ended = run(&[&["run", "--home", text(&home), "--plan", text(&plan)], &listen[..]].concat());
    assert!(stderr(&ended).contains("no such module"), "{}", stderr(&ended));
    let events = fs::read_to_string(home.join("events.jsonl")).unwrap();
    let told: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<&str> = told.iter().filter_map(|event| event["line"].as_str()).collect();
    assert!((3 * 50..3 * 60).contains(&said.len()), "{}", said.len());
    assert!(said.iter().any(|line| line.contains("more lines are in trainer.log")), "{said:?}");
    let log = fs::read_to_string(home.join("trainer.log")).unwrap();
    assert_eq!(log.lines().filter(|line| line.starts_with("line ")).count(), 3 * 3000);
}
