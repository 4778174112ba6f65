//! The number of rounds of a peer that joins with a trainer and names none: the operator's, known before its trainer is.
#![cfg(unix)]

use crate::support::founded_swarm::{PLANS_ITSELF, Swarm};
use crate::support::planned_swarm::ONE;
use crate::support::trainer::Trainer;
use crate::support::{RunningPeer, audit, text};

const ATTACH: [&str; 2] = ["--trainer", "attach"];
const ROUNDS: u64 = 25;

fn operator_of(swarm: &Swarm, rounds: u64) -> RunningPeer {
    let rounds = rounds.to_string();
    let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &ATTACH, &["--rounds", &rounds]].concat());
    operator.address();
    operator
}

/// Attaches at the peer of this node, says the rounds that it was told, and trains to the end.
fn train_for(swarm: &Swarm, node: usize, target: [f32; 2]) -> std::thread::JoinHandle<u64> {
    let home = swarm.home(node);
    std::thread::spawn(move || {
        let mut trainer = Trainer::new(&home, target);
        let attached = trainer.attach();
        trainer.train();
        attached["rounds"].as_u64().unwrap()
    })
}

#[test]
fn a_peer_that_joins_without_rounds_trains_as_many_as_the_operator() {
    let swarm = Swarm::found();
    let mut operator = operator_of(&swarm, ROUNDS);
    let mut joined = swarm.join(1, &swarm.invite(1), &ATTACH);
    // Its trainer comes first, and has to wait: the operator has no task yet.
    let mut trainers = vec![train_for(&swarm, 1, [4.0, 1.0])];
    let missing = joined.wait_for("warning")["message"].as_str().unwrap().to_owned();
    assert!(missing.contains("has the trainer of its operator attached"), "{missing}");
    trainers.push(train_for(&swarm, 0, [0.0, 3.0]));
    for peer in [&mut operator, &mut joined] {
        assert_eq!(peer.wait_through_rounds_for("done")["round"], ROUNDS);
        assert_eq!(peer.exit_code(), Some(0));
    }
    trainers.into_iter().for_each(|trainer| assert_eq!(trainer.join().unwrap(), ROUNDS));
    let report = audit(&[swarm.home(0), swarm.home(1)]);
    assert_eq!((&report["verdict"], &report["sum_units"]), (&"exact".into(), &(2 * ONE).into()), "{report:#}");

    // A longer run, and another one that takes the model along, have the operator's new number.
    for (rounds, more) in [(40, &[][..]), (60, &["--continue"])] {
        let number = rounds.to_string();
        let mut operator = swarm.start(0, &[&PLANS_ITSELF[..], &ATTACH, &["--rounds", &number], more].concat());
        let mut joined = RunningPeer::start(&[&["--home", text(&swarm.home(1))], more].concat());
        let trainers = [train_for(&swarm, 1, [4.0, 1.0]), train_for(&swarm, 0, [0.0, 3.0])];
        if more.is_empty() {
            let prolonged = joined.wait_for("prolonged");
            assert_eq!((&prolonged["round"], &prolonged["rounds"]), (&ROUNDS.into(), &rounds.into()), "{prolonged}");
        }
        for peer in [&mut operator, &mut joined] {
            assert_eq!(peer.wait_through_rounds_for("done")["round"], rounds);
            assert_eq!(peer.exit_code(), Some(0));
        }
        trainers.into_iter().for_each(|trainer| assert_eq!(trainer.join().unwrap(), rounds));
    }

    // The home knows the number, and no member answers: the run is over, and nothing longer begins.
    let mut again = RunningPeer::start(&["--home", text(&swarm.home(1)), "--bootstrap-timeout", "2s"]);
    let finished = again.wait_for("finished");
    assert_eq!(finished["round"], 60, "{finished}");
    assert_eq!(again.exit_code(), Some(0));
}

#[test]
fn members_with_a_built_in_model_go_on_when_the_operator_prolongs_the_run() {
    let swarm = Swarm::found();
    let start_operator = |rounds: &str| swarm.start_operator(&[&PLANS_ITSELF[..], &["--rounds", rounds]].concat());
    let end_at = |peers: [&mut RunningPeer; 3], rounds: u64| {
        for peer in peers {
            assert_eq!(peer.wait_through_rounds_for("done")["round"], rounds);
            assert_eq!(peer.exit_code(), Some(0));
        }
    };
    let mut operator = start_operator("60");
    operator.address();
    let ticket = swarm.invite(2);
    let [mut first, mut second] = [1, 2].map(|peer| swarm.join(peer, &ticket, &[]));
    end_at([&mut operator, &mut first, &mut second], 60);

    // The members repeat what they did; the second alone adds options of its own, and `--continue`.
    let mut operator = start_operator("120");
    let mut first = RunningPeer::start(&["--home", text(&swarm.home(1))]);
    let mut second = swarm.start(2, &["--evaluate-every", "10", "--continue"]);
    for peer in [&mut first, &mut second] {
        assert_eq!(peer.wait_for("prolonged")["rounds"], 120);
        assert_eq!(peer.wait_for("recovered")["round"], 60);
    }
    end_at([&mut operator, &mut first, &mut second], 120);

    // Another run with the models of that one, which is shorter.
    let mut operator = swarm.start(0, &[&PLANS_ITSELF[..], &["--rounds", "30", "--continue"]].concat());
    let [mut first, mut second] =
        [1, 2].map(|peer| RunningPeer::start(&["--home", text(&swarm.home(peer)), "--continue"]));
    end_at([&mut operator, &mut first, &mut second], 30);
    let report = audit(&[0, 1, 2].map(|peer| swarm.home(peer)));
    assert_eq!((&report["verdict"], &report["sum_units"]), (&"exact".into(), &(3 * ONE).into()), "{report:#}");
}

#[test]
fn a_peer_that_joined_without_rounds_knows_them_at_its_next_start() {
    let many = 1_000_000;
    let swarm = Swarm::found();
    let operator = operator_of(&swarm, many);
    drop(train_for(&swarm, 0, [0.0, 3.0]));
    let mut joined = swarm.join(1, &swarm.invite(1), &ATTACH);
    drop(train_for(&swarm, 1, [4.0, 1.0]));
    joined.wait_for("round");
    joined.kill();
    drop(operator);

    // The operator is gone, and cannot be asked.
    let again = RunningPeer::start(&["--home", text(&swarm.home(1))]);
    let attached = Trainer::new(&swarm.home(1), [4.0, 1.0]).attach();
    assert_eq!(attached["rounds"], many);
    drop(again);
}

#[test]
fn a_peer_with_a_trainer_is_refused_before_it_attaches_where_a_built_in_model_is_trained() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&crate::support::founded_swarm::ENDLESS);
    operator.address();
    let mut newcomer = swarm.join(1, &swarm.invite(1), &ATTACH);
    let end = newcomer.wait_for("done");
    let said = end["error"]["message"].as_str().unwrap_or_else(|| panic!("{end}"));
    assert!(said.contains("a built-in model is trained in the swarm"), "{said}");
    assert_eq!(newcomer.exit_code(), Some(6));
}

#[test]
fn the_script_of_a_peer_that_reaches_no_member_is_not_started() {
    let swarm = Swarm::found();
    let mut operator = operator_of(&swarm, ROUNDS);
    let ticket = swarm.invite(1);
    operator.kill();
    let started = swarm.folder.path().join("started");
    let command = format!("touch '{}'", text(&started));
    let mut newcomer = swarm.join(1, &ticket, &["--trainer", &command, "--bootstrap-timeout", "2s"]);
    assert_eq!(newcomer.wait_for("done")["error"]["kind"], "unreachable");
    assert_eq!(newcomer.exit_code(), Some(3));
    assert!(!started.exists());
}
