//! Task cards, on which peers agree before they mix: columns, classes, scaling, model and rounds. Also the memory of a
//! home, and peers that are turned away at the door.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::pair::Pair;
use crate::support::{RunningPeer, assert_fails, audit, mingle, run, stderr, stdout, text};
use serde_json::Value;

const SHORT: [&str; 4] = ["--model", "softmax", "--rounds", "8"];

/// Rows of two columns whose class follows from both, for these indices.
fn rows(range: std::ops::Range<usize>) -> Vec<(f64, f64, &'static str)> {
    let row = |row: usize| {
        let (radius, area) = ((row * 7 % 23) as f64 / 2.0, 1000.0 + (row * 11 % 31) as f64 * 10.0);
        let class = ["small", "middle", "large"][(row * 7 % 23) * 3 / 23];
        (radius, area, class)
    };
    range.map(row).collect()
}

/// The rows as a table with the columns in this order.
fn table(header: [&str; 3], rows: &[(f64, f64, &str)]) -> String {
    let mut lines = vec![header.join(",")];
    for (radius, area, class) in rows {
        let cell = |name: &&str| match *name {
            "radius" => radius.to_string(),
            "size" => (*class).to_owned(),
            _ => area.to_string(),
        };
        lines.push(header.iter().map(cell).collect::<Vec<_>>().join(","));
    }
    lines.join("\n") + "\n"
}

fn write(path: &Path, text: &str) -> String {
    fs::write(path, text).unwrap();
    format!("csv:{},label=size", path.display())
}

/// Starts both of a pair, each on its own data; the second knows nothing but the address of the first.
fn start(pair: &Pair, first: &str, second: &str, more: &[&str]) -> [RunningPeer; 2] {
    let mut first = pair.start_first(&[&SHORT[..], &["--data", first, "--wait", "sync"]].concat());
    let (home, address) = (pair.home(1), first.address());
    let arguments = ["--home", text(&home), "--bootstrap", &address, "--data", second, "--wait", "sync"];
    [first, RunningPeer::start(&[&arguments[..], more].concat())]
}

/// A model file, read without anything else.
struct ModelFile {
    header: Value,
    data: Vec<u8>,
}

impl ModelFile {
    fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        Self { header, data: bytes[8 + length..].to_vec() }
    }

    fn said(&self, key: &str) -> Value {
        serde_json::from_str(self.header["__metadata__"][key].as_str().unwrap()).unwrap()
    }

    fn tensor(&self, name: &str) -> Vec<f32> {
        let place = &self.header[name]["data_offsets"];
        let [from, to] = [0, 1].map(|end| place[end].as_u64().unwrap() as usize);
        self.data[from..to].chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    /// The class that a softmax model gives to scaled features.
    fn classify(&self, features: &[f32]) -> String {
        let (weight, bias) = (self.tensor("linear.weight"), self.tensor("linear.bias"));
        let logit = |class: usize| -> f32 {
            let row = &weight[class * features.len()..(class + 1) * features.len()];
            bias[class] + row.iter().zip(features).map(|(weight, feature)| weight * feature).sum::<f32>()
        };
        let best = (0..bias.len()).max_by(|a, b| logit(*a).total_cmp(&logit(*b))).unwrap();
        self.said("classes")[best].as_str().unwrap().to_owned()
    }

    /// `(raw - mean) / deviation`, column by column.
    fn scale(&self, raw: &BTreeMap<&str, f64>) -> Vec<f32> {
        let scaling = &self.said("scaling")["columns"];
        let columns = self.said("columns");
        let feature = |(column, name): (usize, &Value)| {
            let number = |list: &str| scaling[list][column].as_f64().unwrap();
            ((raw[name.as_str().unwrap()] - number("means")) / number("deviations")) as f32
        };
        columns.as_array().unwrap().iter().enumerate().map(feature).collect()
    }
}

/// The samples of `data` that the model gets right, and all samples, by `mingle eval`.
fn judged(model: &Path, data: &str) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for on in ["test", "train"] {
        let output = run(&["eval", text(model), "--data", data, "--on", on, "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let said: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let samples = said["samples"].as_f64().unwrap();
        sum = (sum.0 + said["accuracy"].as_f64().unwrap() * samples, sum.1 + samples);
    }
    sum
}

#[test]
fn tables_with_other_orders_and_fewer_classes_train_one_model_that_a_stranger_can_use_on_raw_rows() {
    let pair = Pair::new();
    let all = rows(0..90);
    let some: Vec<_> = rows(90..150).into_iter().filter(|row| row.2 != "middle").collect();
    let first = write(&pair.file("first.csv"), &table(["radius", "area", "size"], &all));
    let second = write(&pair.file("second.csv"), &table(["size", "area", "radius"], &some));
    let mut peers = start(&pair, &first, &second, &["--evaluate-every", "2"]);
    assert!(peers[1].wait_for("task_of")["peer"].as_str().unwrap().starts_with("12D3"));
    for peer in &mut peers {
        assert_eq!(peer.wait_for("done")["round"], 8);
        assert_eq!(peer.exit_code(), Some(0));
    }
    // The first peer reports that the numbers are its own.
    let said = fs::read_to_string(pair.home(0).join("events.jsonl")).unwrap();
    assert!(said.contains(r#""event":"own_card","columns":2,"classes":3"#), "{said}");
    let models = [0, 1].map(|node| pair.home(node).join("model.safetensors"));
    let files = models.each_ref().map(|path| ModelFile::read(path));
    for key in ["classes", "columns", "scaling", "shape"] {
        assert_eq!(files[0].said(key), files[1].said(key), "{key}");
    }
    assert_eq!(files[0].said("classes"), serde_json::json!(["large", "middle", "small"]));
    assert_eq!(files[0].said("columns"), serde_json::json!(["radius", "area"]));
    // The means are those of the first peer's data alone.
    let mean = files[0].said("scaling")["columns"]["means"][0].as_f64().unwrap();
    assert!((mean - all.iter().map(|row| row.0).sum::<f64>() / 90.0).abs() < 1.0, "{mean}");

    for (model, file) in models.iter().zip(&files) {
        for (data, samples) in [(&first, &all), (&second, &some)] {
            let right = |(radius, area, class): &&(f64, f64, &str)| {
                file.classify(&file.scale(&[("radius", *radius), ("area", *area)].into())) == *class
            };
            let by_hand = samples.iter().filter(right).count();
            let (by_eval, of) = judged(model, data);
            assert_eq!((by_hand, samples.len()), (by_eval.round() as usize, of as usize), "{data}");
        }
    }
}

#[test]
fn a_digits_model_predicts_raw_pixels_by_its_own_words() {
    let pair = Pair::new();
    for mut peer in pair.start(&["--model", "softmax", "--rounds", "300"]) {
        assert_eq!(peer.wait_for("done")["round"], 300);
    }
    let path = pair.home(0).join("model.safetensors");
    let file = ModelFile::read(&path);
    let scaling = &file.said("scaling")["pixels"];
    let number = |name: &str| scaling[name].as_f64().unwrap() as f32;
    assert_eq!((number("scale"), number("offset")), (1.0 / 16.0, -0.3));
    // The first of the digits, as published: a zero.
    let zero = [
        [0, 0, 5, 13, 9, 1, 0, 0],
        [0, 0, 13, 15, 10, 15, 5, 0],
        [0, 3, 15, 2, 0, 11, 8, 0],
        [0, 4, 12, 0, 0, 8, 8, 0],
        [0, 5, 8, 0, 0, 9, 8, 0],
        [0, 4, 11, 0, 1, 12, 7, 0],
        [0, 2, 14, 5, 10, 12, 0, 0],
        [0, 0, 6, 13, 10, 0, 0, 0],
    ];
    let features: Vec<f32> =
        zero.iter().flatten().map(|pixel: &u8| f32::from(*pixel) * number("scale") + number("offset")).collect();
    assert_eq!(file.classify(&features), "0");
}

#[test]
fn a_file_with_another_column_or_class_is_refused_by_name_and_the_others_wait_on() {
    let pair = Pair::new();
    let first = write(&pair.file("first.csv"), &table(["radius", "area", "size"], &rows(0..60)));
    let other = write(&pair.file("other.csv"), &table(["radius", "weight", "size"], &rows(0..60)));
    let [mut waits, mut refused] = start(&pair, &first, &other, &[]);
    let end = refused.wait_for("done");
    assert!(end["error"]["message"].as_str().unwrap().contains("column 2 is `weight` here and `area` there"), "{end}");
    assert_eq!(refused.exit_code(), Some(6));
    let foreign: Vec<_> = rows(0..60).into_iter().map(|row| (row.0, row.1, "huge")).collect();
    let foreign = write(&pair.file("foreign.csv"), &table(["radius", "area", "size"], &foreign));
    let address = running_address(&pair.home(0));
    let again =
        ["run", "--home", text(&pair.home(1)), "--bootstrap", &address, "--data", &foreign, "--listen", LOOPBACK]
            .map(str::to_owned);
    let again: Vec<&str> = again.iter().map(String::as_str).collect();
    assert_fails(&run(&again), 6, &["the class `huge`", "`large`, `middle`, `small`"]);
    // No mass was mixed, and the waiting peer is unharmed.
    let right = write(&pair.file("right.csv"), &table(["area", "radius", "size"], &rows(60..100)));
    let home = pair.home(1);
    let mut right = RunningPeer::start(&["--home", text(&home), "--bootstrap", &address, "--data", &right]);
    for peer in [&mut waits, &mut right] {
        assert_eq!(peer.wait_for("done")["round"], 8);
    }
}

const LOOPBACK: &str = "/ip4/127.0.0.1/tcp/0";

/// The address on which the peer in this home listens.
fn running_address(home: &Path) -> String {
    let addresses: Vec<String> =
        serde_json::from_str(&fs::read_to_string(home.join("addresses.json")).unwrap()).unwrap();
    addresses[0].clone()
}

#[test]
fn peers_that_all_have_the_plan_agree_by_a_card_that_one_of_them_wrote() {
    let pair = Pair::new();
    let data = [0, 1].map(|node| {
        let part = rows(node * 50..node * 50 + 50);
        write(&pair.file(&format!("{node}.csv")), &table(["radius", "area", "size"], &part))
    });
    let card = pair.file("card.json");
    let written = run(&["data", "card", "--data", &data[0], "-o", text(&card)]);
    assert!(written.status.success() && stdout(&written).contains("2 columns and 3 classes"), "{}", stderr(&written));
    let plan = pair.plan();
    let homes = [pair.home(0), pair.home(1)];
    let begin = |node: usize, bootstrap: &[&str]| {
        let arguments =
            ["--home", text(&homes[node]), "--plan", text(&plan), "--card", text(&card), "--data", &data[node]];
        RunningPeer::start(&[&SHORT[..], &arguments, bootstrap].concat())
    };
    let mut first = begin(0, &[]);
    let address = first.address();
    let mut second = begin(1, &["--bootstrap", &address]);
    for peer in [&mut first, &mut second] {
        assert_eq!(peer.wait_for("done")["round"], 8);
    }
    let cards = homes.each_ref().map(|home| fs::read_to_string(home.join("task.json")).unwrap());
    assert_eq!(cards[0], cards[1]);
}

/// The contents of all files in a home, by path.
fn snapshot(home: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![home.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(found.insert(path.clone(), fs::read(&path).unwrap_or_default())),
            }
        }
    }
    found
}

#[test]
fn a_finished_peer_has_nothing_to_hand_over_and_loses_nothing() {
    let pair = Pair::new();
    pair.train();
    let home = pair.home(0);
    let before = snapshot(&home);
    let left = run(&["leave", "--home", text(&home)]);
    assert!(left.status.success(), "{}", stderr(&left));
    assert!(stdout(&left).contains("this run is over, after 8 rounds: nothing to hand over"), "{}", stdout(&left));
    assert_eq!(snapshot(&home), before);
    let left = run(&["leave", "--home", text(&home), "--json"]);
    let said: Value = serde_json::from_str(&stdout(&left)).unwrap();
    assert!(said["round"] == 8 && said["weight_units"] == 0, "{said}");
    assert_fails(&run(&["leave", "--home", text(&pair.file("nowhere"))]), 4, &["no peer"]);
    assert!(!pair.file("nowhere").exists());
}

#[test]
fn a_home_goes_on_with_the_options_of_its_last_run_and_needs_fresh_for_another_task() {
    let pair = Pair::new();
    pair.train();
    let home = pair.home(0);
    let before = snapshot(&home);
    let kept = ["model.safetensors", "summary.json", "task.json", "options.json"].map(|name| home.join(name));
    // The same command again, without a flag: that run is over.
    let again = run(&["run", "--home", text(&home), "--listen", LOOPBACK]);
    assert!(
        again.status.success() && stderr(&again).contains("this run ended before, after 8 rounds"),
        "{}",
        stderr(&again)
    );
    let other = run(&["run", "--home", text(&home), "--model", "mlp", "--listen", LOOPBACK]);
    assert_fails(&other, 6, &["the model is mlp", "softmax", "--fresh"]);
    let after = snapshot(&home);
    for path in kept.iter().filter(|path| !path.ends_with("options.json")) {
        assert_eq!(after[path], before[path], "{}", path.display());
    }
    let shown = run(&["config", "show", "--origin", "--home", text(&home)]);
    assert!(stdout(&shown).contains("the last run"), "{}", stdout(&shown));
}

#[test]
fn a_fresh_run_that_is_stopped_before_its_first_round_leaves_the_model_that_was_trained() {
    let pair = Pair::new();
    pair.train();
    let (home, plan) = (pair.home(1), pair.plan());
    let files = || ["model.safetensors", "summary.json"].map(|name| std::fs::read(home.join(name)).unwrap());
    let before = files();
    let mut fresh = RunningPeer::start(&["--home", text(&home), "--plan", text(&plan), "--fresh", "--rounds", "12"]);
    fresh.wait_for("waiting");
    fresh.signal("TERM");
    fresh.wait_for_warning("no round is done");
    assert_eq!(fresh.wait_for("done")["round"], 0);
    assert_eq!(fresh.exit_code(), Some(0));
    assert!(files() == before, "the model and the summary of the run before");
}

#[test]
fn a_run_that_is_over_goes_on_with_more_rounds_from_where_it_ended() {
    let pair = Pair::new();
    pair.train();
    let mut peers = pair.start(&["--rounds", "20"]);
    for peer in &mut peers {
        let recovered = peer.wait_for("recovered");
        assert_eq!(recovered["round"], 8, "{recovered}");
        assert_eq!(peer.wait_through_rounds_for("done")["round"], 20);
        assert_eq!(peer.exit_code(), Some(0));
    }
    audit(&pair.homes());
}

#[test]
fn a_killed_peer_goes_on_and_leaves_with_what_it_was_run_with() {
    let pair = Pair::new();
    pair.train_and_kill();
    let homes = [pair.home(0), pair.home(1)];
    let mut first = RunningPeer::start(&["--home", text(&homes[0])]);
    let address = first.address();
    // Without options of model and rounds: the records are of the same task.
    assert_eq!(first.wait_for("recovered")["event"], "recovered");
    let mut second = RunningPeer::leave(&["--home", text(&homes[1]), "--bootstrap", &address]);
    assert_eq!(second.wait_for("left")["event"], "left");
    assert_eq!(second.wait_for("done")["weight_units"], 0);
    assert_eq!(second.exit_code(), Some(0));
}

/// A swarm that plans itself, and a ticket for it.
fn founded(folder: &Path, more: &[&str]) -> (RunningPeer, String) {
    let home = folder.join("founder");
    let founded = run(&["init", "--home", text(&home), "--swarm", "ward7"]);
    assert!(founded.status.success(), "{}", stderr(&founded));
    let mut operator =
        RunningPeer::start(&[&["--home", text(&home), "--planning", "auto", "--local-steps", "1"], more].concat());
    operator.address();
    let ticket = run(&["invite", "--home", text(&home), "--uses", "3"]);
    assert!(ticket.status.success(), "{}", stderr(&ticket));
    (operator, stdout(&ticket).trim().to_owned())
}

#[test]
fn who_does_not_fit_is_refused_at_the_door_and_who_brings_only_data_is_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let founder = write(&folder.path().join("founder.csv"), &table(["radius", "area", "size"], &rows(0..80)));
    let (mut operator, ticket) =
        founded(folder.path(), &[&SHORT[..], &["--batch-size", "8", "--data", &founder, "--wait", "sync"]].concat());
    let home = folder.path().join("a/newcomer");
    let data = write(&folder.path().join("own.csv"), &table(["size", "area", "radius"], &rows(80..140)));
    let other = write(&folder.path().join("other.csv"), &table(["size", "area", "height"], &rows(80..140)));
    let join = |more: &[&str]| run(&[&["join", &ticket, "--home", text(&home), "--listen", LOOPBACK], more].concat());
    for (flags, words) in [
        (&["--data", &data, "--rounds", "9"][..], "--rounds 9 contradicts the task of the swarm, which has 8"),
        (&["--data", &data, "--batch-size", "64"], "--batch-size 64 contradicts the task of the swarm, which has 8"),
        (&["--data", &data, "--model", "mlp"], "--model mlp contradicts the task of the swarm, which has softmax"),
        (&["--data", &other], "column `height`"),
        (&[], "digits does not fit the task"),
    ] {
        assert_fails(&join(flags), 6, &[words]);
        assert!(!home.exists() && !folder.path().join("a").exists(), "nothing is left of {flags:?}");
    }
    let mut newcomer = RunningPeer::join(&ticket, &["--home", text(&home), "--data", &data, "--wait", "sync"]);
    newcomer.wait_for("admitted");
    for peer in [&mut operator, &mut newcomer] {
        assert_eq!(peer.wait_for("done")["round"], 8);
        assert_eq!(peer.exit_code(), Some(0));
    }
}

#[test]
fn a_failed_start_leaves_no_key_and_no_home() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("a/home");
    let fails = |arguments: &[&str], code: i32, words: &[&str]| {
        assert_fails(&run(&[arguments, &["--home", text(&home)]].concat()), code, words);
        assert!(!folder.path().join("a").exists(), "{arguments:?}");
    };
    fails(&["init", "--swarm", ""], 4, &["name of a swarm"]);
    fails(&["run"], 4, &["no key", "mingle join TICKET", "mingle init"]);
    fails(&["run", "--plan", "nowhere.json"], 4, &["no key"]);
    fails(&["join", "mingle1abc"], 4, &["not a ticket"]);
    // A home that existed before is unchanged.
    let peer = run(&["init", "--home", text(&home)]);
    assert!(peer.status.success());
    let before = snapshot(&home);
    let founder = tempfile::tempdir().unwrap();
    let (_operator, ticket) = founded(founder.path(), &SHORT);
    let refused = run(&["join", &ticket, "--home", text(&home), "--rounds", "9", "--listen", LOOPBACK]);
    assert_fails(&refused, 6, &["--rounds 9"]);
    assert!(!home.join("swarm.json").exists(), "bound to a swarm that refused it");
    assert!(before.iter().all(|(path, bytes)| snapshot(&home).get(path) == Some(bytes)));
}

#[test]
fn numbers_that_mean_nothing_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let huge = u64::MAX.to_string();
    for (option, value) in [
        ("--batch-size", huge.as_str()),
        ("--batch-size", "0"),
        ("--deadline", "0s"),
        ("--deadline", "2h"),
        ("--join-timeout", "8days"),
        ("--bootstrap-timeout", "0s"),
        ("--bootstrap-timeout", "8days"),
        ("--time-box", "0s"),
        ("--shutdown-timeout", "2h"),
        ("--evict-after", "1m"),
        ("--rounds", &huge),
        ("--evaluate-every", "0"),
        ("--wait", "bounded:18446744073709551615"),
    ] {
        let output = run(&["run", "--home", text(&home), option, value]);
        assert_fails(&output, 4, &[&format!("{option} {value}")]);
        assert!(!home.exists());
    }
    let out = folder.path().join("demo");
    for (option, value) in [("--batch-size", huge.as_str()), ("--local-steps", "0"), ("--rounds", &huge)] {
        assert_fails(&run(&["demo", "-o", text(&out), option, value]), 4, &[&format!("{option} {value}")]);
        assert!(!out.exists());
    }
    let simulate = ["simulate", "--topology", "ring:n=4"];
    for (option, value) in [("--batch-size", huge.as_str()), ("--local-steps", "4294967295"), ("--max-slots", "0")] {
        assert_fails(&run(&[&simulate[..], &[option, value]].concat()), 4, &[&format!("{option} {value}")]);
    }
}

#[test]
fn a_training_that_diverges_ends_with_a_sentence_and_an_exit_code() {
    let pair = Pair::new();
    let mut peers = pair.start(&["--model", "mlp", "--rounds", "40", "--learning-rate", "1e30"]);
    let end = peers[0].wait_for("done");
    assert_eq!(end["error"]["code"], 7, "{end}");
    assert!(end["error"]["message"].as_str().unwrap().contains("training has diverged"), "{end}");
    assert_eq!(peers[0].exit_code(), Some(7));
    let folder = tempfile::tempdir().unwrap();
    let demo = mingle()
        .args(["demo", "--peers", "3", "--rounds", "30", "--learning-rate", "1e30", "-o", "demo"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_fails(&demo, 7, &["training has diverged"]);
}

#[test]
fn models_are_judged_by_as_many_held_out_samples_as_were_asked_for() {
    let pair = Pair::new();
    let mut peers = pair.start(&[&SHORT[..], &["--evaluate-samples", "50"]].concat());
    for peer in &mut peers {
        assert_eq!(peer.wait_for("task")["test_samples"], 50);
        let accuracy = peer.wait_for("done")["metrics"]["accuracy"].as_f64().unwrap();
        assert!((accuracy * 50.0 - (accuracy * 50.0).round()).abs() < 1e-9, "{accuracy} is no share of 50");
    }
    let none = run(&["run", "--home", text(&pair.home(0)), "--evaluate-samples", "0"]);
    assert_fails(&none, 2, &["--evaluate-samples"]);
}
