//! `mingle evaluate`: suites of simulations.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

const SUITE: &str = r#"
title = "Little <suite>"
seeds = [0, 1]
max-slots = 400
baselines = ["first"]
[training]
data = "digits"
model = "softmax"
batch-size = 8
learning-rate = 0.5
[[topology]]
name = "ring"
source = "ring:n=4"
[[split]]
split = "iid"
target-accuracy = 0.6
[[design]]
name = "first"
method = "d-psgd"
[[design]]
name = "second"
method = "exact-average"
local-steps = 2
"#;

struct Evaluation {
    folder: tempfile::TempDir,
}

impl Evaluation {
    fn of(suite: &str) -> Self {
        let evaluation = Self { folder: tempfile::tempdir().unwrap() };
        evaluation.change(suite);
        evaluation
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn change(&self, suite: &str) {
        fs::write(self.path("suite.toml"), suite).unwrap();
    }

    fn run(&self) -> Output {
        run(&["evaluate", text(&self.path("suite.toml")), "-o", text(&self.path("out"))])
    }

    fn succeed(&self) -> String {
        let output = self.run();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.path("out/runs.jsonl")).unwrap().lines().map(str::to_owned).collect()
    }
}

#[test]
fn a_suite_compares_designs_goes_on_where_it_was_and_writes_a_report() {
    let evaluation = Evaluation::of(SUITE);
    let printed = evaluation.succeed();
    assert!(printed.contains("4 runs, 4 to do"), "{printed}");
    let row = printed.lines().find(|line| line.starts_with("first")).unwrap();
    assert!(row.contains("2 of 2") && row.contains("1.00"), "{printed}");
    let whole = evaluation.lines();
    assert_eq!(whole.len(), 4);

    // The last line was cut off by an interruption: that run is done again, to the same bits.
    let cut = whole.join("\n");
    fs::write(evaluation.path("out/runs.jsonl"), &cut[..cut.len() - 20]).unwrap();
    assert!(evaluation.succeed().contains("4 runs, 1 to do"));
    assert_eq!(evaluation.lines(), whole);
    // Only the runs that a change concerns are run again.
    evaluation.change(&SUITE.replace("local-steps = 2", "local-steps = 3"));
    assert!(evaluation.succeed().contains("4 runs, 2 to do"));
    assert!(evaluation.succeed().contains("4 runs, 0 to do"));

    let page = fs::read_to_string(evaluation.path("out/report.html")).unwrap();
    assert!(page.contains("Little &lt;suite&gt;") && !page.contains("<suite>"));
    assert_eq!(page.matches("<figure>").count(), 2, "a picture of each plan");
    assert_eq!(fs::read_dir(evaluation.path("out/plans")).unwrap().count(), 3, "two designs, one of which was changed");
    assert!(page.matches("<svg").count() == 4 && page.contains("<table>"));
    let from_elsewhere = ["src=", "href=\"http", "url(http", "@import"];
    assert!(from_elsewhere.iter().all(|word| !page.contains(word)), "everything is in the file");
}

/// Prices that follow from two columns, up to a little noise.
fn prices() -> String {
    (0..200).fold("rooms,age,price\n".to_owned(), |mut table, row| {
        let (rooms, age) = (f64::from(row * 7 % 23) / 2.0, f64::from(row * 11 % 61));
        let noise = f64::from(row * 37 % 101) - 50.0;
        writeln!(table, "{rooms},{age},{}", 1500.0 + 210.0 * rooms - 9.0 * age + noise).unwrap();
        table
    })
}

#[test]
fn a_regression_is_compared_by_what_is_to_grow_or_by_what_is_to_fall() {
    let suite = SUITE
        .replace("data = \"digits\"", "data = \"csv:prices.csv\"\ntask = \"regression\"")
        .replace("learning-rate = 0.5", "learning-rate = 0.05");
    let of = |target: &str| {
        let evaluation = Evaluation::of(&suite.replace("target-accuracy = 0.6", &format!("target = \"{target}\"")));
        fs::write(evaluation.path("prices.csv"), prices()).unwrap();
        let printed = evaluation.succeed();
        assert!(printed.contains(&format!("ring, iid, to {}", target.replace('=', " "))), "{printed}");
        let row = printed.lines().find(|line| line.starts_with("first")).unwrap();
        assert!(row.contains("2 of 2"), "{printed}");
        let page = fs::read_to_string(evaluation.path("out/report.html")).unwrap();
        assert!(page.contains("1 - r2") && !page.contains("test error"), "the axis has the name of the metric");
        let last: Value = serde_json::from_str(evaluation.lines().last().unwrap()).unwrap();
        (page, last["curve"].as_array().unwrap().clone())
    };
    let (page, curve) = of("rmse=100");
    assert!(page.contains(">rmse<"), "what is to fall is drawn");
    let rmse: Vec<f64> = curve.iter().map(|progress| progress["rmse"].as_f64().unwrap()).collect();
    // It ends with the first three evaluations whose mean reaches the target.
    let means: Vec<f64> = rmse.windows(3).map(|three| three.iter().sum::<f64>() / 3.0).collect();
    let (last, before) = means.split_last().unwrap();
    assert!(*last <= 100.0 && !before.is_empty() && before.iter().all(|mean| *mean > 100.0), "{rmse:?}");
    let (_, curve) = of("r2=0.9");
    assert!(curve.last().unwrap()["mean_r2"].as_f64() > Some(0.88) && curve[0]["mean_accuracy"].is_null());
}

/// Sites of very different sizes, in two designs that differ in how much the sites count.
const UNEQUAL: &str = r#"
title = "Weights"
seeds = [0]
max-slots = 60
[training]
data = "digits"
model = "softmax"
batch-size = 2000
learning-rate = 0.1
weight = "samples"
[[topology]]
name = "three"
source = "complete:n=3"
[[split]]
split = "dirichlet:0.1"
target-accuracy = 0.99
[[design]]
name = "by samples"
method = "exact-average"
[[design]]
name = "equal"
method = "exact-average"
weight = "equal"
[[design]]
name = "as said"
method = "exact-average"
weight = "samples:100"
"#;

#[test]
fn a_suite_lets_sites_count_by_their_samples_as_simulate_does() {
    let evaluation = Evaluation::of(UNEQUAL);
    evaluation.succeed();
    let found: Vec<Value> = evaluation.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut curves = Vec::new();
    for (design, weight) in [("by samples", "samples"), ("equal", "equal"), ("as said", "samples:100")] {
        let record = found.iter().find(|record| record["design"] == design).unwrap();
        let options = ["--topology", "complete:n=3", "--method", "exact-average", "--split", "dirichlet:0.1"];
        let more = ["--batch-size", "2000", "--max-slots", "60", "--target", "accuracy=0.99", "--weight", weight];
        let more = [&more[..], &["--codec", "f32"]].concat();
        let output = run(&[&["simulate", "--json"], &options[..], &more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let simulated: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (_, simulated) = simulated.split_last().unwrap();
        let losses = |curve: &[Value]| -> Vec<f64> {
            curve.iter().map(|progress| progress["loss"].as_f64().unwrap_or_else(|| panic!("{progress}"))).collect()
        };
        let evaluated = losses(record["curve"].as_array().unwrap());
        assert_eq!(evaluated, losses(simulated), "{design}");
        curves.push(evaluated);
    }
    assert!(curves[0] != curves[1] && curves[1] != curves[2] && curves[0] != curves[2], "{curves:?}");
    // The weight of a site is part of the identity of a run.
    evaluation.change(&UNEQUAL.replace("weight = \"samples\"", "weight = \"samples:50\""));
    let printed = evaluation.succeed();
    assert!(printed.contains("3 runs, 3 to do"), "{printed}");
}

#[test]
fn the_suites_that_come_with_the_program_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/evaluation");
    let suites = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let suites: Vec<PathBuf> = suites.filter(|path| path.extension().is_some_and(|suffix| suffix == "toml")).collect();
    assert!(suites.len() >= 5, "{suites:?}");
    for suite in suites {
        let out = tempfile::tempdir().unwrap();
        let listed = run(&["evaluate", text(&suite), "-o", text(out.path()), "--list"]);
        assert!(listed.status.success(), "{}: {}", suite.display(), stderr(&listed));
        assert!(stdout(&listed).lines().count() > 2, "{}", stdout(&listed));
        assert!(!out.path().join("runs.jsonl").exists(), "nothing is run");
    }
}

#[test]
fn what_cannot_be_used_in_a_suite_is_named() {
    let refused = |from: &str, to: &str, words: &[&str]| {
        let changed = SUITE.replacen(from, to, 1);
        assert_ne!(changed, SUITE, "{from}");
        assert_fails(&Evaluation::of(&changed).run(), 4, words);
    };
    refused("seeds = [0, 1]", "seeds = []", &["at least one seed"]);
    refused("max-slots", "most-slots", &["most-slots", "line 4"]);
    refused("\"d-psgd\"", "\"magic\"", &["design first", "magic"]);
    refused("\"second\"", "\"first\"", &["two designs are called first"]);
    refused("[\"first\"]", "[\"third\"]", &["there is no design third"]);
    refused("local-steps = 2", "loss = 1.5", &["design second", "loss"]);
    refused("batch-size = 8", "batch-size = 8\nweight = \"rows\"", &["line 10", "`rows` is no weight"]);
    refused("local-steps = 2", "weight = \"samples:0\"", &["`0` is no number of samples"]);
    refused("ring:n=4", "no-such-file.json", &["no-such-file.json"]);
    refused("\"iid\"", "\"even\"", &["split even"]);
    refused("target-accuracy = 0.6", "target-accuracy = 60", &["split iid: target-accuracy 60", "0.93"]);
    refused("target-accuracy = 0.6", "target = \"f1=0.6\"", &["line 16", "simulations measure accuracy"]);
    refused("target-accuracy = 0.6", "", &["split iid", "a target-accuracy, or a target"]);
    refused("target-accuracy = 0.6", "target = \"r2=0.6\"", &["split iid", "r2 is not measured", "accuracy, loss are"]);
    let evaluation = Evaluation::of(SUITE);
    evaluation.succeed();
    fs::write(evaluation.path("out/runs.jsonl"), "{}\n").unwrap();
    assert_fails(&evaluation.run(), 4, &["runs.jsonl", "line 1"]);
}

const PROBLEM: &str = "kind = \"recommendation\"\ndata = \"planted:communities=3,users=30,items=25\"\nrounds = 3\nepochs = 1\n\
                       frozen_rounds = 1\nfrequencies = 10\nbatch_size = 128\nlearning_rate = 0.003\n";
const METHODS: &str = r#"
title = "Little <methods>"
problem = "problem.toml"
clients = 3
seeds = [0, 1]
metrics = ["ndcg@20", "recall@20"]
[[method]]
name = "alone"
set = { method = "alone" }
[[method]]
name = "together"
set = { method = "fedavg", loss = "bpr" }
"#;

#[test]
fn methods_are_compared_seed_by_seed_and_what_is_there_is_not_learned_again() {
    let evaluation = Evaluation::of(METHODS);
    fs::write(evaluation.path("problem.toml"), PROBLEM).unwrap();
    let printed = evaluation.succeed();
    assert!(printed.contains("4 runs, 4 to do"), "{printed}");
    let records: Vec<Value> = evaluation.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let report: Value = serde_json::from_str(&fs::read_to_string(evaluation.path("out/report.json")).unwrap()).unwrap();
    assert_eq!((&report["baseline"], &report["seeds"]), (&"alone".into(), &serde_json::json!([0, 1])));
    let [alone, together] = ["alone", "together"].map(|method| {
        [0, 1].map(|seed| {
            let record = records.iter().find(|record| record["method"] == method && record["seed"] == seed).unwrap();
            let at = record["metrics"].as_array().unwrap().iter().position(|metric| metric == "ndcg@20").unwrap();
            let clients = record["clients"].as_array().unwrap();
            let sum: f64 = clients.iter().map(|client| client[at].as_f64().unwrap()).sum();
            let mean = record["mean"][at].as_f64().unwrap();
            assert!((mean - sum / 3.0).abs() < 1e-12 && clients.len() == 3, "{record}");
            mean
        })
    });
    assert_ne!(alone, together);
    let row = &report["metrics"][0]["methods"][1];
    let expected = (together[0] - alone[0] + together[1] - alone[1]) / 2.0;
    assert!((row["difference"]["moments"]["mean"].as_f64().unwrap() - expected).abs() < 1e-12, "{row}");
    assert_eq!(row["difference"]["pairs"], 2);
    let markdown = fs::read_to_string(evaluation.path("out/report.md")).unwrap();
    assert!(markdown.contains(&format!("| together | {:.4} |", (together[0] + together[1]) / 2.0)), "{markdown}");
    let html = fs::read_to_string(evaluation.path("out/report.html")).unwrap();
    assert!(html.contains("Little &lt;methods&gt;") && html.matches("<svg").count() == 2);

    // A record that is cut off is learned again, to the same bits, and the others stay.
    let file = evaluation.path("out/runs.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    assert!(evaluation.succeed().contains("4 runs, 1 to do"));
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
    let json = run(&["evaluate", text(&evaluation.path("suite.toml")), "-o", text(&evaluation.path("out")), "--json"]);
    let last: Value = serde_json::from_str(stdout(&json).lines().last().unwrap()).unwrap();
    assert_eq!(last, report);
}

#[test]
fn a_suite_that_names_no_method_takes_those_of_its_kind_and_one_that_cannot_be_says_why() {
    let suite = "problem = \"problem.toml\"\nclients = 3\nseeds = [4]\n";
    let evaluation = Evaluation::of(suite);
    let list = || stdout(&run(&["evaluate", "--list", text(&evaluation.path("suite.toml"))]));
    fs::write(evaluation.path("problem.toml"), PROBLEM).unwrap();
    for method in ["each alone", "FedAvg", "FedAvg, BPR", "LPSFed, BPR", "LPSFed"] {
        assert!(list().lines().any(|line| line == format!("{method}, seed 4")), "{}", list());
    }
    let nodes = "kind = \"node-classification\"\ndata = \"two-characters\"\nrounds = 2\n[model]\norders = 2\nhidden = 4\nlayers = 2\n";
    fs::write(evaluation.path("problem.toml"), nodes).unwrap();
    let printed = evaluation.succeed();
    for method in ["local", "average", "paper", "angle", "robust"] {
        assert!(printed.lines().any(|line| line.starts_with(method)), "{printed}");
    }
    let training = "kind = \"training\"\ndata = \"digits\"\nmodel = \"softmax\"\nrounds = 2\nlocal_steps = 2\n";
    fs::write(evaluation.path("problem.toml"), training).unwrap();
    let printed = evaluation.succeed();
    for words in ["alone", "fedavg", "accuracy"] {
        assert!(printed.contains(words), "{printed}");
    }
    let fails = |suite: &str, problem: &str, words: &[&str]| {
        evaluation.change(suite);
        fs::write(evaluation.path("problem.toml"), problem).unwrap();
        assert_fails(&evaluation.run(), 4, words);
    };
    fails(&format!("{suite}baseline = \"none\""), nodes, &["suite.toml", "there is no method none", "local, average"]);
    fails(suite, "kind = \"sparse-regression\"", &["at least one [[method]]"]);
    let other = format!("{suite}[[method]]\nname = \"one\"\nset = {{ colour = 3 }}\n");
    fails(&other, PROBLEM, &["with method one does not hold", "colour"]);
    fails(&other.replace("colour = 3", "floor = 0.5"), "kind = \"sparse-regression\"", &["is learned in no rounds"]);
    fails(suite, "kind = ", &["problem.toml"]);
}
