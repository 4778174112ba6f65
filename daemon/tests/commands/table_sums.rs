//! `mingle data sums` and `mingle data card --sums`: sites that show no row to each other scale by the mean and
//! deviation of all rows.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::support::pair::Pair;
use crate::support::{RunningPeer, assert_fails, read_json, run, stderr, stdout, text};
use serde_json::Value;

/// A site whose rows are all of one class, and far from those of other sites.
fn site(class: &str, around: f64, rows: usize) -> String {
    (0..rows).fold("dose,age,kind\n".to_owned(), |mut table, row| {
        let (dose, age) = (around + (row * 7 % 13) as f64 / 3.0, 40.0 + (row * 5 % 31) as f64);
        writeln!(table, "{dose},{age},{class}").unwrap();
        table
    })
}

fn data(path: &Path, table: &str) -> String {
    fs::write(path, table).unwrap();
    format!("csv:{}", path.display())
}

fn succeed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

#[test]
fn sites_with_one_class_each_train_by_the_card_of_all_their_rows_and_the_model_carries_it() {
    let pair = Pair::new();
    let sites = [site("ill", 10.0, 100), site("well", 20.0, 40), site("ill", 12.0, 25)];
    let sources: Vec<String> =
        sites.iter().enumerate().map(|(number, table)| data(&pair.file(&format!("{number}.csv")), table)).collect();
    let files: Vec<_> = (0..3).map(|number| pair.file(&format!("{number}.json"))).collect();
    for (source, file) in sources.iter().zip(&files) {
        let said = succeed(&["data", "sums", "--data", source, "-o", text(file)]);
        assert!(said.contains("training rows") && said.contains("no row"), "{said}");
    }
    let alone = run(&["data", "card", "--data", &sources[0]]);
    assert_fails(&alone, 4, &["1 classes"]);
    let card_of = |order: [usize; 3]| {
        let files = order.map(|site| text(&files[site]));
        serde_json::from_str::<Value>(&succeed(&[&["data", "card", "--json", "--sums"][..], &files].concat())).unwrap()
    };
    let card = card_of([0, 1, 2]);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(card_of(order), card);
    }
    assert_eq!(card["sites"], serde_json::json!({ "sites": 3, "samples": 80 + 32 + 20 }));
    assert_eq!(card["classes"], serde_json::json!(["ill", "well"]));

    let path = pair.file("card.json");
    let said =
        succeed(&["data", "card", "--sums", text(&files[0]), text(&files[1]), text(&files[2]), "-o", text(&path)]);
    assert!(said.contains("over the 132 training rows of 3 sites"), "{said}");
    let task = ["--model", "softmax", "--rounds", "60", "--wait", "sync", "--card", text(&path), "--weight", "samples"];
    let mut first = pair.start_first(&[&task[..], &["--data", &sources[0]]].concat());
    let (home, address) = (pair.home(1), first.address());
    let way_in = ["--home", text(&home), "--bootstrap", &address, "--data", &sources[1]];
    let mut second = RunningPeer::start(&[&way_in[..], &task].concat());
    for peer in [&mut first, &mut second] {
        let end = peer.wait_through_rounds_for("done");
        assert!(end.get("error").is_none(), "{end}");
    }
    // A site of the mean size counts as one.
    assert_eq!(read_json(&home.join("task.json"))["card"]["weight"]["samples"]["unit"], 44);
    let model = home.join("model.safetensors");
    let judged: Value =
        serde_json::from_str(&succeed(&["eval", "--json", text(&model), "--data", &sources[2]])).unwrap();
    let scaling: Value = serde_json::from_str(judged["metadata"]["scaling"].as_str().unwrap()).unwrap();
    assert_eq!(scaling, card["scaling"], "the file of the model has the numbers of the card");
    // A class that this peer never saw, predicted from raw rows of a site that took no part.
    let predicted = succeed(&["predict", text(&model), "--data", &sources[2]]);
    assert!(predicted.lines().skip(1).all(|line| line.starts_with("ill")), "{predicted}");
}

#[test]
fn files_that_are_no_sums_or_do_not_go_together_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let sums = |name: &str, table: &str, task: &str| {
        let (source, file) = (data(&at("rows.csv"), table), at(name));
        succeed(&["data", "sums", "--data", &source, "--task", task, "-o", text(&file)]);
        file
    };
    let here = sums("here.json", &site("x", 1.0, 9), "classification");
    let card_of = |files: &[&Path]| {
        let files: Vec<&str> = files.iter().map(|file| text(file)).collect();
        run(&[&["data", "card", "--sums"], &files[..]].concat())
    };
    let other = sums("other.json", "dose,weight,kind\n1,2,y\n1,2,y\n1,2,y\n1,2,y\n1,2,y\n", "classification");
    let words = ["other.json does not go with those before it", "no column `age`"];
    assert_fails(&card_of(&[&here, &other]), 4, &words);
    let prices = sums("prices.json", "dose,age,price\n1,2,3\n1,2,4\n1,2,5\n1,2,6\n1,2,7\n", "regression");
    assert_fails(&card_of(&[&here, &prices]), 4, &["prices.json", "`price`, to predict"]);
    assert!(stdout(&card_of(&[&prices])).contains("\"target\""));
    assert_fails(&card_of(&[&here]), 4, &["1 classes cannot be learnt"]);

    let mut made_up = read_json(&here);
    made_up["features"][1]["squares"] = "0x1p0".into();
    let lie = at("lie.json");
    fs::write(&lie, made_up.to_string()).unwrap();
    assert_fails(&card_of(&[&lie]), 4, &["lie.json", "sums of `age`", "variance would be negative"]);
    made_up["features"][1]["squares"] = "0.5".into();
    fs::write(&lie, made_up.to_string()).unwrap();
    assert_fails(&card_of(&[&lie]), 4, &["lie.json", "\"0.5\" is no exact sum"]);
    fs::write(&lie, "{}").unwrap();
    assert_fails(&card_of(&[&lie]), 4, &["lie.json has no sums of a table", "mingle data sums"]);
    assert_fails(&card_of(&[&at("missing.json")]), 4, &["missing.json"]);
    assert_fails(&run(&["data", "sums", "--data", "digits"]), 4, &["digits is no table"]);
    assert_fails(&run(&["data", "card", "--data", "digits", "--sums", text(&here)]), 2, &["--data", "--sums"]);
}
