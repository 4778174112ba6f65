//! `mingle plan`: designs, checks, bindings, and what is said about files that do not hold.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{assert_fails, run, stderr, stdout, text};

const PEER: &str = "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf";

/// Makes a plan for a small windmill and returns its file.
fn made(folder: &Path) -> PathBuf {
    let path = folder.join("plan.json");
    let output =
        run(&["plan", "make", "--topology", "windmill:cliques=2,size=6", "--extra-edges", "2", "-o", text(&path)]);
    assert!(output.status.success(), "{}", stderr(&output));
    path
}

/// Changes a plan file by hand.
fn edited(path: &Path, edit: impl Fn(&mut Value)) -> PathBuf {
    let mut plan: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    edit(&mut plan);
    let edited = path.with_file_name("edited.json");
    fs::write(&edited, plan.to_string()).unwrap();
    edited
}

#[test]
fn the_forecast_of_a_known_graph_is_printed_as_one_object() {
    let output = run(&["plan", "make", "--topology", "windmill:cliques=2,size=6", "--extra-edges", "2", "--json"]);
    let forecast: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(forecast["schema"], "mingle.forecast/1");
    assert_eq!(forecast["slots_per_period"], 7);
    assert_eq!(forecast["links"], 52);
}

#[test]
fn every_method_makes_a_plan_that_checks() {
    let folder = tempfile::tempdir().unwrap();
    for method in ["nguyen-he", "exact-average", "bass-heuristic", "matcha", "d-psgd", "sgp-uniform"] {
        let path = folder.path().join(method);
        let made = run(&["plan", "make", "--topology", "rg:n=12,r=0.5,seed=3", "--method", method, "-o", text(&path)]);
        assert!(made.status.success(), "{}", stderr(&made));
        let checked = run(&["plan", "check", text(&path)]);
        assert!(checked.status.success() && stdout(&checked).contains("the plan holds"), "{}", stderr(&checked));
        assert!(stdout(&run(&["plan", "show", text(&path)])).contains(method));
    }
}

#[test]
fn the_same_seed_gives_the_same_file() {
    let plan = |seed: &str| stdout(&run(&["plan", "make", "--topology", "rg:n=20,r=0.4,seed=1", "--seed", seed]));
    assert_eq!(plan("7"), plan("7"));
}

#[test]
fn topologies_that_cannot_be_planned_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let make = |content: &str| {
        fs::write(&path, content).unwrap();
        run(&["plan", "make", "--topology", text(&path)])
    };
    assert_fails(&make("0 1\n2 3\n"), 4, &["2 parts", "{0, 1}", "{2, 3}"]);
    assert_fails(&make(""), 4, &["graph"]);
    assert_fails(&make("0 1\n1 1\n"), 4, &["1"]);
    assert_fails(&make(r#"{"directed": true, "nodes": [0, 1], "edges": [[0, 1]]}"#), 4, &["both directions"]);
    assert_fails(&run(&["plan", "make", "--topology", "no/such/file"]), 4, &["no/such/file", "hint"]);
    assert_fails(&run(&["plan", "make", "--topology", "ring:n=8", "--method", "best"]), 4, &["best", "nguyen-he"]);
    assert_fails(&run(&["plan", "make", "--topology", "ring:n=8", "--extra-edges", "few"]), 4, &["few", "auto"]);
}

#[test]
fn plans_edited_by_hand_are_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path());
    let check = |edit: &dyn Fn(&mut Value)| run(&["plan", "check", text(&edited(&plan, edit))]);

    assert_fails(&check(&|plan| plan["steps"][0]["keep"][3] = 0.9.into()), 4, &["edited.json", "3"]);
    assert_fails(
        &check(&|plan| {
            // All links in the first slot: some of them conflict.
            let slots = plan["steps"][0]["slots"].as_array().unwrap();
            let all: Vec<Value> = slots.iter().flat_map(|slot| slot.as_array().unwrap().clone()).collect();
            plan["steps"][0]["slots"] = serde_json::json!([all]);
        }),
        4,
        &["slot", "conflict"],
    );
    assert_fails(
        &check(&|plan| {
            let edges = plan["base"]["edges"].as_array_mut().unwrap();
            edges.remove(0);
        }),
        4,
        &["base"],
    );
    assert_fails(&check(&|plan| plan["colour"] = "red".into()), 4, &["colour"]);
    assert_fails(&check(&|plan| plan["forecast"]["slots_per_period"] = 3.into()), 8, &["slots_per_period", "3"]);
}

#[test]
fn nodes_are_bound_to_peers_by_name_or_index() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path());
    let before = fs::read(&plan).unwrap();
    let bound = folder.path().join("bound.json");
    let binding = format!("0={PEER}");
    let output = run(&["plan", "bind", text(&plan), "--peer", &binding, "-o", text(&bound)]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read(&plan).unwrap(), before);
    let json: Value = serde_json::from_str(&fs::read_to_string(&bound).unwrap()).unwrap();
    assert_eq!(json["nodes"][0]["peer"], PEER);
}

#[test]
fn bindings_that_cannot_hold_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path());
    let before = fs::read(&plan).unwrap();
    let bind = |bindings: &[&str]| {
        let mut arguments = vec!["plan", "bind", text(&plan)];
        for binding in bindings {
            arguments.extend(["--peer", binding]);
        }
        run(&arguments)
    };
    assert_fails(&bind(&["0=nobody"]), 4, &["nobody", "PeerId"]);
    assert_fails(&bind(&["0"]), 4, &["NODE=PEERID"]);
    assert_fails(&bind(&[&format!("99={PEER}")]), 4, &["99"]);
    assert_fails(&bind(&[&format!("0={PEER}"), &format!("1={PEER}")]), 4, &[PEER]);
    assert_eq!(fs::read(&plan).unwrap(), before);
}

#[test]
fn designs_are_compared_side_by_side_and_those_refused_say_why() {
    let asked = ["plan", "compare", "--topology", "rg:n=12,r=0.5,seed=3", "--effort", "1"];
    let table = stdout(&run(&asked));
    assert!(table.starts_with("12 nodes"), "{table}");
    for method in ["nguyen-he", "tuned", "exact-average", "bass-optimised", "matcha", "d-psgd"] {
        assert_eq!(table.lines().filter(|line| line.starts_with(method)).count(), 1, "{method} in {table}");
    }
    assert!(table.contains("one-peer-exponential: method one-peer-exponential needs a link from"), "{table}");

    let some = run(&[&asked[..], &["--methods", "exact-average,d-psgd", "--json"]].concat());
    let document: Value = serde_json::from_str(&stdout(&some)).unwrap();
    let exact = &document["designs"][0];
    assert_eq!((&document["schema"], &exact["method"]), (&"mingle.plan-compare/1".into(), &"exact-average".into()));
    assert_eq!(exact["forecast"]["lambda_2"], 0.0);
    assert_fails(&run(&[&asked[..], &["--methods", "best"]].concat()), 4, &["there is no method \"best\""]);
}

#[test]
fn without_a_method_the_best_design_is_made_and_the_plan_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let made = run(&["plan", "make", "--topology", "rg:n=12,r=0.5,seed=3", "--effort", "1", "-o", text(&path)]);
    let shown = stdout(&made);
    assert!(shown.contains("exact-average (chosen_by auto") && shown.contains("next best"), "{shown}");
    assert!(run(&["plan", "check", text(&path)]).status.success());
}

#[test]
fn a_difference_between_plans_is_exit_code_ten_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["1", "3"].map(|edges| {
        let path = folder.path().join(edges);
        run(&["plan", "make", "--topology", "grid:rows=3,cols=3", "--extra-edges", edges, "-o", text(&path)]);
        path
    });
    let same = run(&["plan", "diff", text(&first), text(&first)]);
    assert_eq!((same.status.code(), stdout(&same).trim()), (Some(0), "the plans are the same"));
    let differ = run(&["plan", "diff", text(&first), text(&second)]);
    assert_eq!(differ.status.code(), Some(10), "{}", stderr(&differ));
    assert!(stdout(&differ).contains("parameters") && stdout(&differ).contains("links added"), "{}", stdout(&differ));
    assert_eq!(stderr(&differ), "");
    let json = run(&["plan", "diff", text(&first), text(&second), "--json"]);
    let document: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!((json.status.code(), &document["same"]), (Some(10), &false.into()));
    assert!(document["forecast"]["links"]["after"].as_u64() > document["forecast"]["links"]["before"].as_u64());
}

#[test]
fn plans_are_drawn_in_the_format_the_file_name_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path());
    for (name, begins) in [("a.svg", "<svg"), ("a.dot", "digraph"), ("a.graphml", "<?xml")] {
        let path = folder.path().join(name);
        let drawn = run(&["plan", "draw", text(&plan), "-o", text(&path)]);
        assert!(drawn.status.success(), "{}", stderr(&drawn));
        assert!(fs::read_to_string(&path).unwrap().starts_with(begins), "{name}");
    }
    let refused = run(&["plan", "draw", text(&plan), "-o", text(&folder.path().join("a.png"))]);
    assert_fails(&refused, 4, &["use .svg, .dot or .graphml"]);
    let elsewhere =
        run(&["plan", "draw", text(&plan), "-o", text(&folder.path().join("b.svg")), "--positions", "ring:n=4"]);
    assert_fails(&elsewhere, 4, &["this topology says no places"]);
}

#[test]
fn topologies_are_shown_converted_and_generated() {
    let folder = tempfile::tempdir().unwrap();
    let shown = stdout(&run(&["topology", "show", "windmill:cliques=2,size=3"]));
    assert!(shown.contains("nodes      5") && shown.contains("cut nodes  1: node-0"), "{shown}");
    let generated = folder.path().join("t.json");
    assert!(run(&["topology", "generate", "rg:n=9,r=0.6,seed=1", "-o", text(&generated)]).status.success());
    let json = |path: &Path| {
        let shown = stdout(&run(&["topology", "show", text(path), "--json"]));
        serde_json::from_str::<Value>(&shown).unwrap()
    };
    for name in ["t.graphml", "t.edges", "u.json"] {
        let path = folder.path().join(name);
        let converted = run(&["topology", "convert", text(&generated), "-o", text(&path)]);
        assert!(converted.status.success(), "{}", stderr(&converted));
        let (from, to) = (json(&generated), json(&path));
        for key in ["nodes", "edges", "min_degree", "max_degree", "diameter"] {
            assert_eq!(from[key], to[key], "{name}: {key}");
        }
    }
    assert_eq!(json(&folder.path().join("u.json"))["has_positions"], true);
    assert_fails(&run(&["topology", "generate", text(&generated)]), 4, &["this is no generator"]);
}

#[test]
fn measured_links_give_seconds_and_bytes_and_bad_ones_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let links = folder.path().join("links.toml");
    let link = |from: &str, to: &str, rate: &str| {
        format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrtt_ms = 10\nmbit_s = {rate}\n")
    };
    fs::write(&links, link("ana", "ben", "80") + &link("ben", "ana", "8")).unwrap();
    let plan = folder.path().join("plan.json");
    let asked = ["plan", "make", "--links", text(&links), "--medium", "point-to-point", "--method", "sgp-uniform"];
    let made = run(&[&asked[..], &["-o", text(&plan)]].concat());
    assert!(stdout(&made).contains("slowest link ben -> ana with 1.005 s"), "{}{}", stdout(&made), stderr(&made));
    assert!(run(&["plan", "check", text(&plan)]).status.success());
    let promised = run(&[&asked[..], &["--max-upload", "999999"]].concat());
    assert_fails(&promised, 4, &["send 1000000 bytes in a round, more than the 999999 allowed"]);
    fs::write(&links, link("ana", "ben", "nan")).unwrap();
    assert_fails(&run(&asked), 4, &["the bandwidth of the link from ana to ben is NaN"]);
    fs::write(&links, "[[link]]\nfrom = 1\n").unwrap();
    assert_fails(&run(&asked), 4, &["line 2:"]);
}

#[test]
fn an_interference_graph_that_misses_an_edge_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let [base, wide, narrow] = ["base", "wide", "narrow"].map(|name| folder.path().join(name));
    fs::write(&base, "a b\nb c\nc d\n").unwrap();
    fs::write(&wide, "a b\nb c\nc d\na c\nb d\n").unwrap();
    fs::write(&narrow, "a b\nb c\nb d\n").unwrap();
    let slots = |more: &[&str]| {
        let asked = ["plan", "make", "--topology", text(&base), "--method", "sgp-uniform", "--json"];
        let output = run(&[&asked[..], more].concat());
        serde_json::from_str::<Value>(&stdout(&output)).unwrap()["slots_per_period"].as_u64()
    };
    assert!(slots(&["--interference", text(&wide)]) > slots(&[]));
    let asked = ["plan", "make", "--topology", text(&base), "--interference", text(&narrow)];
    assert_fails(&run(&asked), 4, &["c"]);
}
