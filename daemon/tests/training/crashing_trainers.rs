//! Trainers that crash: started again after pauses, and given up with their peer when they crash too often for what they
//! train.
#![cfg(unix)]

use std::fs;

use crate::support::pair::Pair;
use crate::support::planned_swarm::ONE;
use crate::support::trainer::SHELL_TRAINER;
use crate::support::{assert_fails, audit, run, text};

/// The command of a trainer that crashes after so many rounds each time.
fn crashing_after(rounds: u32, pair: &Pair) -> String {
    let crash =
        format!("rounds=$((${{rounds:-0}} + 1)); [ $rounds -le {rounds} ] || {{ echo out of memory >&2; exit 9; }}");
    let number = "number=$(header order)";
    let script = SHELL_TRAINER.replace(number, &format!("{crash}\n  {number}"));
    assert_ne!(script, SHELL_TRAINER);
    let path = pair.file("crashing.sh");
    fs::write(&path, script).unwrap();
    format!("cd {} && sh crashing.sh", text(path.parent().unwrap()))
}

#[test]
fn a_trainer_that_crashes_every_twenty_rounds_ends_its_peer_with_an_error_and_the_records_stay() {
    let pair = Pair::new();
    let command = crashing_after(20, &pair);
    let mut peers = pair.start(&["--trainer", &command, "--trainer-crashes", "3", "--rounds", "1000000"]);
    for (peer, home) in peers.iter_mut().zip(pair.homes()) {
        let end = peer.wait_through_rounds_for("done");
        let message = end["error"]["message"].as_str().unwrap_or_else(|| panic!("{end}")).to_owned();
        assert!(message.contains("is given up") && message.contains("out of memory"), "{message}");
        let hint = end["error"]["hint"].as_str().unwrap_or_else(|| panic!("{end}"));
        assert!(hint.contains("start this peer again") && hint.contains("trainer.log"), "{hint}");
        assert_eq!(peer.exit_code(), Some(7));
        let events = fs::read_to_string(home.join("events.jsonl")).unwrap();
        assert_eq!(events.matches("\"trainer_started\"").count(), 3, "{events}");
    }
    let report = audit(&pair.homes());
    assert_eq!((&report["verdict"], &report["sum_units"]), (&"exact".into(), &(2 * ONE).into()), "{report:#}");
    // Started again by a supervisor, with nothing mended, each has one start left and then ends for good.
    let mut peers = pair.start(&[]);
    for (peer, home) in peers.iter_mut().zip(pair.homes()) {
        let end = peer.wait_through_rounds_for("done");
        let message = end["error"]["message"].as_str().unwrap_or_else(|| panic!("{end}")).to_owned();
        assert!(message.contains("given up before") && message.contains("out of memory"), "{message}");
        assert_eq!(peer.exit_code(), Some(4));
        let events = fs::read_to_string(home.join("events.jsonl")).unwrap();
        assert_eq!(events.matches("\"trainer_started\"").count(), 4, "{events}");
    }
    // Started again with a program that is mended, both go on where they were.
    fs::write(pair.file("crashing.sh"), SHELL_TRAINER).unwrap();
    let mut peers = pair.start(&[]);
    for peer in &mut peers {
        let recovered = peer.recall_or_wait_for("recovered")["round"].as_u64().unwrap();
        assert!(recovered >= 40, "{recovered} rounds, of which each trainer trained 60");
        assert_eq!(peer.wait_for("round")["event"], "round");
    }
}

#[test]
fn a_trainer_that_trains_long_between_two_crashes_is_started_ever_again() {
    let pair = Pair::new();
    let command = crashing_after(120, &pair);
    let mut peers = pair.start(&["--trainer", &command, "--trainer-crashes", "2", "--rounds", "1000000"]);
    // One start may have been reported before; two crashes that are not made good would be the end.
    for _ in 0..3 {
        let started = peers[0].wait_through_rounds_for("trainer_started");
        assert_eq!(started["command"], command.as_str(), "{started}");
    }
}

#[test]
fn the_number_of_crashes_is_refused_where_there_is_no_trainer_to_crash() {
    let pair = Pair::new();
    let home = pair.home(0);
    let peer = ["run", "--home", text(&home), "--trainer-crashes"];
    assert_fails(&run(&[&peer[..], &["3"]].concat()), 4, &["--trainer-crashes is about another program"]);
    assert_fails(&run(&[&peer[..], &["0", "--trainer", "attach"]].concat()), 2, &["--trainer-crashes"]);
}
