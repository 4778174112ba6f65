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

/// The most memory that a peer of four had resident in one round with a text model, and the size of that model, in bytes.
/// Of several rounds a machine that is busy makes more: neighbours that let a deadline pass lag behind.
fn peak_resident_bytes(model: &str) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let training = ["--batch-size", "2", "--local-steps", "1", "--rounds", "1", "--evaluate-every", "1"];
    let mut demo = mingle();
    demo.args(["demo", "--peers", "4", "--durability", "on", "--data", "text", "--model", model]).args(training);
    let ended = demo.args(["--no-comparison", "--output", text(&root)]).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let peak = |peer: usize| {
        let summary = fs::read(root.join(format!("peers/{peer}/summary.json"))).unwrap();
        let summary: Value = serde_json::from_slice(&summary).unwrap();
        summary["peak_resident_bytes"].as_u64().unwrap()
    };
    let of_model = fs::metadata(root.join("peers/0/model.safetensors")).unwrap().len();
    ((0..4).map(peak).max().unwrap(), of_model)
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn a_peer_has_few_copies_of_a_large_model_in_memory() {
    // Six million parameters. What a peer takes besides, such as its program, it takes for a small model too.
    let (large, model) = peak_resident_bytes("gpt:layers=2,heads=8,width=512,context=16");
    let (small, _) = peak_resident_bytes("gpt:layers=1,heads=1,width=64,context=16");
    let copies = (large as f64 - small as f64) / model as f64;
    // 6.6 for the peer with three neighbours. While freed tensors stayed in memory it was 9.9.
    assert!(
        (2.0..=8.0).contains(&copies),
        "{copies:.2} models of {model} bytes: {large}, and {small} with a small one"
    );
}
