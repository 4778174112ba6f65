//! The way of a peer from the end of its run to the end of its process: no trainer holds it up for long.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::pair::Pair;
use crate::support::trainer::{Answer, Trainer};
use crate::support::{RunningPeer, assert_fails, run, text};
use serde_json::Value;

const ENDLESS: [&str; 4] = ["--trainer", "attach", "--rounds", "1000000"];

/// Attaches, and never asks for anything.
const DEAF: &str = r#"curl -s --unix-socket "$MINGLE_HOME/mingle.sock" http://localhost/v1/trainer/attach -d '{"protocol": 1, "name": "two numbers", "layout": [["x", [1]], ["y", [1]]], "initial": "take"}'
while :; do sleep 1; done"#;

/// Attaches, detaches, and does not end.
const LINGERING: &str = r#"
call() { curl -s --unix-socket "$MINGLE_HOME/mingle.sock" -H "Mingle-Session: ${session:-}" "$@"; }
session=$(call http://localhost/v1/trainer/attach -d '{"protocol": 1, "name": "two numbers", "layout": [["x", [1]], ["y", [1]]], "initial": "take"}' | sed 's/.*"session":"\([0-9a-f]*\)".*/\1/')
call http://localhost/v1/trainer/detach -X POST
while :; do sleep 1; done"#;

/// The work of a trainer with an order to evaluate.
type Evaluation = fn(&Trainer, order: &str);

/// Trains for the peer of this home until its run is over. Orders to evaluate go to `evaluate`, which may end the session.
fn train_for(home: PathBuf, evaluate: Option<Evaluation>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let (trainer, order) = attach(&home, evaluate.is_some());
        train(&trainer, order, evaluate);
    })
}

/// A trainer that is attached, and its first order.
fn attach(home: &Path, evaluates: bool) -> (Trainer, Answer) {
    let mut trainer = Trainer::new(home, [1.0, 2.0]);
    let mut introduction = trainer.introduction();
    introduction["evaluates"] = evaluates.into();
    trainer.attach_as(&introduction);
    let order = trainer.order();
    (trainer, order)
}

/// Answers this order and those after it, until the session or the run is over.
fn train(trainer: &Trainer, mut order: Answer, evaluate: Option<Evaluation>) {
    while (order.status, order.kind()) != (200, "end") {
        order = match (order.status, order.kind()) {
            (200, "train") => trainer.answer(&order),
            (200, "evaluate") => {
                evaluate.unwrap()(trainer, &order.headers["mingle-order"]);
                trainer.order()
            }
            // There is no order yet, or that one is over.
            (202 | 409, _) => trainer.order(),
            _ => return,
        };
    }
}

/// Answers an order to evaluate.
fn measure(trainer: &Trainer, order: &str) {
    let path = format!("/v1/trainer/evaluation?order={order}&wait=5");
    assert!(trainer.call("POST", &path, &[], br#"{"metrics": {"measured": [1.5, 4]}}"#).status < 300);
}

/// Waits until a peer is done and has ended, and returns its last event and the time that passed.
fn end_of(peer: &mut RunningPeer) -> (Value, Duration) {
    let began = Instant::now();
    let done = peer.wait_through_rounds_for("done");
    assert_eq!(done["event"], "done");
    assert_eq!(peer.exit_code(), Some(0));
    (done, began.elapsed())
}

fn start_second(pair: &Pair, first: &mut RunningPeer, trainer: &str) -> RunningPeer {
    let (home, address) = (pair.home(1), first.address());
    let mut peer = RunningPeer::start(
        &[&["--home", text(&home), "--bootstrap", &address, "--trainer", trainer][..], &["--rounds", "1000000"]]
            .concat(),
    );
    assert!(peer.wait_for("trainer_attached")["trainer"].as_str().is_some());
    assert_eq!(peer.wait_for("joined")["event"], "joined");
    peer
}

/// Starts a peer with this trainer, asks it so many times to stop, and checks that it ends long before a trainer is given up.
fn assert_ends_within_seconds(trainer: &str, requests: usize) {
    let pair = Pair::new();
    let mut first = pair.start_first(&ENDLESS);
    let other = train_for(pair.home(0), None);
    let mut peer = start_second(&pair, &mut first, trainer);
    peer.signal("TERM");
    assert_eq!(peer.wait_through_rounds_for("done")["event"], "done");
    (1..requests).for_each(|_| peer.signal("TERM"));
    assert!(peer.closes_its_output_within(Duration::from_secs(45)), "it would have waited for 60 s");
    assert_eq!(peer.exit_code(), Some(0));
    first.signal("TERM");
    end_of(&mut first);
    other.join().unwrap();
}

#[test]
fn a_trainer_that_does_not_fetch_the_end_is_ended_with_its_peer_within_seconds() {
    assert_ends_within_seconds(DEAF, 1);
}

#[test]
fn a_second_request_to_stop_waits_for_no_trainer() {
    assert_ends_within_seconds(LINGERING, 2);
}

#[test]
fn a_trainer_that_goes_while_it_evaluates_the_final_model_is_not_waited_for() {
    let pair = Pair::new();
    let options = ["--trainer", "attach", "--rounds", "20", "--evaluate-every", "1000"];
    let [mut first, mut second] = pair.start(&options);
    let leave: Evaluation = |trainer, _| assert_eq!(trainer.call("POST", "/v1/trainer/detach", &[], &[]).status, 204);
    let trainers = [train_for(pair.home(0), Some(measure)), train_for(pair.home(1), Some(leave))];
    let (done, _) = end_of(&mut first);
    assert_eq!((&done["metrics"]["measured"], &done["metrics_of"]), (&1.5.into(), &Value::Null));
    let (done, took) = end_of(&mut second);
    assert_eq!(done["metrics"]["distance"], 2.5, "the last value that was reported with a change");
    assert_eq!(done["metrics_of"], "training", "and said to be no measure of the final model");
    let summary = std::fs::read(pair.home(1).join("summary.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&summary).unwrap()["metrics_of"], "training");
    assert!(took < Duration::from_secs(45), "{took:?}, and an evaluation may take 120 s");
    trainers.into_iter().for_each(|trainer| trainer.join().unwrap());
}

#[test]
fn a_trainer_that_is_late_with_a_round_still_evaluates_the_final_model() {
    let pair = Pair::new();
    let [mut first, mut second] = pair.start(&["--trainer", "attach", "--rounds", "40", "--evaluate-every", "1000"]);
    let (is_over, over) = std::sync::mpsc::channel();
    let home = pair.home(1);
    let late = std::thread::spawn(move || {
        let (trainer, mut order) = attach(&home, true);
        while order.status == 202 || order.number("mingle-round") < 10 {
            order = if order.status == 202 { trainer.order() } else { trainer.answer(&order) };
        }
        over.recv().unwrap();
        train(&trainer, order, Some(measure));
    });
    let trainer = train_for(pair.home(0), None);
    end_of(&mut first);
    is_over.send(()).unwrap();
    assert_eq!(end_of(&mut second).0["metrics"]["measured"], 1.5);
    late.join().unwrap();
    trainer.join().unwrap();
}

#[test]
fn an_export_of_what_a_script_trains_says_which_file_has_the_model() {
    let pair = Pair::new();
    let mut peers = pair.start(&["--trainer", "attach", "--rounds", "1000000"]);
    let trainers = [0, 1].map(|node| train_for(pair.home(node), None));
    for node in 0..2 {
        assert!(run(&["wait", "--home", text(&pair.home(node)), "--for", "round=4"]).status.success());
    }
    for (node, peer) in peers.iter_mut().enumerate() {
        assert!(run(&["stop", "--home", text(&pair.home(node))]).status.success());
        assert_eq!(peer.exit_code(), Some(0));
    }
    trainers.into_iter().for_each(|trainer| trainer.join().unwrap());
    let (home, file) = (pair.home(0), pair.home(0).join("out.safetensors"));
    let model = home.join("model.safetensors");
    let export = || run(&["export", "--home", text(&home), "-o", text(&file)]);
    let stopped = format!("{} is the model with which it stopped last", model.display());
    assert_fails(&export(), 4, &["a script trains this peer", &stopped]);
    std::fs::remove_file(&model).unwrap();
    assert_fails(&export(), 4, &["a script trains this peer", "start it with its script once more"]);
}

#[test]
fn an_evaluation_that_hangs_is_told_of_and_given_up_and_the_results_before_it_are_kept() {
    let pair = Pair::new();
    let [mut first, mut second] = pair.start(&["--trainer", "attach", "--rounds", "20", "--evaluate-every", "8"]);
    let (is_over, over) = std::sync::mpsc::channel();
    let home = pair.home(1);
    let hanging = std::thread::spawn(move || {
        let (trainer, mut order) = attach(&home, true);
        let mut evaluations = 0;
        while evaluations < 2 || order.kind() != "evaluate" {
            order = match order.kind() {
                "train" => trainer.answer(&order),
                "evaluate" => {
                    measure(&trainer, &order.headers["mingle-order"]);
                    evaluations += 1;
                    trainer.order()
                }
                _ => trainer.order(),
            };
        }
        over.recv().unwrap();
    });
    let trainer = train_for(pair.home(0), Some(measure));
    end_of(&mut first);
    let began = Instant::now();
    second.wait_for_warning("has been evaluating the model for 5 s: the peer waits 6 s more");
    let (done, _) = end_of(&mut second);
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}, it was 120 s once", began.elapsed());
    assert_eq!(done["metrics"]["measured"], 1.5, "that of an evaluation before");
    assert_eq!(done["metrics_of"]["round"], 16, "and of which one");
    let stopped = run(&["status", "--home", text(&pair.home(1))]);
    assert_fails(&stopped, 3, &["measured after round 16, not of the final model"]);
    is_over.send(()).unwrap();
    hanging.join().unwrap();
    trainer.join().unwrap();
}
