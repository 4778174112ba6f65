//! `--air-rate` of `mingle plan make`, `show` and `compare`: seconds on a shared channel.

use std::path::{Path, PathBuf};

use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

const TOPOLOGY: [&str; 2] = ["--topology", "rg:n=12,r=0.5,seed=3"];
/// A model of 25,000 parameters on a channel of 10 Mbit/s.
const AIR: [&str; 4] = ["--air-rate", "10mbit", "--payload-bytes", "100000"];
/// Length of a slot for 100,000 bytes at 10 Mbit/s: 86 packets of 1,200 bytes, a quarter more, and 4 ms.
const SLOT_S: f64 = 0.1072;

fn made(folder: &Path, method: &str, medium: &str) -> PathBuf {
    let path = folder.join(format!("{method}-{medium}.json"));
    let design = ["--method", method, "--medium", medium, "-o", text(&path)];
    let output = run(&[&["plan", "make"], &TOPOLOGY[..], &design].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    path
}

/// The JSON that a command prints.
fn object(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[track_caller]
fn assert_close(value: &Value, wanted: f64) {
    assert!(value.as_f64().is_some_and(|value| (value - wanted).abs() < 1e-9), "{value} is not {wanted}");
}

#[test]
fn a_rate_gives_the_seconds_of_slots_rounds_and_agreement() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path(), "nguyen-he", "broadcast");
    let forecast = object(&[&["plan", "show", text(&plan), "--codec", "f32"], &AIR[..]].concat());
    let air = &forecast["air"];
    assert_eq!(air["payload_bytes"], 100_000);
    assert_close(&air["seconds_per_slot"], SLOT_S);
    assert_close(&air["seconds_per_round"], SLOT_S * forecast["slots_per_period"].as_f64().unwrap());
    assert_close(&air["seconds_to_1e-2"], SLOT_S * forecast["slots_to_1e-2"].as_f64().unwrap());
    // What is printed for people is the same, when a plan is made too.
    let shown = stdout(&run(&[&["plan", "show", text(&plan)], &AIR[..]].concat()));
    let line = shown.lines().find(|line| line.starts_with("air ")).unwrap_or_else(|| panic!("{shown}")).to_owned();
    assert!(line.contains("in slots of 107.2 ms for 100000 bytes"), "{line}");
    let design = [&["plan", "make"], &TOPOLOGY[..], &AIR, &["--method", "nguyen-he"]].concat();
    let written = folder.path().join("written.json");
    let made = stdout(&run(&[&design[..], &["-o", text(&written)]].concat()));
    assert!(made.lines().any(|made| made == line), "{made}");
    // A plan on standard output stays a plan.
    let piped = run(&design);
    assert!(stderr(&piped).contains(line.trim_start_matches("air").trim()), "{}", stderr(&piped));
    assert!(serde_json::from_str::<Value>(&stdout(&piped)).unwrap()["forecast"].is_object());
    // Without a rate there are no seconds.
    assert!(object(&["plan", "show", text(&plan)]).get("air").is_none());
}

#[test]
fn a_round_is_one_of_several_in_a_period_and_slots_are_as_long_as_the_longest_payload_of_the_codec() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path(), "bass-optimised", "broadcast");
    let forecast = object(&[&["plan", "show", text(&plan)], &AIR[..]].concat());
    let file: Value = serde_json::from_str(&std::fs::read_to_string(&plan).unwrap()).unwrap();
    let rounds = file["steps"].as_array().unwrap().len() as f64;
    assert_close(
        &forecast["air"]["seconds_per_round"],
        SLOT_S * forecast["slots_per_period"].as_f64().unwrap() / rounds,
    );
    // Plans with exact averages are in four bits by default.
    let tree = made(folder.path(), "exact-average", "broadcast");
    let of = |codec: &[&str]| object(&[&["plan", "show", text(&tree)], &AIR[..], codec].concat())["air"].clone();
    let bytes = |air: &Value| air["payload_bytes"].as_u64().unwrap();
    assert!(bytes(&of(&[])) < 15_000, "{}", of(&[]));
    assert_eq!(of(&[]), of(&["--codec", "int4"]));
    // Some parcels of such a plan stay in f32 where the codec rounds values themselves: slots are as long as those.
    assert_eq!(bytes(&of(&["--codec", "f16"])), 100_000);
}

#[test]
fn a_comparison_has_the_seconds_of_each_design() {
    let compare = ["plan", "compare", "--methods", "nguyen-he,exact-average"];
    let comparison = object(&[&compare, &TOPOLOGY[..], &AIR, &["--codec", "f32"]].concat());
    for design in comparison["designs"].as_array().unwrap() {
        let slots = design["forecast"]["slots_per_period"].as_f64().unwrap();
        assert_close(&design["air"]["seconds_per_round"], SLOT_S * slots);
    }
    let table = stdout(&run(&[&compare, &TOPOLOGY[..], &AIR, &["--codec", "f32"]].concat()));
    let heading = table.lines().nth(1).unwrap();
    assert!(heading.ends_with("f32 MB  ms/slot  s/round  s to 1e-2"), "{table}");
    assert!(table.lines().nth(2).unwrap().contains("107.2"), "{table}");
}

#[test]
fn a_simulation_counts_the_seconds_of_its_slots() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path(), "nguyen-he", "broadcast");
    let simulate = ["simulate", "--plan", text(&plan), "--model", "softmax", "--rounds", "2"];
    let reports = stdout(&run(&[&simulate[..], &AIR[..2], &["--json"]].concat()));
    let report: Value = serde_json::from_str(reports.lines().last().unwrap()).unwrap();
    let bytes = (4 * report["parameters"].as_u64().unwrap()).to_string();
    let forecast = object(&["plan", "show", text(&plan), "--air-rate", "10mbit", "--payload-bytes", &bytes]);
    let slots = report["slots"].as_f64().unwrap();
    assert!(slots > 0.0 && report["codec"] == "f32", "{report}");
    assert_close(&report["seconds_on_air"], slots * forecast["air"]["seconds_per_slot"].as_f64().unwrap());
    let shown = stdout(&run(&[&simulate[..], &AIR[..2]].concat()));
    assert!(shown.contains(" s on the air): 2 rounds"), "{shown}");
}

#[test]
fn a_rate_for_links_with_lines_of_their_own_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path(), "exact-average", "point-to-point");
    let wires = ["--medium", "point-to-point"];
    let refused = ["--air-rate", "shared channel", "--medium broadcast"];
    assert_fails(&run(&[&["plan", "show", text(&plan)], &AIR[..]].concat()), 4, &refused);
    for command in ["make", "compare"] {
        assert_fails(&run(&[&["plan", command], &TOPOLOGY[..], &wires, &AIR].concat()), 4, &refused);
    }
    assert_fails(&run(&["plan", "show", text(&plan), "--air-rate", "fast"]), 2, &["`fast` is no rate"]);
}
