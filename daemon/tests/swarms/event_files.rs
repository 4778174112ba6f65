//! The event file of a home over the starts of its peer.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::RunningPeer;
use crate::support::pair::{KILLED, Pair};

/// The whole lines of the event file of a home.
fn lines(home: &Path) -> Vec<String> {
    let text = fs::read_to_string(home.join("events.jsonl")).unwrap();
    let whole = &text[..text.rfind('\n').unwrap() + 1];
    whole.lines().map(str::to_owned).collect()
}

fn count(lines: &[String], event: &str) -> usize {
    let events = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|found| found["event"] == event).count()
}

#[test]
fn what_a_peer_said_before_it_was_killed_and_started_again_is_still_there() {
    let pair = Pair::new();
    pair.train_and_kill();
    let before = pair.homes().map(|home| lines(&home));
    let mut peers = pair.start(&KILLED);
    for peer in &mut peers {
        peer.wait_for("recovered");
        peer.wait_for("round");
    }
    peers.iter_mut().for_each(RunningPeer::kill);
    for (home, before) in pair.homes().iter().zip(&before) {
        let after = lines(home);
        assert!(count(before, "joined") == 1 && count(before, "listening") == 1, "{before:?}");
        assert_eq!(after[..before.len()], before[..], "{}", home.display());
        let (since, starts) = (&after[before.len()..], ["started", "listening", "recovered"]);
        assert_eq!(starts.map(|event| count(since, event)), [1, 1, 1], "{since:?}");
    }
}
