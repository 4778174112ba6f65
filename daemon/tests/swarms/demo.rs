//! `mingle demo`: real processes, a model that is better together, books that balance, nothing left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{assert_fails, mingle, run, stderr, stdout, text};
use serde_json::Value;

const ONE: u64 = 1 << 40;

/// Runs a small demo and returns its final object.
fn demo(folder: &Path, more: &[&str]) -> Value {
    let mut arguments = vec!["demo", "--json", "--model", "softmax", "--output", text(folder)];
    arguments.extend(more);
    let output = run(&arguments);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap()
}

/// The parameters of a peer's model, as they are in the file. The metadata before them name the plan, and with it the
/// peers' keys, which are new in every demo.
fn parameters(folder: &Path, node: usize) -> Vec<u8> {
    let file = fs::read(folder.join(format!("peers/{node}/model.safetensors"))).unwrap();
    let header = usize::try_from(u64::from_le_bytes(file[..8].try_into().unwrap())).unwrap();
    file[8 + header..].to_vec()
}

#[test]
fn a_swarm_of_processes_learns_together_and_its_weights_sum_to_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let report = demo(&root, &["--peers", "5", "--rounds", "40", "--split", "label-sorted", "--evaluate-every", "20"]);
    assert_eq!(report["audit"]["held"], 5 * ONE);
    assert_eq!(report["audit"]["in_flight"], 0);
    assert_eq!(report["audit"]["disputes"], serde_json::json!([]));
    let together = report["swarm"]["worst_accuracy"].as_f64().unwrap();
    let alone = report["without_swarm"]["alone"].as_array().unwrap();
    for accuracy in alone {
        // A peer that has seen two of ten digits cannot know the others.
        assert!(accuracy.as_f64().unwrap() + 0.2 < together, "{report}");
    }
    for file in ["plan.json", "curves.svg", "events.jsonl", "summary.json", "peers/4/model.safetensors"] {
        assert!(root.join(file).exists(), "{file} is missing");
    }
    let events = fs::read_to_string(root.join("events.jsonl")).unwrap();
    let rounds: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rounds.len(), 2);
    assert!(rounds.iter().all(|row| row["weight_units"] == 5 * ONE), "{events}");
}

#[test]
fn timelines_show_what_every_peer_did_when() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let more = ["--peers", "3", "--rounds", "12", "--timeline", "on", "--durability", "on", "--no-comparison"];
    let report = demo(&root, &more);
    assert!((0.0..=1.0).contains(&report["communication_hidden"].as_f64().unwrap()), "{report}");
    let picture = fs::read_to_string(root.join("timeline.svg")).unwrap();
    assert!(picture.contains("node 2") && picture.contains("receiving"), "{picture}");

    let homes: Vec<String> = (0..3).map(|node| root.join(format!("peers/{node}")).display().to_string()).collect();
    let drawn = folder.path().join("rounds.svg");
    let mut arguments = vec!["timeline", "--json", "--rounds", "2..5", "--output", text(&drawn)];
    arguments.extend(homes.iter().map(String::as_str));
    let output = run(&arguments);
    assert!(output.status.success() && drawn.exists(), "{}", stderr(&output));
    let shares: Value = serde_json::from_str(&stdout(&output)).unwrap();
    for (node, peer) in shares["peers"].as_array().unwrap().iter().enumerate() {
        assert_eq!((&peer["node"], &peer["rounds"]), (&node.into(), &4.into()), "{peer}");
        let part = |name: &str| peer[name].as_f64().unwrap();
        assert!(part("training") > 0.0 && part("moving") > 0.0 && part("waiting") <= 1.0, "{peer}");
    }
    assert_fails(&run(&["timeline", "--rounds", "50..60", &homes[0]]), 4, &["rounds 50 to 60"]);
    assert_fails(&run(&["timeline", text(folder.path())]), 4, &["--timeline on"]);
}

#[test]
fn the_same_seed_gives_every_peer_the_same_model_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    // The usual plan, in which credit binds, and four bits against references.
    for method in [&[][..], &["--method", "exact-average"]] {
        let run = |at: usize| {
            let root = folder.path().join(format!("{}-{at}", method.len()));
            demo(&root, &[&["--rounds", "12", "--seed", "5", "--no-comparison"], method].concat());
            root
        };
        let (first, second) = (run(1), run(2));
        for node in 0..8 {
            assert!(parameters(&first, node) == parameters(&second, node), "{method:?}, node {node}");
        }
    }
}

#[test]
fn the_books_of_the_survivors_tell_what_a_killed_peer_took_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let report = demo(&root, &["--peers", "5", "--rounds", "30", "--kill", "2@10"]);
    assert_eq!(report["killed"], serde_json::json!([2]));
    let audit = &report["audit"];
    let units = |value: &Value| value.as_i64().unwrap();
    let gone = &audit["absent"][0];
    assert_eq!(gone["id"], 2);
    let sum = units(&audit["held"]) + units(&audit["in_flight"]) + units(&audit["in_doubt"]) + units(&gone["held"]);
    assert_eq!(sum, i64::try_from(5 * ONE).unwrap(), "{audit}");
    assert!(units(&audit["held"]) < i64::try_from(5 * ONE).unwrap(), "the dead peer held something");
    assert!(!root.join("peers/2/model.safetensors").exists() && root.join("peers/1/model.safetensors").exists());
}

#[test]
fn a_killed_peer_that_is_started_again_brings_its_weight_back_and_the_disks_agree_to_the_unit() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let report = demo(&root, &["--peers", "4", "--rounds", "60", "--kill", "1@15", "--restart", "--no-comparison"]);
    assert_eq!(report["killed"], serde_json::json!([1]));
    let disks = &report["disks"];
    assert_eq!((&disks["verdict"], disks["sum_units"].as_u64()), (&Value::from("exact"), Some(4 * ONE)), "{disks:#}");
    assert_eq!(report["audit"]["absent"], serde_json::json!([]));
    assert_eq!(report["audit"]["written_off"], 0);
    assert!(root.join("peers/1/model.safetensors").exists());
    let audit = run(&["audit", text(&root)]);
    assert!(audit.status.success() && stdout(&audit).contains("exactly 4 = 4 held"), "{}", stdout(&audit));
}

#[test]
fn a_peer_that_stays_dead_leaves_its_weight_on_its_disk() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let kill = ["--peers", "4", "--rounds", "30", "--kill", "1@10", "--durability", "on", "--no-comparison"];
    let report = demo(&root, &kill);
    let disks = &report["disks"];
    assert_eq!((&disks["verdict"], disks["sum_units"].as_u64()), (&Value::from("exact"), Some(4 * ONE)), "{disks:#}");
}

#[test]
fn a_demo_that_cannot_run_says_why_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let fails = |more: &[&str], words: &[&str]| {
        let mut arguments = vec!["demo", "--output", text(&root)];
        arguments.extend(more);
        assert_fails(&run(&arguments), 4, words);
        assert!(!root.exists(), "{more:?}");
    };
    fails(&["--peers", "1"], &["--peers 1"]);
    fails(&["--kill", "9@3"], &["9@3"]);
    fails(&["--kill", "1@3", "--restart", "--durability", "off"], &["--restart", "--durability off"]);
    fails(&["--data", "idx:no/such/folder"], &["no/such/folder"]);
    fails(&["--model", "transformer"], &["transformer", "softmax"]);
    fails(&["--rounds", "0"], &["--rounds 0"]);
    fails(&["--wait", "patiently"], &["patiently", "sync"]);
    fails(&["--split", "random"], &["random", "dirichlet"]);
    fails(&["--method", "best"], &["best"]);
}

/// The files below a folder, without those of a demo that failed.
fn files_below(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && entry.path() != root.join("failed") {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.insert(entry.path(), fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

#[cfg(target_os = "linux")]
#[test]
fn a_demo_that_fails_before_its_peers_have_begun_leaves_the_files_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    demo(&root, &["--peers", "2", "--rounds", "4", "--no-comparison"]);
    let before = files_below(&root);
    let table = folder.path().join("table.csv");
    fs::write(&table, "a,b,kind\n1,2,x\n1,?,y\n").unwrap();
    let data = format!("csv:{}", table.display());
    for (arguments, words) in [
        (&["--peers", "1"][..], "--peers 1"),
        (&["--wait", "patiently"], "patiently"),
        (&["--data", "idx:no/such/folder"], "no/such/folder"),
        (&["--data", &data], "line 3"),
        (&["--problem", "sparse-regression", "--rounds", "9"], "--rounds 9"),
        (&["--problem", "recommendation", "--rounds", "0"], "0 rounds"),
        (&["--problem", "node-classification", "--rounds", "0"], "0 rounds"),
    ] {
        assert_fails(&run(&[&["demo", "--output", text(&root)], arguments].concat()), 4, &[words]);
        assert!(files_below(&root) == before, "{arguments:?}");
    }
    // What introduces a problem cannot be written.
    let mut program = mingle();
    program.args(["demo", "--problem", "sparse-regression", "--peers", "2", "--output", text(&root)]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert_eq!(program.stdin(Stdio::null()).stdout(full).stderr(Stdio::null()).status().unwrap().code(), Some(4));
    assert!(files_below(&root) == before, "on a full disk");

    // Its files are made, and it is stopped or killed before all of its many peers are there.
    let many = ["demo", "--model", "softmax", "--peers", "48", "--rounds", "1000000", "--output", text(&root)];
    for signal in ["KILL", "INT"] {
        let mut program = mingle();
        program.args(many).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = program.spawn().unwrap();
        while processes_of(&root.join("peers/0")).is_empty() {
            assert!(running.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::yield_now();
        }
        assert!(root.join(".former").exists(), "its peers have begun already");
        assert!(Command::new("kill").args(["-s", signal, &running.id().to_string()]).status().unwrap().success());
        assert_eq!(running.wait().unwrap().code(), if signal == "INT" { Some(130) } else { None });
        wait_until_gone(&root);
    }
    let after = files_below(&root);
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert!(after == before, "some file has changed");
    assert!(root.join("failed/peers/0/log.txt").exists());
    // One that runs replaces them all.
    demo(&root, &["--peers", "3", "--rounds", "2", "--no-comparison"]);
    assert!(root.join("peers/2/model.safetensors").exists() && !root.join("failed").exists());
}

#[test]
fn thirty_two_peers_come_together_with_one_dial_a_link() {
    const PEERS: u64 = 32;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let (peers, rounds) = (PEERS.to_string(), ["--rounds", "3", "--evaluate-every", "3", "--no-comparison"]);
    let report = demo(&root, &[&["--peers", &peers], &rounds[..]].concat());
    let joined = &report["joined"];
    let count = |name: &str| joined[name].as_u64().unwrap();
    assert_eq!(count("missing_neighbours"), 0, "{joined}");
    // A link costs one dial, and so does the way in. Where both ends learn of each other at once, both dial.
    assert!(count("dials") <= count("pairs") * 5 / 4 + PEERS, "{joined}");
    assert!(count("failed_dials") <= 6, "{joined}");
    // A machine that is busy with something else may take longer than the patience before the table is asked.
    assert!(count("table_queries") <= 8, "{joined}");
    assert!(count("most_dials") <= 2 * count("most_neighbours") + 20, "{joined}");
    assert_eq!(report["audit"]["held"], PEERS * ONE);
}

/// The processes whose command line names `folder`.
fn processes_of(folder: &Path) -> BTreeSet<u32> {
    let name = text(folder).as_bytes();
    let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|id: &u32| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            line.windows(name.len()).any(|window| window == name)
        })
        .collect()
}

/// A demo of three peers that does not end by itself, and what it prints from its second line on.
#[cfg(target_os = "linux")]
fn running_demo(root: &Path) -> (std::process::Child, std::io::Lines<std::io::BufReader<std::process::ChildStdout>>) {
    let mut running = mingle()
        .args(["demo", "--json", "--model", "softmax", "--peers", "3", "--rounds", "1000000", "--output", text(root)])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The first evaluated round says that all peers are up and training.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(running.stdout.take().unwrap()));
    assert!(lines.next().unwrap().unwrap().contains("mean_accuracy"));
    (running, lines)
}

#[cfg(target_os = "linux")]
#[test]
fn no_process_outlives_a_demo_that_is_interrupted_or_killed() {
    for signal in ["INT", "KILL"] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("demo");
        let (mut running, lines) = running_demo(&root);
        assert_eq!(processes_of(&root).len(), 4);
        let sent = Command::new("kill").args(["-s", signal, &running.id().to_string()]).status().unwrap();
        assert!(sent.success());
        // The pipe that all of them hold closes with the last of them.
        for line in lines {
            line.unwrap();
        }
        let status = running.wait().unwrap();
        assert_eq!(status.code(), if signal == "INT" { Some(130) } else { None });
        wait_until_gone(&root);
    }
}

/// A peer whose standard input has closed ends within its drain; a minute is far beyond.
#[cfg(target_os = "linux")]
fn wait_until_gone(folder: &Path) {
    let started = std::time::Instant::now();
    while !processes_of(folder).is_empty() {
        assert!(started.elapsed().as_secs() < 60, "still running: {:?}", processes_of(folder));
        std::thread::yield_now();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_demo_does_not_wait_for_peers_that_cannot_stop() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let (mut running, _lines) = running_demo(&root);
    let frozen = processes_of(&root.join("peers/1"));
    assert_eq!(frozen.len(), 1);
    let signal = |name: &str, id: u32| {
        assert!(Command::new("kill").args(["-s", name, &id.to_string()]).status().unwrap().success());
    };
    frozen.iter().for_each(|&id| signal("STOP", id));
    let asked = std::time::Instant::now();
    signal("INT", running.id());
    assert_eq!(running.wait().unwrap().code(), Some(130));
    // A second for the peers to stop, and time for a busy machine.
    assert!(asked.elapsed().as_secs() < 5, "{:?}", asked.elapsed());
    wait_until_gone(&root);
}
