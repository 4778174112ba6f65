//! `mingle plan compare`, `diff` and `draw`: their output, exit codes and files, and the arguments they refuse.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

const TOPOLOGY: &str = "rg:n=12,r=0.5,seed=3";

/// Makes a plan in a folder and returns its file.
fn made(folder: &Path, name: &str, arguments: &[&str]) -> PathBuf {
    let path = folder.join(name);
    let output = run(&[&["plan", "make", "--topology", TOPOLOGY, "-o", text(&path)], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    path
}

fn json(output: &std::process::Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap_or_else(|error| panic!("{error}: {}", stdout(output)))
}

#[test]
fn a_comparison_has_a_row_for_each_design_and_a_reason_for_each_refusal() {
    let methods = "nguyen-he,exact-average,d-psgd,exponential";
    let output = run(&["plan", "compare", "--topology", TOPOLOGY, "--methods", methods]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "12 nodes, 30 edges");
    for heading in ["design", "steps", "slots", "slots/round", "at least", "|lambda2|", "slots/neper", "payloads"] {
        assert!(lines[1].contains(heading), "{heading}: {table}");
    }
    assert!(!lines[1].contains("s/period"), "there are no link measurements: {table}");
    let rows: Vec<&str> = lines[2..5].iter().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(rows, ["nguyen-he", "exact-average", "d-psgd"]);
    let columns = |line: &str| line.split("  ").filter(|cell| !cell.trim().is_empty()).count();
    assert!(lines[2..5].iter().all(|line| columns(line) == columns(lines[1])), "{table}");
    assert!(lines[5].starts_with("exponential: ") && lines[5].contains("complete:n=12"), "{table}");
    assert!(lines[6].starts_with("auto would take exact-average: "), "{table}");
}

#[test]
fn a_comparison_for_a_program_holds_the_forecasts_of_the_same_plans() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["plan", "compare", "--topology", TOPOLOGY, "--methods", "nguyen-he,exponential", "--json"]);
    let comparison = json(&output);
    assert_eq!(comparison["schema"], "mingle.plan-compare/1");
    let plan = made(folder.path(), "plan.json", &["--method", "nguyen-he"]);
    let forecast = json(&run(&["plan", "show", text(&plan), "--json"]));
    assert_eq!(comparison["designs"][0]["forecast"], forecast);
    assert_eq!(comparison["designs"][1]["method"], "exponential");
    assert!(comparison["designs"][1]["refused"].as_str().unwrap().contains("node-"));
    assert_eq!(comparison["auto"]["method"], "nguyen-he");
}

#[test]
fn a_comparison_of_what_does_not_exist_is_refused() {
    assert_fails(
        &run(&["plan", "compare", "--topology", TOPOLOGY, "--methods", "nguyen-he,best"]),
        4,
        &["best", "exact-average"],
    );
    assert_fails(&run(&["plan", "compare", "--topology", "no/such/file"]), 4, &["no/such/file", "hint"]);
}

#[test]
fn the_design_that_a_comparison_would_take_is_the_one_that_auto_takes() {
    let folder = tempfile::tempdir().unwrap();
    let topology = ["--topology", "ring:n=7", "--effort", "1"];
    let comparison = json(&run(&[&["plan", "compare", "--json"], &topology[..]].concat()));
    let plan = folder.path().join("plan.json");
    let output = run(&[&["plan", "make", "--method", "auto", "-o", text(&plan)], &topology[..]].concat());
    let made: Value = serde_json::from_str(&fs::read_to_string(&plan).unwrap()).unwrap();
    assert_eq!(made["method"], comparison["auto"]["method"]);
    assert!(stdout(&output).contains("reason     "), "{}", stdout(&output));
}

#[test]
fn equal_plans_answer_0_and_different_ones_10() {
    let folder = tempfile::tempdir().unwrap();
    let a = made(folder.path(), "a.json", &["--method", "nguyen-he"]);
    let b = made(folder.path(), "b.json", &["--method", "d-psgd", "--local-steps", "3"]);
    let same = run(&["plan", "diff", text(&a), text(&a)]);
    assert_eq!(same.status.code(), Some(0));
    assert!(stdout(&same).starts_with("the plans are the same  blake3:"), "{}", stdout(&same));

    let different = run(&["plan", "diff", text(&a), text(&b)]);
    assert_eq!(different.status.code(), Some(10));
    assert_eq!(stderr(&different), "", "an answer is not an error");
    let told = stdout(&different);
    for words in ["method  nguyen-he -> d-psgd", "local_steps  1 -> 3", "step 0", "+ node-", "forecast.links"] {
        assert!(told.contains(words), "{words}: {told}");
    }

    let document = run(&["plan", "diff", text(&a), text(&b), "--json"]);
    assert_eq!(document.status.code(), Some(10));
    let difference = json(&document);
    assert_eq!((&difference["schema"], &difference["same"]), (&"mingle.plan-diff/1".into(), &false.into()));
    let steps = difference["difference"]["steps"].as_array().unwrap();
    assert_eq!((steps.len(), &steps[0]["step"]), (1, &0.into()));
    assert!(!steps[0]["links"]["added"].as_array().unwrap().is_empty());
}

#[test]
fn a_file_that_is_no_plan_has_no_difference_and_no_picture() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path(), "plan.json", &["--method", "nguyen-he"]);
    let broken = folder.path().join("broken.json");
    fs::write(&broken, "{\"format\": \"mingle-plan/1\"}").unwrap();
    let picture = folder.path().join("x.svg");
    assert_fails(&run(&["plan", "diff", text(&plan), "gone.json"]), 4, &["gone.json"]);
    assert_fails(&run(&["plan", "diff", text(&broken), text(&plan)]), 4, &["broken.json"]);
    assert_fails(&run(&["plan", "draw", text(&broken), "-o", text(&picture)]), 4, &["broken.json"]);
    assert_fails(&run(&["plan", "draw", "gone.json", "-o", text(&picture)]), 4, &["gone.json"]);
    assert!(!picture.exists());
}

#[test]
fn a_plan_is_drawn_in_the_format_of_the_ending() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path(), "plan.json", &["--method", "exact-average"]);
    for (ending, begin, end) in
        [("svg", "<svg ", "</svg>\n"), ("dot", "digraph ", "}\n"), ("graphml", "<?xml ", "</graphml>\n")]
    {
        let picture = folder.path().join(format!("plan.{ending}"));
        let output = run(&["plan", "draw", text(&plan), "-o", text(&picture), "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let written = fs::read_to_string(&picture).unwrap();
        assert!(written.starts_with(begin) && written.ends_with(end), "{ending}");
        let told = json(&output);
        assert_eq!((&told["schema"], &told["format"]), (&"mingle.plan-draw/1".into(), &ending.into()));
        assert_eq!(told["bytes"], written.len());
    }
}

#[test]
fn a_picture_that_cannot_be_written_says_what_could() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path(), "plan.json", &["--method", "nguyen-he"]);
    let draw = |output: &str, more: &[&str]| run(&[&["plan", "draw", text(&plan), "-o", output], more].concat());
    assert_fails(&draw("plan.png", &[]), 4, &["plan.png", ".svg", ".dot", ".graphml"]);
    assert_fails(&draw("plan", &[]), 4, &["plan", ".svg"]);
    assert_fails(&draw("no/such/folder/x.svg", &[]), 4, &["no/such/folder/x.svg"]);
    assert_fails(&draw("x.svg", &["--layout", "positions"]), 4, &["--positions"]);
    assert_fails(&draw("x.svg", &["--positions", "ring:n=12"]), 4, &["ring:n=12", "no positions"]);
    assert_fails(&draw("x.svg", &["--positions", "rg:n=9,r=0.9,seed=1"]), 4, &["node-9"]);
    assert!(!Path::new("x.svg").exists());
}

#[test]
fn places_come_from_a_topology_by_the_names_of_its_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path(), "plan.json", &["--method", "nguyen-he"]);
    let draw = |name: &str, more: &[&str]| {
        let picture = folder.path().join(name);
        let output = run(&[&["plan", "draw", text(&plan), "-o", text(&picture)], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        fs::read_to_string(picture).unwrap()
    };
    let circle = draw("circle.svg", &[]);
    assert_ne!(draw("places.svg", &["--positions", TOPOLOGY]), circle);
    assert_eq!(draw("still.svg", &["--positions", TOPOLOGY, "--layout", "circle"]), circle);
}
