//! Peers with trainers that are other programs: the trainer protocol as a trainer meets it.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use crate::support::pair::Pair;
use crate::support::planned_swarm::{ONE, PlannedSwarm};
use crate::support::trainer::{SHELL_TRAINER, Trainer, bytes};
use crate::support::{RunningPeer, assert_fails, audit, read_json, run, status, stderr, stdout, text};
use serde_json::{Value, json};

/// Longer than any test takes.
const ENDLESS: [&str; 4] = ["--trainer", "attach", "--rounds", "1000000"];

#[test]
fn trainers_with_different_data_meet_at_the_model_that_fits_all() {
    let pair = Pair::new();
    let mut peers = pair.start(&["--trainer", "attach", "--rounds", "150"]);
    let mut trainers = [Trainer::new(&pair.home(0), [0.0, 3.0]), Trainer::new(&pair.home(1), [4.0, 1.0])];
    let waiting = peers[0].wait_for("waiting_for_trainer");
    assert!(waiting["socket"].as_str().unwrap().ends_with("mingle.sock"), "{waiting}");
    assert_eq!(status(&pair.home(0))["state"], "waiting_for_trainer");
    for trainer in &mut trainers {
        let attached = trainer.attach();
        assert_eq!((&attached["dimension"], &attached["rounds"]), (&2.into(), &150.into()), "{attached}");
    }
    // All begin with the model of node 0.
    for trainer in &trainers {
        assert_eq!(trainer.order().vector(), [0.0, 30.0]);
    }
    let models = std::thread::scope(|scope| {
        trainers.each_ref().map(|trainer| scope.spawn(|| trainer.train())).map(|it| it.join().unwrap())
    });
    // Each is pulled to its own data by its last local steps, to either side of the mean. In eleven runs the mean was 0.04
    // away at most, and each model 0.1.
    let mean = [0, 1].map(|index| f32::midpoint(models[0][index], models[1][index]));
    assert!(mean.iter().all(|value| (value - 2.0).abs() < 0.1), "{models:?}");
    assert!(models.iter().flatten().all(|value| (value - 2.0).abs() < 0.3), "{models:?}");
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_through_rounds_for("done")["metrics"], json!({ "distance": 2.5 }));
        assert_eq!(peer.exit_code(), Some(0));
        let summary = read_json(&pair.home(node).join("summary.json"));
        assert_eq!(summary["rounds"], 150);
        assert!(pair.home(node).join("model.safetensors").exists());
    }
    let report = audit(&pair.homes());
    assert_eq!((&report["verdict"], &report["sum_units"]), (&"exact".into(), &(2 * ONE).into()), "{report:#}");
}

#[test]
fn a_run_with_more_rounds_or_by_another_plan_goes_on_from_the_models_of_the_one_before() {
    let pair = Pair::new();
    let train = |more: &[&str]| {
        let mut peers = pair.start(&[&["--trainer", "attach"], more].concat());
        let mut trainers = [Trainer::new(&pair.home(0), [0.0, 3.0]), Trainer::new(&pair.home(1), [4.0, 1.0])];
        trainers.iter_mut().for_each(|trainer| drop(trainer.attach()));
        let first = trainers[0].order();
        let state = trainers[0].call("GET", "/v1/trainer/state", &[], &[]);
        let kept = if state.status == 200 { state.body } else { Vec::new() };
        let begun = (first.number("mingle-steps"), first.vector(), kept);
        let put = format!("/v1/trainer/state?order={}", first.number("mingle-order"));
        assert_eq!(trainers[0].call("PUT", &put, &[], b"momentum").status, 204);
        let trained = trainers.map(|trainer| std::thread::spawn(move || trainer.train()));
        let models = trained.map(|trained| trained.join().unwrap());
        for peer in &mut peers {
            assert_eq!(peer.wait_through_rounds_for("done")["error"], Value::Null);
            assert_eq!(peer.exit_code(), Some(0), "the next start needs its home");
        }
        (begun, models)
    };
    let (begun, before) = train(&["--rounds", "60"]);
    assert_eq!((&begun.1[..], &begun.2[..]), (&[0.0, 30.0][..], &b""[..]), "what the founder offers");
    let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let ((_, begun, kept), longer) = train(&["--rounds", "80"]);
    assert_eq!(kept, b"momentum");
    assert!(
        distance(&begun, &before[0]) < 0.01,
        "with more rounds it begins at {begun:?} where it ended at {before:?}"
    );
    let plan = pair.replan(&["--local-steps", "3"]);
    let refused = run(&["run", "--home", text(&pair.home(0)), "--plan", text(&plan), "--continue", "--fresh"]);
    assert_fails(&refused, 2, &["--fresh"]);
    let mut first = pair.start_first(&["--trainer", "attach", "--rounds", "20"]);
    let end = first.wait_for("done");
    let why = end["error"]["message"].as_str().unwrap_or_default();
    let hint = end["error"]["hint"].as_str().unwrap_or_default();
    assert!(why.contains("the run in this home is over") && hint.contains("--continue"), "{end}");
    assert_eq!(first.exit_code(), Some(6));
    let ((steps, begun, kept), models) = train(&["--rounds", "20", "--continue"]);
    assert_eq!((steps, &kept[..]), (3, &b"momentum"[..]), "the state of the optimizer is taken along");
    assert!(distance(&begun, &longer[0]) < 0.01, "by another plan it begins at {begun:?} where it ended at {longer:?}");
    assert!(distance(&models[0], &longer[0]) < 1.0, "{models:?} after {longer:?}");
    let report = audit(&pair.homes());
    assert_eq!((&report["verdict"], &report["sum_units"]), (&"exact".into(), &(2 * ONE).into()), "{report:#}");
}

#[test]
fn a_fresh_run_of_another_model_that_comes_to_nothing_leaves_the_run_before_as_it_was() {
    let pair = Pair::new();
    let mut peers = pair.start(&["--trainer", "attach", "--rounds", "12"]);
    let mut trainers = [Trainer::new(&pair.home(0), [0.0, 3.0]), Trainer::new(&pair.home(1), [4.0, 1.0])];
    trainers.iter_mut().for_each(|trainer| drop(trainer.attach()));
    let trained = trainers.map(|trainer| std::thread::spawn(move || trainer.train()));
    trained.into_iter().for_each(|trained| drop(trained.join().unwrap()));
    peers.iter_mut().for_each(|peer| assert_eq!(peer.exit_code(), Some(0)));
    let (home, plan) = (pair.home(1), pair.plan());
    let alone = ["--home", text(&home), "--plan", text(&plan), "--trainer", "attach", "--rounds", "12"];
    let mut fresh = RunningPeer::start(&[&alone[..], &["--fresh"]].concat());
    let wider = Trainer::new(&home, [0.0, 0.0]);
    let mut introduction = wider.introduction();
    introduction["layout"] = json!([["x", [7]]]);
    introduction["initial"] = "take".into();
    let attached = wider.call("POST", "/v1/trainer/attach", &[], introduction.to_string().as_bytes());
    assert_eq!(attached.status, 200, "{attached:?}");
    // Its founder, which has the model to begin with, is not there.
    fresh.wait_for("waiting_for_model");
    fresh.kill();
    let mut again = RunningPeer::start(&alone);
    assert_eq!(again.wait_for("finished")["round"], 12);
    assert_eq!(again.exit_code(), Some(0));
}

#[test]
fn what_a_trainer_does_wrong_is_said_to_it_and_its_peer_goes_on() {
    let pair = Pair::new();
    let peers = pair.start(&ENDLESS);
    let mut trainer = Trainer::new(&pair.home(0), [1.0, 2.0]);
    let mut other = Trainer::new(&pair.home(1), [3.0, 4.0]);
    let refused = |trainer: &Trainer, method: &str, path: &str, body: &[u8], status: u16, words: &str| {
        let answer = trainer.call(method, path, &[], body);
        assert_eq!(answer.status, status, "{}", String::from_utf8_lossy(&answer.body));
        assert!(answer.message().contains(words), "`{words}` is not in: {}", answer.message());
    };
    refused(&trainer, "GET", "/v1/trainer/order", &[], 400, "which session");
    refused(&trainer, "POST", "/v1/trainer/attach", b"{", 400, "no request to attach");
    refused(&trainer, "POST", "/v1/trainer/attach", &vec![b' '; (1 << 20) + 1], 413, "there is room for 1048576");
    let mut twice = trainer.introduction();
    twice["layout"] = json!([["x", [1]], ["x", [1]]]);
    refused(&trainer, "POST", "/v1/trainer/attach", twice.to_string().as_bytes(), 400, "called `x`");
    trainer.attach();
    other.attach();
    let second = attach_by_curl(&pair, &trainer.introduction());
    assert!(second.contains("another trainer is attached: test, process"), "{second}");
    let mut wider = trainer.introduction();
    wider["layout"] = json!([["x", [1]], ["y", [2]]]);
    refused(
        &trainer,
        "POST",
        "/v1/trainer/attach",
        wider.to_string().as_bytes(),
        409,
        "tensor `y` has shape [1] here and [2] there",
    );
    let order = trainer.order();
    let number = order.number("mingle-order");
    let exchange = |number: u64| format!("/v1/trainer/exchange?order={number}&steps=10&wait=0");
    refused(
        &trainer,
        "POST",
        &exchange(number),
        &[0; 12],
        400,
        "12 bytes were sent, and the vector of 2 numbers has 8",
    );
    refused(
        &trainer,
        "POST",
        &exchange(number),
        &bytes(&[0.0, f32::NAN]),
        400,
        "number 1 of the vector is NaN: it is number 0 of tensor `y`",
    );
    refused(&trainer, "POST", &exchange(number + 1), &bytes(&[0.0; 2]), 409, "was never given");
    refused(&trainer, "POST", "/v1/trainer/exchange?order=x", &[], 400, "");
    refused(
        &trainer,
        "POST",
        &format!("/v1/trainer/evaluation?order={number}"),
        b"{\"metrics\":{}}",
        400,
        "was to train",
    );
    let next = trainer.answer(&order);
    assert!(next.status == 200 || next.status == 202, "{next:?}");
    refused(&trainer, "POST", &exchange(number), &bytes(&[0.0; 2]), 409, "is answered or withdrawn");
    let told = trainer.call("GET", "/v1/trainer", &[], &[]).json();
    assert_eq!(told["task"], json!({ "name": "two numbers", "dimension": 2 }));
    // None of this cost the swarm anything.
    let order = trainer.order();
    assert!(order.number("mingle-order") > number);
    assert_eq!(trainer.call("POST", "/v1/trainer/detach", &[], &[]).status, 204);
    refused(&trainer, "GET", "/v1/trainer/order", &[], 404, "no trainer is attached");
    assert_eq!(status(&pair.home(0))["trainer"], json!({ "attached": null }));
    drop(peers);
}

#[test]
fn a_metric_of_any_name_is_shown_everywhere_with_its_direction_where_the_name_says_it() {
    let pair = Pair::new();
    let mut peers = pair.start(&[&ENDLESS[..], &["--evaluate-every", "2"]].concat());
    let mut trainers = [Trainer::new(&pair.home(0), [1.0, 2.0]), Trainer::new(&pair.home(1), [3.0, 4.0])];
    trainers.iter_mut().for_each(|trainer| drop(trainer.attach()));
    let reported = [("Mingle-Metrics", r#"{"val_perplexity": [12.5, 40], "kappa": [0.25, 40], "dice": [0.5, 40]}"#)];
    for _ in 0..6 {
        for trainer in &trainers {
            let order = trainer.order();
            let path = format!("/v1/trainer/exchange?order={}&steps=10&wait=0", order.number("mingle-order"));
            let answer = trainer.call("POST", &path, &reported, &bytes(&[0.0, 0.0]));
            assert!(answer.status == 200 || answer.status == 202, "{answer:?}");
        }
    }
    let metrics = json!({ "val_perplexity": 12.5, "kappa": 0.25, "dice": 0.5 });
    let evaluated = peers[0].wait_through_rounds_for("evaluated");
    assert_eq!(evaluated["metrics"], metrics, "{evaluated}");
    let status = status(&pair.home(0));
    assert_eq!(status["evaluation"]["metrics"], metrics, "{status}");
    assert_eq!(status["evaluation"]["directions"], json!({ "val_perplexity": "min", "dice": "max" }), "{status}");
    let shown = stdout(&run(&["status", "--home", text(&pair.home(0))]));
    assert!(["val_perplexity", "kappa", "dice"].iter().all(|name| shown.contains(name)), "{shown}");
    let page = String::from_utf8(trainers[0].call("GET", "/metrics", &[], b"").body).unwrap();
    for line in [
        r#"mingle_evaluation{metric="val_perplexity"} 12.5"#,
        r#"mingle_evaluation{metric="kappa"} 0.25"#,
        r#"mingle_evaluation_direction{metric="val_perplexity"} -1"#,
        r#"mingle_evaluation_direction{metric="dice"} 1"#,
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
    assert!(!page.contains(r#"mingle_evaluation_direction{metric="kappa"}"#), "its name says nothing of that");
}

#[test]
fn a_body_that_never_ends_holds_up_nobody() {
    let pair = Pair::new();
    let _peers = pair.start(&ENDLESS);
    let mut trainers = [Trainer::new(&pair.home(0), [1.0, 2.0]), Trainer::new(&pair.home(1), [3.0, 4.0])];
    trainers.iter_mut().for_each(|trainer| drop(trainer.attach()));
    let order = trainers[0].order();
    let head = format!(
        "POST /v1/trainer/exchange?order={}&steps=10 HTTP/1.1\r\nHost: localhost\r\nMingle-Session: {}\r\nContent-Length: 8\r\n\r\n",
        order.number("mingle-order"),
        trainers[0].session
    );
    let mut endless = UnixStream::connect(&trainers[0].socket).unwrap();
    endless.write_all(head.as_bytes()).unwrap();
    endless.write_all(&bytes(&[0.5])).unwrap();
    // The order is open until all of a change is there, and another call may bring it.
    let next = trainers[0].answer(&order);
    assert!(next.status == 200 || next.status == 202, "{next:?}");
    trainers[1].answer(&trainers[1].order());
    assert!(trainers[0].order().number("mingle-order") > order.number("mingle-order"));
    // The rest of it comes too late; the peer may have answered so before it asked for it.
    let _ = endless.write_all(&bytes(&[0.5]));
    let mut answer = [0; 12];
    endless.read_exact(&mut answer).unwrap();
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 409");
}

/// Attaches to the first peer from another process.
fn attach_by_curl(pair: &Pair, introduction: &Value) -> String {
    let socket = pair.home(0).join("mingle.sock");
    let asked = ["-s", "--unix-socket", text(&socket), "http://localhost/v1/trainer/attach", "-d"];
    stdout(&Command::new("curl").args(asked).arg(introduction.to_string()).output().unwrap())
}

#[test]
fn peers_whose_trainers_train_different_models_say_what_differs() {
    let pair = Pair::new();
    let mut peers = pair.start(&ENDLESS);
    let mut first = Trainer::new(&pair.home(0), [1.0, 2.0]);
    first.attach();
    let other = Trainer::new(&pair.home(1), [1.0, 2.0]);
    let mut introduction = other.introduction();
    introduction["layout"] = json!([["x", [1]], ["z", [1]]]);
    introduction["initial"] = "take".into();
    let attached = other.call("POST", "/v1/trainer/attach", &[], introduction.to_string().as_bytes()).json();
    assert_eq!(attached["needs"], "nothing", "{attached}");
    let other = Trainer { session: attached["session"].as_str().unwrap().to_owned(), ..other };
    let end = peers[1].wait_through_rounds_for("done");
    let message = end["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("tensor 2 is `z` here and `y` there"), "{end}");
    assert_eq!(peers[1].exit_code(), Some(6));
    // The trainer may have received it too, if it asked in time.
    drop(other);
}

#[test]
fn a_peer_that_is_killed_goes_on_with_its_model_and_what_its_trainer_kept() {
    let swarm = PlannedSwarm::new(2, 1_000_000);
    let start = |node: usize| {
        let (home, plan) = (swarm.home(node), swarm.plan());
        let mut arguments = vec!["--home", text(&home), "--plan", text(&plan)];
        arguments.extend(ENDLESS);
        let listen = swarm.address(node);
        let other = swarm.address(1 - node);
        RunningPeer::start_listening(&[&arguments[..], &["--listen", &listen, "--bootstrap", &other]].concat())
    };
    let mut peers: Vec<RunningPeer> = (0..2).map(start).collect();
    let mut trainers = [Trainer::new(&swarm.home(0), [0.0, 3.0]), Trainer::new(&swarm.home(1), [4.0, 1.0])];
    trainers.iter_mut().for_each(|trainer| drop(trainer.attach()));
    for round in 0..20 {
        for trainer in &trainers {
            let order = trainer.order();
            let put = trainer.call(
                "PUT",
                &format!("/v1/trainer/state?order={}", order.number("mingle-order")),
                &[],
                format!("round {round}").as_bytes(),
            );
            assert_eq!(put.status, 204, "{put:?}");
            trainer.answer(&order);
        }
    }
    let first_model = trainers[0].order().vector();
    peers[0].kill();
    assert!(trainers[0].try_call("GET", "/v1/trainer", &[], &[]).is_err(), "nobody is there");
    peers[0] = start(0);
    let recovered = peers[0].wait_for("recovered")["round"].as_u64().unwrap();
    let attached = trainers[0].attach();
    assert_eq!(attached["needs"], "nothing", "{attached}");
    let order = trainers[0].order();
    let kept = String::from_utf8(trainers[0].call("GET", "/v1/trainer/state", &[], &[]).body).unwrap();
    let kept: u64 = kept.strip_prefix("round ").unwrap().parse().unwrap();
    // Rounds go on while a record is written: the last ones may be lost, model and state together.
    // A trainer that was late once has trained fewer rounds than its peer has done.
    assert!((18..=19).contains(&kept) && kept <= recovered, "{kept} in round {recovered}");
    let moved: f32 = order.vector().iter().zip(&first_model).map(|(now, then)| (now - then).abs()).sum();
    assert!(moved < 2.0, "{:?} after {first_model:?}", order.vector());
    for _ in 0..5 {
        trainers.iter().for_each(|trainer| drop(trainer.answer(&trainer.order())));
    }
    for peer in &mut peers {
        peer.kill();
    }
    swarm.audit("both are killed");
}

#[test]
fn rounds_do_not_run_out_while_nobody_trains() {
    let pair = Pair::new();
    let mut peers = pair.start(&ENDLESS);
    let mut trainers = [Trainer::new(&pair.home(0), [0.0, 3.0]), Trainer::new(&pair.home(1), [4.0, 1.0])];
    trainers.iter_mut().for_each(|trainer| drop(trainer.attach()));
    std::thread::scope(|scope| {
        for trainer in &trainers {
            scope.spawn(|| (0..10).for_each(|_| drop(trainer.answer(&trainer.order()))));
        }
    });
    // Both are late by far more than a round takes.
    peers.iter_mut().for_each(|peer| drop(peer.wait_through_rounds_for("trainer_gone")));
    for node in 0..2 {
        let round = status(&pair.home(node))["round"].as_u64().unwrap();
        assert!(round <= 11, "{round} rounds, of which 10 were trained");
    }
    // A trainer that trains delays no other, and is delayed by none.
    for _ in 0..10 {
        drop(trainers[0].answer(&trainers[0].order()));
    }
    let other = trainers[1].order();
    assert_eq!(trainers[1].answer(&other).status, 200, "the order is open still");
}

#[test]
fn a_peer_that_waits_for_its_script_is_named_and_one_that_ends_before_training_is_not_waited_for() {
    let swarm = PlannedSwarm::new(3, 1_000_000);
    let mut peers: Vec<RunningPeer> = (0..3).map(|node| swarm.start_for_a_trainer(node)).collect();
    let mut trainers = [0, 1].map(|node| Trainer::new(&swarm.home(node), [node as f32, 1.0]));
    trainers.iter_mut().for_each(|trainer| drop(trainer.attach()));
    let warned_of = |peer: &mut RunningPeer, words: &str| {
        let warning = RunningPeer::wait_for_warning_of_any(&mut [peer], words);
        assert!(warning.contains("node 2"), "{warning}");
    };
    peers[..2].iter_mut().for_each(|peer| warned_of(peer, "has nothing to train yet"));
    peers[2].kill();
    for peer in &mut peers[..2] {
        warned_of(peer, "has ended before training began");
        let joined = peer.recall_or_wait_for("joined");
        assert_eq!((&joined["neighbours"], &joined["missing"]), (&1.into(), &json!([2])), "{joined}");
    }
}

#[test]
fn a_model_of_another_size_is_named_on_both_sides_within_seconds() {
    let pair = Pair::new();
    let mut peers = pair.start(&ENDLESS);
    let mut first = Trainer::new(&pair.home(0), [1.0, 2.0]);
    first.attach();
    let other = Trainer::new(&pair.home(1), [1.0, 2.0]);
    let mut introduction = other.introduction();
    introduction["layout"] = json!([["x", [1]], ["y", [3]]]);
    introduction["initial"] = "take".into();
    let attached = other.call("POST", "/v1/trainer/attach", &[], introduction.to_string().as_bytes()).json();
    assert_eq!(attached["session"].as_str().map(str::is_empty), Some(false), "{attached}");
    let differs = |sentence: &str| sentence.contains("trains something else") && sentence.contains("`y`");
    let warning = peers[1].wait_for_warning_soon_after("trainer_attached", "this peer ends in");
    assert!(differs(&warning), "{warning}");
    // Alone with a peer that trains something else, the first ends too, with the reason.
    for peer in &mut peers {
        let end = peer.wait_for("done");
        assert!(differs(end["error"]["message"].as_str().unwrap_or_default()), "{end}");
        assert_eq!(peer.exit_code(), Some(6));
    }
}

#[test]
fn a_trainer_in_a_shell_script_is_started_with_its_peer_and_told_when_it_is_over() {
    let pair = Pair::new();
    let script = pair.file("trainer.sh");
    fs::write(&script, SHELL_TRAINER).unwrap();
    let folder = script.parent().unwrap();
    let command = format!("cd {} && sh trainer.sh", text(folder));
    let mut peers = pair.start(&["--trainer", &command, "--rounds", "12"]);
    for (node, peer) in peers.iter_mut().enumerate() {
        // The trainer may have been started before the peer reported its listen address.
        let started = peer.recall_or_wait_for("trainer_started");
        assert_eq!(started["command"], command.as_str(), "{started}");
        assert_eq!(peer.wait_for("trainer_said")["line"], "the first order is to train");
        assert_eq!(peer.wait_through_rounds_for("done")["round"], 12);
        assert_eq!(peer.exit_code(), Some(0));
        let log = fs::read_to_string(pair.home(node).join("trainer.log")).unwrap();
        assert!(log.contains('1') && log.contains("the first order is to train"), "{log}");
    }
    audit(&pair.homes());
    // Fewer rounds than it has done are refused, and harm nothing.
    let fewer = run(&["run", "--home", text(&pair.home(0)), "--listen", "/ip4/127.0.0.1/tcp/0", "--rounds", "5"]);
    assert_fails(&fewer, 6, &["ended after 12 rounds", "asks for no more", "more rounds than that"]);
    // A home goes on with the options of its last run, and finds that this one is over without a trainer.
    let again = ["--listen", "/ip4/127.0.0.1/tcp/0", "--rounds", "12"];
    let again = run(&[&["run", "--home", text(&pair.home(0))][..], &again].concat());
    assert!(again.status.success() && stderr(&again).contains("this run ended before"), "{}", stderr(&again));
}

#[test]
fn a_trainer_that_fails_before_it_attaches_ends_its_peer_with_what_it_wrote() {
    let pair = Pair::new();
    let (home, plan) = (pair.home(0), pair.plan());
    let peer = ["run", "--home", text(&home), "--plan", text(&plan), "--listen", "/ip4/127.0.0.1/tcp/0", "--trainer"];
    let fails = |command: &str, words: &[&str]| assert_fails(&run(&[&peer[..], &[command]].concat()), 7, words);
    fails(
        "echo no module named torch >&2; exit 3",
        &["failed 3 times", "exit status: 3", "no module named torch", "trainer.log"],
    );
    fails("echo bye", &["ended without ever attaching", "bye"]);
    assert_fails(&run(&[&peer[..], &[" "]].concat()), 4, &["--trainer has no command"]);
    assert_fails(
        &run(&[&peer[..], &["attach", "--learning-rate", "0.5"]].concat()),
        4,
        &["--learning-rate is about the built-in models"],
    );
    assert_fails(
        &run(&[&peer[..], &["attach", "--problem", "p.toml"]].concat()),
        4,
        &["cannot read the problem p.toml"],
    );
}

#[test]
fn a_trainer_that_is_killed_is_started_again_and_no_weight_is_lost() {
    let pair = Pair::new();
    let script = pair.file("trainer.sh");
    fs::write(&script, SHELL_TRAINER).unwrap();
    let command = format!("cd {} && exec sh trainer.sh", text(script.parent().unwrap()));
    let mut peers = pair.start(&["--trainer", &command, "--rounds", "1000000"]);
    let process = peers[0].recall_or_wait_for("trainer_started")["process"].as_u64().unwrap();
    assert_eq!(peers[1].wait_for("round")["event"], "round");
    assert!(Command::new("kill").args(["-s", "KILL", &process.to_string()]).status().unwrap().success());
    let again = peers[0].wait_through_rounds_for("trainer_started");
    assert_ne!(again["process"], process);
    peers[0].forget_what_it_said();
    assert_eq!(peers[0].wait_for("round")["event"], "round");
    peers.iter_mut().for_each(RunningPeer::kill);
    let report = audit(&pair.homes());
    assert_eq!((&report["verdict"], &report["sum_units"]), (&"exact".into(), &(2 * ONE).into()), "{report:#}");
}
