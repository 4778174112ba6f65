//! `mingle evaluate`: suites of simulations.
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use support::{assert_fails, run, stderr, stdout, text};

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

    // Interrupted while it wrote the last line: that run is done again, to the same bits.
    let cut = whole.join("\n");
    fs::write(evaluation.path("out/runs.jsonl"), &cut[..cut.len() - 20]).unwrap();
    assert!(evaluation.succeed().contains("4 runs, 1 to do"));
    assert_eq!(evaluation.lines(), whole);
    // Only what a change concerns is run again.
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

/// Prices that follow from two columns, up to a little that does not.
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
    // It ends with the first three evaluations whose mean is there.
    let means: Vec<f64> = rmse.windows(3).map(|three| three.iter().sum::<f64>() / 3.0).collect();
    let (last, before) = means.split_last().unwrap();
    assert!(*last <= 100.0 && !before.is_empty() && before.iter().all(|mean| *mean > 100.0), "{rmse:?}");
    let (_, curve) = of("r2=0.9");
    assert!(curve.last().unwrap()["mean_r2"].as_f64() > Some(0.88) && curve[0]["mean_accuracy"].is_null());
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
