//! `mingle fault-test` and `mingle replay`: the failures they find, their journals, and replays.

use std::fs;
use std::path::PathBuf;

use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

/// A failing seed's journal.
fn journal(folder: &tempfile::TempDir) -> PathBuf {
    let folder = folder.path().join("journals");
    let arguments =
        ["fault-test", "--seeds", "1", "--inject", "applies-twice", "--threads", "1", "--journals", text(&folder)];
    let output = run(&arguments);
    assert_fails(&output, 8, &["1 seeds failed", "mingle replay"]);
    let journal = folder.join("kill-0-applies-twice.json");
    assert!(stdout(&output).contains(&format!("mingle replay {}", journal.display())), "{}", stdout(&output));
    journal
}

#[test]
fn seeds_hold_and_do_not_depend_on_the_threads() {
    let object = |threads| {
        let output = run(&["--json", "fault-test", "--seeds", "4", "--first", "3", "--threads", threads]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let object: Value = serde_json::from_str(&stdout(&output)).unwrap();
        object
    };
    let (alone, together) = (object("1"), object("3"));
    assert_eq!(
        (&alone["schema"], &alone["seeds"], &alone["failed"]),
        (&"mingle.fault-test/2".into(), &4.into(), &0.into())
    );
    assert!(alone["kills"].as_u64().unwrap() > 20 && alone["checks"].as_u64() > alone["kills"].as_u64());
    assert_eq!((&alone["digest"], &alone["events"]), (&together["digest"], &together["events"]));
}

#[test]
fn swarms_with_liars_hold_where_all_nodes_clip_and_are_others_than_where_none_does() {
    let object = |more: &[&str]| {
        let arguments = [&["--json", "fault-test", "--profile", "hostile", "--seeds", "3"], more].concat();
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let object: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!((&object["seeds"], &object["failed"]), (&3.into(), &0.into()));
        assert!(object["checks"].as_u64().unwrap() > 1_000, "{object}");
        object
    };
    let (plain, robust) = (object(&[]), object(&["--robust", "clip"]));
    assert_eq!((&plain["robust"], &robust["robust"]), (&"off".into(), &"clip".into()));
    assert_ne!(plain["digest"], robust["digest"]);
    assert_eq!(robust["digest"], object(&["--robust", "clip"])["digest"]);
    assert_fails(&run(&["fault-test", "--robust", "median"]), 2, &["median", "off and clip"]);

    // The journal of a failing run names the variant of its nodes.
    let folder = tempfile::tempdir().unwrap();
    let journals = folder.path().join("journals");
    let arguments = ["fault-test", "--seeds", "1", "--inject", "applies-twice", "--robust", "clip", "--journals"];
    assert_fails(&run(&[&arguments[..], &[text(&journals)]].concat()), 8, &["1 seeds failed"]);
    let output = run(&["replay", text(&journals.join("kill-0-applies-twice-clip.json"))]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("receiving with clip"), "{}", stdout(&output));
}

#[test]
fn a_failing_seed_is_written_down_and_replays_with_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let journal = journal(&folder);
    let output = run(&["replay", text(&journal), "--trace"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let log = stdout(&output);
    assert!(log.contains("with applies-twice injected") && log.contains("takes part from step 0 on"), "{log}");
    assert!(log.contains("FAILED"), "{log}");
    let output = run(&["--json", "replay", text(&journal)]);
    let object: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&object["schema"], &object["agrees"]), (&"mingle.replay/2".into(), &true.into()));
    assert_eq!(object["failure"], object["recorded_failure"]);
}

#[test]
fn a_journal_that_replays_to_something_else_says_which_release_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = journal(&folder);
    let mut journal: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    journal["digest"] = "0".repeat(64).into();
    journal["made_by"] = "0.0.9".into();
    fs::write(&path, journal.to_string()).unwrap();
    assert_fails(&run(&["replay", text(&path)]), 8, &["blake3:", "00000000", "release 0.0.9 made the journal"]);
}

#[test]
fn what_is_no_journal_and_what_cannot_be_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.json");
    assert_fails(&run(&["replay", text(&path)]), 4, &["cannot read the journal"]);
    fs::write(&path, "{}").unwrap();
    assert_fails(&run(&["replay", text(&path)]), 4, &["missing field"]);
    assert_fails(&run(&["fault-test", "--profile", "storm"]), 2, &["storm", "lossy-disk"]);
    assert_fails(&run(&["fault-test", "--profile", "mixed", "--days", "1"]), 4, &["take kill, loss or partition"]);
    assert_fails(&run(&["fault-test", "--inject", "gremlins"]), 2, &["gremlins", "applies-twice"]);
}
