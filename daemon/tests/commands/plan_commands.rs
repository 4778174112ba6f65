//! `mingle plan`: designs, checks, bindings, and errors of files that do not hold.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

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
    let any = ["nguyen-he", "exact-average", "bass-heuristic", "matcha", "d-psgd", "sgp-uniform"];
    let any = any.map(|method| (method, "rg:n=12,r=0.5,seed=3"));
    let exponential = ["exponential", "one-peer-exponential"].map(|method| (method, "exponential:n=8"));
    for (method, topology) in any.into_iter().chain(exponential) {
        let path = folder.path().join(method);
        let made =
            run(&["plan", "make", "--topology", topology, "--method", method, "--effort", "1", "-o", text(&path)]);
        assert!(made.status.success(), "{}", stderr(&made));
        let checked = run(&["plan", "check", text(&path)]);
        assert!(checked.status.success() && stdout(&checked).contains("the plan holds"), "{}", stderr(&checked));
        assert!(stdout(&run(&["plan", "show", text(&path)])).contains(method));
    }
}

#[test]
fn the_same_seed_gives_the_same_file_and_another_seed_another() {
    let plan = |seed: &str| {
        let asked = ["plan", "make", "--topology", "rg:n=20,r=0.4,seed=1", "--effort", "1", "--seed", seed];
        let output = run(&asked);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    assert_eq!(plan("7"), plan("7"));
    assert_ne!(plan("7"), plan("8"));
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
fn a_plan_under_the_name_of_another_method_or_bound_to_no_peer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    let make = |method: &str| {
        let made = run(&["plan", "make", "--topology", "rg:n=6,r=0.6,seed=1", "--method", method, "-o", text(&plan)]);
        assert!(made.status.success(), "{}", stderr(&made));
    };
    make("d-psgd");
    let forged = edited(&plan, |plan| plan["method"] = "clique-phi".into());
    assert_fails(&run(&["plan", "check", text(&forged)]), 8, &["clique-phi plan, and is none", "step 0", "plan make"]);
    let problem = folder.path().join("problem.toml");
    fs::write(folder.path().join("t.csv"), "a,y\n1,2\n2,3\n3,5\n4,4\n5,7\n6,6\n").unwrap();
    fs::write(&problem, "kind = \"sparse-regression\"\ndata = \"t.csv\"\ndeal = true\ntarget = \"y\"\nlambda = 0.1\n")
        .unwrap();
    let solved = run(&["solve", "--problem", text(&problem), "--plan", text(&forged)]);
    assert_fails(&solved, 8, &["none of method clique-phi", "step 0"]);
    let unbound = edited(&plan, |plan| plan["nodes"][2]["peer"] = "nobody".into());
    assert_fails(&run(&["plan", "check", text(&unbound)]), 8, &["node-2", "nobody", "not a PeerId", "plan bind"]);
    let honest = run(&["plan", "check", text(&plan)]);
    assert!(stdout(&honest).contains("every weight is the one that the method gives"), "{}", stderr(&honest));
    make("tuned");
    assert!(stdout(&run(&["plan", "check", text(&plan)])).contains("not checked, method tuned"));
    let by_hand = edited(&plan, |plan| plan["method"] = "by-hand".into());
    assert!(stdout(&run(&["plan", "check", text(&by_hand)])).contains("not checked, method by-hand"));
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
fn without_a_method_the_best_design_is_made_and_the_plan_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let made = run(&["plan", "make", "--topology", "rg:n=12,r=0.5,seed=3", "--effort", "1", "-o", text(&path)]);
    let shown = stdout(&made);
    assert!(
        shown.contains("exact-average (chosen_by auto") && shown.contains("reason     ") && shown.contains("next best"),
        "{shown}"
    );
    assert!(run(&["plan", "check", text(&path)]).status.success());
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

#[test]
fn a_plan_without_a_node_of_another_keeps_the_peers_of_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let plan = made(folder.path());
    assert!(run(&["plan", "bind", text(&plan), "--peer", &format!("node-2={PEER}")]).status.success());
    let next = folder.path().join("next.json");
    // Node 0 holds both cliques together; node 7 is in one of them.
    let without = ["plan", "make", "--topology", text(&plan), "--without", "node-7,3"];
    let output = run(&[&without[..], &["--method", "d-psgd", "-o", text(&next)]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let made: Value = serde_json::from_str(&fs::read_to_string(&next).unwrap()).unwrap();
    let nodes = made["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 9, "{nodes:?}");
    assert!(nodes.iter().all(|node| node["name"] != "node-7" && node["name"] != "node-3"), "{nodes:?}");
    let bound: Vec<&Value> = nodes.iter().filter(|node| node["peer"] == PEER).map(|node| &node["name"]).collect();
    assert_eq!(bound, ["node-2"]);
    for (left_out, message) in [("node-0", "2 parts"), ("node-11", "has no such node")] {
        let output = run(&["plan", "make", "--topology", text(&plan), "--without", left_out]);
        assert_fails(&output, 4, &["--without", message]);
    }
}
