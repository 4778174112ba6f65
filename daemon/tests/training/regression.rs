//! `--task regression`: a quantity in a table, predicted by a swarm nearly as well as from all data in one place, and
//! reported in the units of the data.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

/// Prices that follow from two columns, up to a little noise.
fn prices(rows: usize) -> String {
    let mut table = "rooms,age,price\n".to_owned();
    for row in 0..rows {
        let (rooms, age) = ((row * 7 % 23) as f64 / 2.0, (row * 11 % 61) as f64);
        let noise = ((row * 37 % 101) as f64 / 101.0 - 0.5) * 8000.0;
        writeln!(table, "{rooms},{age},{}", 150_000.0 + 21_000.0 * rooms - 900.0 * age + noise).unwrap();
    }
    table
}

fn write(folder: &Path, name: &str, table: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, table).unwrap();
    format!("csv:{}", path.display())
}

fn object(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap()
}

#[test]
fn three_peers_predict_a_quantity_nearly_as_well_as_all_data_in_one_place_and_the_model_says_what_it_means() {
    let folder = tempfile::tempdir().unwrap();
    let (data, root) = (write(folder.path(), "prices.csv", &prices(300)), folder.path().join("demo"));
    let task = ["demo", "--json", "--task", "regression", "--data", &data, "--model", "softmax", "--peers", "3"];
    let more = ["--rounds", "40", "--learning-rate", "0.05", "--evaluate-every", "20", "-o", text(&root)];
    let report = object(&[&task[..], &more].concat());
    let central = report["without_swarm"]["central"].as_f64().unwrap();
    let worst = report["swarm"]["worst_r2"].as_f64().unwrap_or_else(|| panic!("{report}"));
    assert!(central > 0.99, "a linear quantity is learnt: {report}");
    assert!(worst > central - 0.01, "{report}");
    let row: Value =
        serde_json::from_str(fs::read_to_string(root.join("events.jsonl")).unwrap().lines().next().unwrap()).unwrap();
    assert!(row["mean_r2"].is_number() && row["mean_accuracy"].is_null(), "{row}");

    let model = root.join("peers/1/model.safetensors");
    let judged = object(&["eval", "--json", text(&model), "--data", &data]);
    let number = |key: &str| judged[key].as_f64().unwrap_or_else(|| panic!("no {key} in {judged}"));
    assert!((number("r2") - worst).abs() < 0.01, "{judged}");
    // In the units of the data: the noise alone has a deviation of some 2,300.
    assert!((2_000.0..6_000.0).contains(&number("rmse")), "{judged}");
    assert!((number("rmse").powi(2) / number("mse") - 1.0).abs() < 1e-9, "{judged}");
    let target: Value = serde_json::from_str(judged["metadata"]["target"].as_str().unwrap()).unwrap();
    assert_eq!(target["name"], "price");
    assert!((100_000.0..400_000.0).contains(&target["mean"].as_f64().unwrap()), "{target}");
    let words = stdout(&run(&["eval", text(&model), "--data", &data]));
    assert!(words.starts_with("r2 0.99") && words.contains("rmse "), "{words}");
    // Another table with the columns in another order is judged by the same card.
    let turned: String = prices(60)
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            format!("{},{},{}\n", cells[2], cells[1], cells[0])
        })
        .collect();
    let turned = write(folder.path(), "turned.csv", &turned) + ",label=price";
    assert!(object(&["eval", "--json", text(&model), "--data", &turned])["r2"].as_f64() > Some(0.98));
}

#[test]
fn a_simulated_swarm_predicts_a_quantity_and_stops_at_an_error_or_at_r2() {
    let folder = tempfile::tempdir().unwrap();
    let data = write(folder.path(), "prices.csv", &prices(300));
    let swarm = ["simulate", "--topology", "ring:n=4", "--method", "sgp-uniform", "--local-steps", "4"];
    let task = ["--task", "regression", "--data", &data, "--learning-rate", "0.05", "--rounds", "60"];
    let simulate = |more: &[&str]| object(&[&swarm[..], &task, &["--json"], more].concat());
    let report = simulate(&[]);
    assert!(report["mean_r2"].as_f64() > Some(0.98) && report["worst_r2"].as_f64() > Some(0.98), "{report}");
    assert!(report["mean_accuracy"].is_null() && report["recent_r2"].is_number(), "{report}");
    // In the units of the data: the noise alone has a deviation of some 2,300.
    assert!((2_000.0..6_000.0).contains(&report["rmse"].as_f64().unwrap()), "{report}");
    let weighted = simulate(&["--split", "dirichlet:0.3", "--weight", "samples"]);
    assert!(weighted["worst_r2"].as_f64() > Some(0.9), "{weighted}");
    for target in ["rmse=20000", "r2=0.9"] {
        let stopped = simulate(&["--target", target]);
        assert_eq!(stopped["stop"], "target", "{stopped}");
        assert!(stopped["round"].as_u64() < Some(60), "{stopped}");
    }
    let words = stdout(&run(&[&swarm[..], &task].concat()));
    assert!(words.contains("r2 0.9") && words.contains("rmse ") && !words.contains("accuracy"), "{words}");
    let refused = |more: &[&str], words: &[&str]| assert_fails(&run(&[&swarm[..], &task, more].concat()), 4, words);
    refused(&["--target", "accuracy=0.9"], &["--target accuracy 0.9", "r2, loss, mse, rmse are"]);
    refused(&["--model", "cnn"], &["model cnn tells classes apart"]);
}

#[test]
fn a_multilayer_perceptron_predicts_what_is_not_linear() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = "x,y\n".to_owned();
    for row in 0..200 {
        let x = f64::from(row * 13 % 200) / 50.0 - 2.0;
        writeln!(table, "{x},{}", 40.0 + 5.0 * x * x).unwrap();
    }
    let (data, root) = (write(folder.path(), "square.csv", &table), folder.path().join("demo"));
    let task = ["demo", "--json", "--task", "regression", "--data", &data, "--model", "mlp:hidden=16", "--peers", "3"];
    let adamw = ["--optimizer", "adamw", "--learning-rate", "0.02", "--schedule", "cosine", "--no-comparison"];
    let report = object(&[&task[..], &adamw, &["--rounds", "60", "--split", "iid", "-o", text(&root)]].concat());
    assert!(report["swarm"]["worst_r2"].as_f64() > Some(0.95), "{report}");
}

#[test]
fn a_card_of_a_regression_names_the_quantity_with_its_mean_and_deviation() {
    let folder = tempfile::tempdir().unwrap();
    let data = write(folder.path(), "prices.csv", &prices(50));
    let card = folder.path().join("card.json");
    let written = run(&["data", "card", "--task", "regression", "--data", &data, "-o", text(&card)]);
    assert!(stdout(&written).contains("2 columns and `price` to predict"), "{}", stdout(&written));
    let document: Value = serde_json::from_str(&fs::read_to_string(&card).unwrap()).unwrap();
    assert_eq!((&document["classes"], &document["target"]["name"]), (&serde_json::json!([]), &"price".into()));
    assert!(document["target"]["deviation"].as_f64() > Some(1_000.0), "{document}");

    let home = folder.path().join("home");
    assert!(run(&["init", "--home", text(&home)]).status.success());
    let home = ["run", "--home", text(&home), "--card", text(&card), "--data"];
    let refused = run(&[&home[..], &[&data]].concat());
    assert_fails(&refused, 4, &["--task classification contradicts the card of the data, which is for regression"]);
}

#[test]
fn what_cannot_be_predicted_is_refused_with_file_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let words = write(folder.path(), "words.csv", "rooms,price\n1,10\n2,20\n3,cheap\n4,40\n5,dear\n");
    let constant = write(folder.path(), "constant.csv", "rooms,price\n1,10\n2,10\n3,10\n4,10\n5,10\n");
    let prices = write(folder.path(), "prices.csv", &prices(50));
    let out = folder.path().join("demo");
    let refused = |data: &str, model: &str, words: &[&str]| {
        let demo = ["demo", "--task", "regression", "--data", data, "--model", model, "-o", text(&out)];
        assert_fails(&run(&demo), 4, words);
        assert!(!out.exists());
    };
    refused(&words, "softmax", &["words.csv, line 4, column 2 (price)", "\"cheap\" is not a finite number"]);
    refused(&constant, "softmax", &["constant.csv, column 2 (price)", "never varies"]);
    refused(&prices, "cnn", &["model cnn tells classes apart", "softmax"]);
    refused("digits", "softmax", &["digits has classes", "csv:FILE"]);
    let measured = run(&["demo", "--data", &prices, "-o", text(&out)]);
    assert_fails(&measured, 4, &["looks like a measurement", "--task regression"]);
    assert_fails(&run(&["demo", "--task", "guessing", "-o", text(&out)]), 2, &["write classification or regression"]);
}
