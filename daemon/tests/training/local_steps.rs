//! The local steps of a round in swarms that plan themselves: set by a person, or measured by the members.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::support::founded_swarm::{ENDLESS, PLANS_ITSELF, Swarm};
use crate::support::trainer::{Trainer, bytes};
use crate::support::{PATIENCE, RunningPeer, assert_fails, read_json, run, status, stderr, stdout, text};

/// Parameters of a model that takes much longer on a link than a step that does nothing.
const DIMENSION: usize = 250_000;

/// Trains such a model with steps that change nothing until the run is over; returns the number of steps.
fn count_steps(home: PathBuf) -> std::thread::JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut trainer = Trainer::new(&home, [0.0, 0.0]);
        let mut introduction = trainer.introduction();
        introduction["layout"] = serde_json::json!([["x", [DIMENSION]]]);
        let attached = trainer.call("POST", "/v1/trainer/attach", &[], introduction.to_string().as_bytes()).json();
        attached["session"].as_str().unwrap().clone_into(&mut trainer.session);
        let nothing = bytes(&vec![0.0; DIMENSION]);
        if attached["needs"] == "initial" {
            assert_eq!(trainer.call("PUT", "/v1/trainer/initial", &[], &nothing).status, 204);
        }
        let (mut order, mut taken) = (trainer.order(), 0);
        while order.kind() != "end" {
            let (number, steps) = (order.number("mingle-order"), order.number("mingle-steps"));
            let path = format!("/v1/trainer/exchange?order={number}&steps={steps}&wait=5");
            let answer = trainer.call("POST", &path, &[], &nothing);
            taken += steps;
            order = if answer.status == 200 { answer } else { trainer.order() };
        }
        taken
    })
}

/// The local steps of the first plan that the status of a peer shows.
fn first_local_steps(home: &Path) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = status(home);
        if let Some(steps) = status["plan"]["local_steps"].as_u64() {
            return steps;
        }
        assert!(Instant::now() < deadline, "{status}");
    }
}

#[test]
fn where_an_exchange_takes_longer_than_a_round_of_steps_the_swarm_gets_more_of_them_and_as_many_in_all() {
    let swarm = Swarm::found();
    // Whole parcels, to two others: in four bits, or to one, an exchange may take no longer than what a script needs to be
    // given a model and to answer.
    let task = ["--trainer", "attach", "--rounds", "300", "--codec", "f32"];
    let mut operator = swarm.start_operator(&[&["--planning", "auto"], &task[..]].concat());
    operator.address();
    let first = count_steps(swarm.home(0));
    let ticket = swarm.invite(2);
    let mut members = [1, 2].map(|peer| swarm.join(peer, &ticket, &task));
    let others = [1, 2].map(|peer| count_steps(swarm.home(peer)));
    operator.wait_for("plan");
    assert_eq!(first_local_steps(&swarm.home(0)), 10, "nobody has measured anything");
    let chosen = operator.wait_through_rounds_for("local_steps");
    let steps = chosen["steps"].as_u64().unwrap();
    assert!(steps > 10 && chosen["exchange_s"].as_f64() > chosen["local_step_s"].as_f64(), "{chosen}");
    operator.wait_through_rounds_for("new_plan");
    operator.wait_through_rounds_for("done");
    for member in &mut members {
        member.wait_through_rounds_for("done");
    }
    // 3,000 and some more, as each new plan rounds up the number of the rounds that are left, less the rounds that do not train:
    // one that each new plan cuts off, and the last ones, which only mix.
    let steps_left_out = 10 * steps.max(50);
    for taken in [first].into_iter().chain(others).map(|trainer| trainer.join().unwrap()) {
        assert!((3_000 - steps_left_out..=3_300).contains(&taken), "{taken} steps, {steps} in a round");
    }
    for home in [0, 1, 2].map(|peer| swarm.home(peer)) {
        let summary = read_json(&home.join("summary.json"));
        assert_eq!(summary["rounds"], summary["rounds_wanted"], "{summary}");
        assert!(summary["rounds"].as_u64().unwrap() < 300, "{summary}");
    }
}

#[test]
fn as_many_as_the_operator_says_are_in_every_plan() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&[&["--planning", "auto", "--local-steps", "7"], &ENDLESS[..]].concat());
    operator.address();
    let ticket = swarm.invite(2);
    let mut peers = vec![swarm.join(1, &ticket, &ENDLESS)];
    operator.wait_for("plan");
    peers.push(swarm.join(2, &ticket, &ENDLESS));
    operator.wait_through_rounds_for("new_plan");
    peers[1].wait_for("evaluated");
    for peer in [0, 2] {
        assert_eq!(status(&swarm.home(peer))["plan"]["local_steps"], 7);
        let shown = stdout(&run(&["status", "--home", text(&swarm.home(peer))]));
        assert!(shown.contains("7 local steps a round"), "{shown}");
    }
    // Another number is in a new plan for the same members.
    operator.signal("INT");
    assert_eq!(operator.wait_through_rounds_for("done")["event"], "done");
    assert_eq!(operator.exit_code(), Some(0));
    let mut operator = swarm.start_operator(&[&["--planning", "auto", "--local-steps", "4"], &ENDLESS[..]].concat());
    assert_eq!(operator.wait_through_rounds_for("new_plan")["nodes"], 3);
    peers[1].wait_through_rounds_for("new_plan");
    peers[1].wait_for("evaluated");
    assert_eq!([0, 2].map(|peer| status(&swarm.home(peer))["plan"]["local_steps"].as_u64()), [Some(4); 2]);

    let alone = run(&["run", "--home", text(&swarm.home(5)), "--local-steps", "7"]);
    assert_fails(&alone, 4, &["--planning auto", "mingle plan make --local-steps"]);
}

#[test]
fn a_plan_that_a_person_applied_stays_until_a_person_says_otherwise() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &ENDLESS[..]].concat());
    operator.address();
    let ticket = swarm.invite(2);
    let mut member = swarm.join(1, &ticket, &ENDLESS);
    operator.wait_for("plan");
    member.wait_for("evaluated");
    let plan = swarm.folder.path().join("plan.json");
    let made = run(&["plan", "make", "--topology", "complete:n=2", "--local-steps", "3", "-o", text(&plan)]);
    assert!(made.status.success(), "{}", stderr(&made));
    let apply = |more: &[&str]| {
        let applied = run(&[&["plan", "apply", text(&plan), "--home", text(&swarm.home(0))], more].concat());
        assert!(applied.status.success(), "{}", stderr(&applied));
    };
    apply(&[]);
    operator.wait_through_rounds_for("new_plan");
    let mut newcomer = swarm.join(2, &ticket, &ENDLESS);
    let warning = RunningPeer::wait_for_warning_of_any(&mut [&mut operator], "applied by hand");
    assert!(warning.contains("waits") && warning.contains("--replaceable"), "{warning}");
    assert_eq!(status(&swarm.home(1))["plan"]["local_steps"], 3);
    apply(&["--replaceable"]);
    newcomer.wait_for("evaluated");
    assert_eq!(status(&swarm.home(1))["plan"]["nodes"], 3);
}
