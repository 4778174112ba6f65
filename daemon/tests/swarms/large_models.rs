//! Records of a model of a million parameters: how much of the disk they take, through a kill too.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::support::{mingle, text};
use serde_json::Value;

const ONE: u64 = 1 << 40;
/// A perceptron with one hidden layer of 14,000 on digits.
const MODEL_BYTES: u64 = 4 * (14_000 * 75 + 10);

/// The most that any peer's records take at this moment, in models.
fn largest_records(root: &Path) -> f64 {
    let bytes_in = |folder: &Path| -> u64 {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
    };
    let peers = fs::read_dir(root.join("peers")).into_iter().flatten().flatten();
    let of_peer = |peer: &Path| -> u64 {
        ["records", "records.next", "records.discarded"].iter().map(|name| bytes_in(&peer.join(name))).sum()
    };
    let largest = peers.map(|peer| of_peer(&peer.path())).max().unwrap_or(0);
    largest as f64 / MODEL_BYTES as f64
}

#[test]
fn records_take_at_most_three_slots_of_the_disk_and_a_fourth_beside_a_peer_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let arguments = [
        "demo",
        "--json",
        "--peers",
        "4",
        "--durability",
        "on",
        "--model",
        "mlp:hidden=14000",
        "--learning-rate",
        "0.02",
        "--rounds",
        "12",
        "--wait",
        "sync",
        "--kill",
        "1@5",
        "--restart",
        "--no-comparison",
        "--evaluate-every",
        "4",
        "--output",
        text(&root),
    ];
    let mut demo = mingle().args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut most: f64 = 0.0;
    let mut last = String::new();
    // Peers report each round: something was written since the line before.
    for line in BufReader::new(demo.stdout.take().unwrap()).lines() {
        last = line.unwrap();
        most = most.max(largest_records(&root));
    }
    assert!(demo.wait().unwrap().success(), "{last}");
    most = most.max(largest_records(&root));
    // A slot is as long as a model, the last bits of its numerators and the books: some eighth more. One holds the newest
    // record, one that before it, whose parcels may be under way, and one the next. One more is for the round by which the
    // killed peer lags, if its neighbour went on meanwhile.
    assert!((1.5..=4.7).contains(&most), "{most} models");
    let report: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(report["killed"], serde_json::json!([1]));
    let disks = &report["disks"];
    assert_eq!((&disks["verdict"], disks["sum_units"].as_u64()), (&Value::from("exact"), Some(4 * ONE)), "{disks:#}");
}
