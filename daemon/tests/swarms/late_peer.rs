//! A demo whose killed peer comes back when most of the run is over: the others have not waited for it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_builtin::options::TrainingOptions;
use mingle_demo::{DemoEvent, DemoOptions, PeerProgram, TrainingDemo, Watcher};
use mingle_peer::stop;

use crate::support::{read_json, text};

const ROUNDS: u64 = 160;

/// A watcher of nothing.
struct Unwatched;

impl Watcher for Unwatched {
    fn see(&self, _: &DemoEvent<'_>) {}
}

/// A program that is `mingle`, except that the second process of peer 1 begins once the swarm has done 100 rounds.
fn late_program(folder: &Path, output: &Path) -> PathBuf {
    let file = folder.join("late-mingle");
    let (mingle, events) = (env!("CARGO_BIN_EXE_mingle"), output.join("events.jsonl"));
    let script = format!(
        "#!/bin/sh\n\
         case \" $* \" in *'/peers/1 '*)\n\
         if [ -e \"$0.once\" ]; then until grep -q '\"round\":100,' '{}'; do sleep 0.02; done; fi\n\
         : > \"$0.once\"\n\
         esac\n\
         exec '{mingle}' \"$@\"\n",
        text(&events)
    );
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn options(output: &Path) -> DemoOptions {
    let training = TrainingOptions {
        model: "softmax".to_owned(),
        split: Some("iid".to_owned()),
        rounds: ROUNDS,
        evaluate_every: 20,
        ..TrainingOptions::default()
    };
    let kills = vec!["1@10".to_owned()];
    DemoOptions { kills, restart: true, ..DemoOptions::new(4, training, output.to_owned()) }
}

#[test]
fn a_demo_goes_on_with_a_peer_that_comes_back_late_and_says_that_its_data_have_little_part() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("demo");
    let demo = TrainingDemo::prepare(options(&output)).unwrap();
    let file = late_program(folder.path(), &output);
    let program = PeerProgram { file, hidden_variables: Vec::new() };
    let (_handle, mut requests) = stop::channel();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let report = runtime.block_on(demo.run(program, Arc::new(Unwatched), &mut requests)).unwrap();
    assert_eq!(report.killed, [1]);
    // On a busy machine the first process may have done many rounds before it is killed.
    let skipped = read_json(&output.join("peers/1/summary.json"))["skipped"].as_u64().unwrap();
    assert_eq!(report.late.contains(&1), skipped > ROUNDS / 2, "peer 1 skipped {skipped} rounds");
    assert!(report.audit.absent.is_empty(), "{:?}", report.audit);
    let disks = serde_json::to_value(report.disks.unwrap()).unwrap();
    assert_eq!(disks["verdict"], "exact", "{disks:#}");
}
