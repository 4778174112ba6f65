//! Peers that skip rounds, since the others are ahead: their run does not pass for a whole one if those were most.

use std::fs;

use serde_json::Value;

use crate::support::pair::Pair;
use crate::support::{RunningPeer, read_json, text};

/// Waits until the peer has done this many rounds.
fn wait_for_round(peer: &mut RunningPeer, rounds: u64) {
    while peer.wait_for("round")["round"].as_u64().unwrap() < rounds {}
}

/// The events in the home of a peer.
fn events(pair: &Pair, node: usize) -> Vec<Value> {
    let text = fs::read_to_string(pair.home(node).join("events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Starts two peers of so many rounds, the second of which stands still from its round `from` to the round `to` of the
/// first.
fn stand_still(pair: &Pair, rounds: u64, from: u64, to: u64) -> [RunningPeer; 2] {
    // A plan whose period is one round: whole periods are skipped.
    pair.replan(&["--method", "sgp-uniform"]);
    let mut peers = pair.start(&["--model", "softmax", "--deadline", "200ms", "--rounds", &rounds.to_string()]);
    wait_for_round(&mut peers[1], from);
    peers[1].signal("STOP");
    wait_for_round(&mut peers[0], to);
    peers[1].signal("CONT");
    peers
}

#[test]
fn a_peer_that_skipped_most_rounds_says_so_at_the_end_also_after_a_restart_and_fails() {
    const ROUNDS: u64 = 1000;
    let pair = Pair::new();
    let [mut first, mut second] = stand_still(&pair, ROUNDS, 8, 700);
    // It believes its neighbour no more than its pace explains, and may skip in several leaps.
    let mut total = 0;
    while total <= ROUNDS / 2 {
        let skipped = second.wait_through_rounds_for("skipped");
        total = skipped["total"].as_u64().unwrap_or_else(|| panic!("{skipped} after {total} skipped rounds"));
    }
    second.kill();
    let (home, address) = (pair.home(1), events(&pair, 0).into_iter().find(|event| event["event"] == "listening"));
    let address = address.unwrap()["addresses"][0].as_str().unwrap().to_owned();
    let mut second = RunningPeer::start(&["--home", text(&home), "--bootstrap", &address]);
    let done = second.wait_through_rounds_for("done");
    assert_eq!(done["error"], Value::Null, "{done}");
    let skipped = done["skipped"].as_u64().unwrap();
    assert!(skipped >= total, "{skipped} of which {total} before the restart");
    assert_eq!(second.exit_code(), Some(5));
    let summary = read_json(&home.join("summary.json"));
    assert_eq!((&summary["rounds"], &summary["skipped"]), (&ROUNDS.into(), &skipped.into()), "{summary}");
    assert_eq!(first.wait_through_rounds_for("done")["skipped"], 0);
    assert_eq!(first.exit_code(), Some(0));
}

#[test]
fn a_peer_that_skipped_few_rounds_counts_them_and_ends_well() {
    const ROUNDS: u64 = 600;
    let pair = Pair::new();
    let mut peers = stand_still(&pair, ROUNDS, 300, 450);
    for (peer, is_late) in peers.iter_mut().zip([false, true]) {
        let done = peer.wait_through_rounds_for("done");
        let skipped = done["skipped"].as_u64().unwrap();
        assert_eq!((skipped > 0, skipped < ROUNDS / 2), (is_late, true), "{done}");
        assert_eq!(peer.exit_code(), Some(0));
    }
}
