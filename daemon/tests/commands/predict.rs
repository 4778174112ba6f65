//! `mingle predict`: predictions for samples whose class or quantity is unknown.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

/// Points right and left of a line, with a column that carries no information.
fn points(rows: usize) -> String {
    let mut table = "x,y,side\n".to_owned();
    for row in 0..rows {
        let (x, y) = ((row * 7 % 41) as f64 - 20.0, (row * 13 % 17) as f64);
        writeln!(table, "{x},{y},{}", if x > 0.0 { "\"right, far\"" } else { "left" }).unwrap();
    }
    table
}

/// Trains on a table, and returns the home of a peer.
fn trained(folder: &Path, table: &str, more: &[&str]) -> PathBuf {
    fs::write(folder.join("table.csv"), table).unwrap();
    let (data, root) = (format!("csv:{}", text(&folder.join("table.csv"))), folder.join("demo"));
    let arguments = ["demo", "--json", "--no-comparison", "--model", "softmax", "--peers", "2", "--rounds", "60"];
    let output = run(&[&arguments[..], &["--data", &data, "-o", text(&root)], more].concat());
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    root.join("peers/0")
}

fn csv(folder: &Path, table: &str) -> String {
    let path = folder.join("new.csv");
    fs::write(&path, table).unwrap();
    format!("csv:{}", path.display())
}

fn predict(arguments: &[&str]) -> String {
    let output = run(&[&["predict"], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn classes_of_new_samples_are_predicted_by_the_names_of_columns() {
    let folder = tempfile::tempdir().unwrap();
    let home = trained(folder.path(), &points(200), &[]);
    let data = csv(folder.path(), "name,y,x\nA,3,15\nB,4,-15\nC,5,18\n");
    let told = predict(&["--home", text(&home), "--data", &data]);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!((lines[0], lines.len()), ("class,probability", 4), "{told}");
    assert!(lines[1].starts_with("\"right, far\",0.9") && lines[2].starts_with("left,0.9"), "{told}");

    assert_eq!(predict(&["--home", text(&home), "--data", &csv(folder.path(), "x,y\n")]), "class,probability\n");
    let data = csv(folder.path(), "name,y,x\nA,3,15\nB,4,-15\nC,5,18\n");

    let model = home.join("model.safetensors");
    let written = folder.path().join("predicted.csv");
    let output = run(&["predict", text(&model), "--data", &data, "--probabilities", "-o", text(&written)]);
    assert!(output.status.success() && stdout(&output).is_empty(), "{}", stderr(&output));
    assert!(stderr(&output).contains("not used: name") && stderr(&output).contains("3 predictions"));
    let table = fs::read_to_string(&written).unwrap();
    let names = "class,probability,probability of left,\"probability of right, far\"";
    assert_eq!(table.lines().next(), Some(names), "{table}");
    assert_eq!(table.lines().count(), 4);

    let objects = predict(&["--home", text(&home), "--data", &data, "--json", "--probabilities"]);
    let object: Value = serde_json::from_str(objects.lines().next().unwrap()).unwrap();
    let sum: f64 = object["probabilities"].as_object().unwrap().values().map(|it| it.as_f64().unwrap()).sum();
    assert!(object["class"] == "right, far" && (sum - 1.0).abs() < 1e-9, "{object}");
}

#[test]
fn quantities_are_predicted_in_their_units() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = "rooms,price\n".to_owned();
    (0..100).for_each(|row| writeln!(table, "{},{}", row % 10, 50_000 + 20_000 * (row % 10)).unwrap());
    let home = trained(folder.path(), &table, &["--task", "regression"]);
    let data = csv(folder.path(), "rooms\n0\n5\n9\n");
    let told = predict(&["--home", text(&home), "--data", &data]);
    let prices: Vec<f64> = told.lines().skip(1).map(|line| line.parse().unwrap()).collect();
    assert_eq!(told.lines().next(), Some("price"));
    assert!(prices.iter().zip([50_000.0, 150_000.0, 230_000.0]).all(|(a, b)| (a - b).abs() < 2_000.0), "{told}");
}

#[test]
fn what_cannot_be_predicted_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let home = trained(folder.path(), &points(100), &[]);
    let (model, home) = (home.join("model.safetensors"), text(&home));
    let fails = |arguments: &[&str], code: i32, words: &[&str]| {
        assert_fails(&run(&[&["predict"], arguments].concat()), code, words);
    };
    let of = |table: &str| csv(folder.path(), table);
    fails(&["--home", home, "--data", &of("x\n1\n")], 4, &["column 2 of the task is `y`"]);
    fails(&["--home", home, "--data", &of("x,y\n1,2\n1,?\n")], 4, &["line 3, column 2 (y)"]);
    fails(&["--home", home, "--data", &of("")], 4, &["nothing in it"]);
    fails(&["--home", home, "--data", "digits"], 4, &["digits"]);
    fails(&["--home", home, text(&model), "--data", "digits"], 4, &["leave one of the two away"]);
    fails(&["--home", text(&folder.path().join("none")), "--data", "digits"], 4, &["there is no model in"]);
    let other = folder.path().join("other.safetensors");
    let header = "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 4]].concat();
    fs::write(&other, bytes).unwrap();
    fails(&[text(&other), "--data", "digits"], 4, &["does not say what its columns"]);
}
