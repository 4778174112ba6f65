//! The end of a training before its last round: by more than half of the members, or by the operator.
#![cfg(unix)]

use std::thread::JoinHandle;

use crate::support::founded_swarm::{ENDLESS, PLANS_ITSELF, Swarm};
use crate::support::pair::Pair;
use crate::support::planned_swarm::ONE;
use crate::support::trainer::Trainer;
use crate::support::{RunningPeer, assert_fails, audit, read_json, run, stdout, text};

const TARGETS: [[f32; 2]; 3] = [[0.0, 3.0], [4.0, 1.0], [2.0, 2.0]];

/// Trains for a peer until its run is over, and asks for its end at once if `asks`.
fn train_for(swarm: &Swarm, node: usize, asks: bool) -> JoinHandle<Vec<f32>> {
    let home = swarm.home(node);
    std::thread::spawn(move || {
        let mut trainer = Trainer::new(&home, TARGETS[node]);
        trainer.attach();
        if asks {
            assert_eq!(trainer.call("POST", "/v1/trainer/end", &[], b"").status, 204);
        }
        trainer.train()
    })
}

/// Waits until all have agreed, trained to the same round, and ended; returns that round.
fn end_together(peers: &mut [RunningPeer]) -> u64 {
    let ends: Vec<u64> = peers
        .iter_mut()
        .map(|peer| {
            let agreed = peer.wait_through_rounds_for("early_end")["last_round"].as_u64().unwrap();
            assert_eq!(peer.wait_through_rounds_for("done")["round"], agreed);
            assert_eq!(peer.exit_code(), Some(0));
            agreed
        })
        .collect();
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
    ends[0]
}

#[test]
fn a_run_ends_in_agreement_once_more_than_half_of_its_scripts_ask() {
    let swarm = Swarm::found();
    let task = ["--trainer", "attach", ENDLESS[0], ENDLESS[1]];
    let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &task].concat());
    operator.address();
    let mut trainers = vec![train_for(&swarm, 0, false)];
    let ticket = swarm.invite(2);
    let mut peers = vec![operator];
    for node in [1, 2] {
        peers.push(swarm.join(node, &ticket, &task));
        trainers.push(train_for(&swarm, node, true));
        assert_eq!(peers[node].wait_for("asked_to_end")["asks"], true);
    }
    let end = end_together(&mut peers);
    let models: Vec<Vec<f32>> = trainers.into_iter().map(|trainer| trainer.join().unwrap()).collect();
    for model in &models {
        let apart = model.iter().zip(&models[0]).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
        assert!(apart < 0.02, "{models:?}");
    }
    let homes: Vec<_> = (0..3).map(|node| swarm.home(node)).collect();
    let report = audit(&homes);
    assert_eq!((&report["verdict"], &report["sum_units"]), (&"exact".into(), &(3 * ONE).into()), "{report:#}");
    let summary = read_json(&swarm.home(0).join("summary.json"));
    assert_eq!((&summary["rounds"], &summary["rounds_wanted"]), (&end.into(), &end.into()));

    let mut again = RunningPeer::start(&["--home", text(&swarm.home(0)), "--bootstrap-timeout", "2s"]);
    assert_eq!(again.wait_for("finished")["round"], end, "it is over, and not only stopped");
    assert_eq!(again.exit_code(), Some(0));
}

#[test]
fn the_operator_ends_a_run_for_all_and_members_alone_do_not() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &ENDLESS].concat());
    operator.address();
    // It trains as many rounds as the operator says.
    let member = swarm.join(1, &swarm.invite(1), &[]);
    let mut peers = [operator, member];
    peers[1].wait_for("joined");
    let ask = |node: usize| {
        let asked = run(&["stop", "--for-all", "--json", "--home", text(&swarm.home(node))]);
        assert!(asked.status.success(), "{asked:?}");
        stdout(&asked)
    };
    assert!(ask(1).contains("\"asked\""), "one of two is no more than half");
    peers[1].wait_for("asked_to_end");
    assert!(ask(0).contains("\"for_all\""));
    let end = end_together(&mut peers);

    // A longer run is no run that was agreed to end: it is trained in full.
    let more = (end + 30).to_string();
    let operator = swarm.start(0, &[&PLANS_ITSELF[..], &["--rounds", &more]].concat());
    let member = RunningPeer::start(&["--home", text(&swarm.home(1))]);
    for mut peer in [operator, member] {
        assert_eq!(peer.wait_through_rounds_for("done")["round"], end + 30);
        assert_eq!(peer.exit_code(), Some(0));
    }
}

#[test]
fn an_operator_that_does_not_plan_is_told_that_nobody_counts() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    operator.address();
    let mut member = swarm.join(1, &swarm.invite(1), &ENDLESS);
    operator.wait_for("join_requested");
    let bind = swarm.plan("complete:n=2");
    assert!(swarm.apply(&bind).status.success());
    member.wait_for("joined");
    let asked = run(&["stop", "--for-all", "--home", text(&swarm.home(0))]);
    assert_fails(&asked, 6, &["does not plan its swarm", "--planning auto"]);
}

#[test]
fn a_swarm_without_an_operator_has_nobody_who_ends_it_for_all() {
    let pair = Pair::new();
    let mut peers = pair.start(&["--trainer", "attach", "--rounds", "1000000"]);
    let mut trainer = Trainer::new(&pair.home(0), TARGETS[0]);
    trainer.attach();
    let refused = trainer.call("POST", "/v1/trainer/end", &[], b"");
    assert!(refused.status >= 400 && refused.message().contains("has no operator"), "{}", refused.message());
    let asked = run(&["stop", "--for-all", "--home", text(&pair.home(0))]);
    assert_fails(&asked, 6, &["its swarm has no operator", "mingle stop stops this peer alone"]);
    peers.iter_mut().for_each(RunningPeer::kill);
}
