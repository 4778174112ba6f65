//! `config.toml`: the settings that a peer takes from it, those that override it, and the errors about its faults.

use std::fs;

use crate::support::pair::Pair;
use crate::support::{RunningPeer, assert_fails, mingle, run, stderr, stdout, text};
use serde_json::Value;

#[test]
fn init_writes_a_file_that_explains_itself_and_never_replaces_one() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let first = run(&["init", "--home", text(&home)]);
    assert!(first.status.success() && stderr(&first).contains("wrote the settings"), "{}", stderr(&first));
    let file = home.join("config.toml");
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.contains("# rounds = 20000\n"), "{written}");
    assert!(run(&["config", "check", text(&file)]).status.success());

    fs::write(&file, "rounds = 3\n").unwrap();
    let second = run(&["init", "--home", text(&home)]);
    assert!(second.status.success() && stderr(&second).contains("kept the settings"), "{}", stderr(&second));
    assert_eq!(fs::read_to_string(&file).unwrap(), "rounds = 3\n");
}

#[test]
fn a_peer_runs_as_its_file_says_and_flags_win() {
    let pair = Pair::new();
    let plan = format!("plan = {:?}\n", pair.plan());
    let settings = "listen = [\"/ip4/127.0.0.1/tcp/0\"]\nmodel = \"softmax\"\nrounds = 5\nsplit = \"iid\"\n";
    for node in 0..2 {
        fs::write(pair.home(node).join("config.toml"), format!("{settings}{plan}")).unwrap();
    }
    let homes = [pair.home(0), pair.home(1)];
    let mut first = RunningPeer::start_listening(&["--home", text(&homes[0]), "--rounds", "6"]);
    let address = first.address();
    assert!(address.starts_with("/ip4/127.0.0.1/tcp/"), "{address}");
    let more = ["--home", text(&homes[1]), "--rounds", "6", "--bootstrap", &address];
    let mut second = RunningPeer::start_listening(&more);
    let task = second.wait_for("task");
    let description = task["description"].as_str().unwrap();
    assert!(description.starts_with("softmax ") && description.contains(" 6 rounds"), "{task}");
    for peer in [&mut first, &mut second] {
        assert_eq!(peer.wait_for("done")["round"], 6);
    }
}

#[test]
fn options_of_a_start_that_is_refused_decide_no_later_one() {
    let [pair, other] = [Pair::new(), Pair::new()];
    let home = pair.home(0);
    let refuse = || {
        let plan = other.plan();
        let command = ["run", "--home", text(&home), "--plan", text(&plan), "--rounds", "7", "--learning-rate", "9"];
        assert_fails(&run(&command), 6, &["plan"]);
    };
    let remembered = || ["options.json", "task.json"].map(|name| fs::read_to_string(home.join(name)).ok());
    refuse();
    assert_eq!(remembered(), [None, None]);
    let mut peers = pair.start(&["--model", "softmax", "--rounds", "8"]);
    for peer in &mut peers {
        peer.wait_through_rounds_for("done");
        assert_eq!(peer.exit_code(), Some(0));
    }
    let before = remembered();
    assert!(before.iter().all(Option::is_some), "{before:?}");
    refuse();
    assert_eq!(remembered(), before);
}

#[test]
fn a_home_that_took_part_in_a_problem_and_options_about_sums_are_refused_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    for option in [&["--least-members", "5"][..], &["--plain-sums"]] {
        let refused = run(&[&["run", "--home", text(&home)], option].concat());
        assert_fails(&refused, 4, &[&format!("{} is for --problem FILE", option[0])]);
    }
    assert!(run(&["init", "--home", text(&home)]).status.success());
    fs::create_dir(home.join("rounds")).unwrap();
    fs::write(home.join("rounds/3.state"), "of a problem").unwrap();
    let refused = run(&["run", "--home", text(&home), "--model", "softmax"]);
    assert_fails(&refused, 4, &["has taken part in a problem", "--problem FILE", "--fresh"]);
    assert!(home.join("rounds/3.state").exists());
}

#[test]
fn a_short_eviction_of_a_problem_is_an_option_like_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "evict_after = \"20s\"\n").unwrap();
    let checked = run(&["config", "check", text(&file)]);
    assert!(checked.status.success(), "{}", stderr(&checked));
    fs::write(&file, "evict_after = \"2s\"\n").unwrap();
    assert_fails(&run(&["config", "check", text(&file)]), 4, &["evict-after 2s"]);
}

#[test]
fn what_is_in_force_says_where_it_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "rounds = 7\nmodel = \"softmax\"\n").unwrap();
    let output = mingle()
        .args(["config", "show", "--json", "--home", text(folder.path())])
        .env("MINGLE_MODEL", "cnn")
        .env("MINGLE_BOOTSTRAP", "/ip4/10.0.0.1/tcp/1,/ip4/10.0.0.2/tcp/1")
        .output()
        .unwrap();
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let settings = &shown["settings"];
    assert_eq!(settings["rounds"], serde_json::json!({ "value": 7, "origin": "file", "line": 1 }));
    let model = serde_json::json!({ "value": "cnn", "origin": "environment", "variable": "MINGLE_MODEL" });
    assert_eq!(settings["model"], model);
    assert_eq!(settings["bootstrap"]["value"].as_array().unwrap().len(), 2);
    assert_eq!(settings["learning_rate"], serde_json::json!({ "value": 0.1, "origin": "default" }));
    assert_eq!(settings["split"], serde_json::json!({ "value": null, "origin": "default" }));

    let output = run(&["config", "show", "--origin", "--home", text(folder.path())]);
    let shown = stdout(&output);
    let line = shown.lines().find(|line| line.starts_with("rounds = 7 ")).unwrap();
    assert!(line.ends_with("config.toml:1"), "{shown}");
}

#[test]
fn what_config_show_prints_is_a_configuration_file() {
    let folder = tempfile::tempdir().unwrap();
    let shown = run(&["config", "show", "--home", text(folder.path())]);
    let file = folder.path().join("config.toml");
    fs::write(&file, stdout(&shown)).unwrap();
    let checked = run(&["config", "check", text(&file)]);
    assert!(checked.status.success(), "{}", stderr(&checked));
    assert_eq!(stdout(&run(&["config", "show", "--home", text(folder.path())])), stdout(&shown));
}

#[test]
fn every_fault_is_named_with_its_line_before_anything_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "round = 7\nmodel = \"resnet\"\nrounds = \"all\"\n").unwrap();
    let words = ["config.toml:1: ", "nearest is `rounds`", "config.toml:2: ", "config.toml:3: ", "a whole number"];
    assert_fails(&run(&["config", "check", text(&file)]), 4, &words);
    assert_fails(&run(&["run", "--home", text(folder.path())]), 4, &words);
    assert!(!folder.path().join("identity.key").exists());
    let json = run(&["run", "--json", "--home", text(folder.path())]);
    let object: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(object["error"]["code"], 4, "{object}");
    assert_fails(&run(&["run", "--config", "no-such-file.toml"]), 4, &["no-such-file.toml"]);
}

#[test]
fn the_path_is_that_of_the_home_or_the_one_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let shown = stdout(&run(&["config", "path", "--home", text(folder.path())]));
    assert_eq!(shown.trim(), text(&folder.path().join("config.toml")));
    assert_eq!(stdout(&run(&["config", "path", "--config", "other.toml"])).trim(), "other.toml");
}
