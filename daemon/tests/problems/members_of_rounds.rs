//! Training over masked sums while members come and go: real peers whose operator's peer plans them in and out.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use crate::support::founded_swarm::Swarm;
use crate::support::{RunningPeer, assert_fails, run, stderr, text};

/// Rounds before the first change: a training that begins anew then differs from one that goes on.
const BEFORE: u64 = 30;

/// The part of the problem that all peers share.
const SHARED: &str =
    "kind = \"training\"\nmodel = \"softmax\"\ncard = \"card.json\"\nlocal_steps = 2\nrounds = 100000\n";

/// A peer's own table with 40 rows, whose label depends on both columns.
fn write_table(swarm: &Swarm, peer: usize) -> PathBuf {
    let mut rows = "x,y,label\n".to_owned();
    for row in 0..40 {
        let x = f64::from((row * 7 + peer as i32 * 3) % 11) / 10.0;
        let y = f64::from((row * 5 + peer as i32) % 13) / 12.0;
        writeln!(rows, "{x},{y},{}", if x > y { "yes" } else { "no" }).unwrap();
    }
    let path = swarm.folder.path().join(format!("{peer}.csv"));
    fs::write(&path, rows).unwrap();
    path
}

/// The problem file of a peer, whose table it names.
fn problem(swarm: &Swarm, peer: usize) -> PathBuf {
    let table = write_table(swarm, peer);
    let card = swarm.folder.path().join("card.json");
    if !card.exists() {
        let made = run(&["data", "card", "--data", &format!("csv:{}", text(&table)), "-o", text(&card)]);
        assert!(made.status.success(), "{}", stderr(&made));
    }
    let path = swarm.folder.path().join(format!("{peer}.toml"));
    fs::write(&path, format!("{SHARED}data = \"csv:{}\"\n", text(&table))).unwrap();
    path
}

/// Waits until a peer has measured a model after at least `least` rounds, and fails if it measures one after fewer.
fn goes_on_from(peer: &mut RunningPeer, least: u64) {
    let round = peer.wait_for("measured")["round"].as_u64().unwrap();
    assert!(round >= least, "it began anew, and is in round {round} after one of {least}");
}

#[test]
fn a_training_goes_on_from_its_round_when_a_member_comes_is_left_out_and_comes_back() {
    let swarm = Swarm::found();
    let problems: Vec<PathBuf> = (0..4).map(|peer| problem(&swarm, peer)).collect();
    let mut operator =
        swarm.start_operator(&["--planning", "auto", "--evict-after", "15s", "--problem", text(&problems[0])]);
    operator.address();
    let ticket = swarm.invite(3);
    let join = |peer: usize| swarm.join(peer, &ticket, &["--problem", text(&problems[peer])]);
    let _guests = [join(1), join(2)];
    assert_eq!(operator.wait_for("plan")["nodes"], 3, "no plan of two, whose sums would be in clear");
    while operator.wait_for("measured")["round"].as_u64().unwrap() < BEFORE {}

    // A newcomer has kept no round: it gets the model of the others.
    let mut late = join(3);
    assert_eq!(operator.wait_for("new_plan")["nodes"], 4);
    goes_on_from(&mut operator, BEFORE);
    goes_on_from(&mut late, BEFORE);
    let data = late.recall_or_wait_for("warning")["message"].as_str().unwrap().to_owned();
    assert!(data.contains("32 samples to train on, 8 to evaluate on"), "all of its own table: {data}");

    late.kill();
    assert_eq!(operator.wait_for("new_plan")["nodes"], 3);
    goes_on_from(&mut operator, BEFORE);

    // With the old plan it receives the new one, and ends. Started again it is admitted by its ticket.
    let mut back = join(3);
    back.wait_for("planned_out");
    assert_eq!(back.exit_code(), Some(6));
    let mut back = join(3);
    assert_eq!(operator.wait_for("new_plan")["nodes"], 4);
    goes_on_from(&mut operator, BEFORE);
    goes_on_from(&mut back, BEFORE);
}

#[test]
fn a_newcomer_with_another_problem_is_refused_before_any_plan_names_it() {
    let swarm = Swarm::found();
    let problems: Vec<PathBuf> = (0..2).map(|peer| problem(&swarm, peer)).collect();
    let mut operator = swarm.start_operator(&["--planning", "auto", "--problem", text(&problems[0])]);
    operator.address();
    let ticket = swarm.invite(2);
    for (there, entry) in [("100000", "rounds = 7"), ("2", "local_steps = 3")] {
        let (name, here) = entry.split_once(" = ").unwrap();
        let other = SHARED.replace(&format!("{name} = {there}"), entry);
        fs::write(&problems[1], format!("{other}data = \"csv:{}\"\n", text(&write_table(&swarm, 1)))).unwrap();
        let refused = run(&["join", &ticket, "--home", text(&swarm.home(1)), "--problem", text(&problems[1])]);
        let difference = format!("{name} of the problem is {here} here and {there} there");
        assert_fails(&refused, 6, &[&difference, "all peers of a swarm need the same problem file"]);
    }
}
