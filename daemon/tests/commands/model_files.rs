//! `mingle eval`, `export` and `ckpt`: models and records that peers left behind.

use std::fs;
use std::path::Path;

use crate::support::pair::{KILLED, Pair};
use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{} {}", stdout(&output), stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// Changes one byte of a file.
fn damage(path: &Path, position: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[position] ^= 0x55;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_model_that_a_run_left_is_as_good_as_the_run_said_and_is_exported_as_it_is() {
    let pair = Pair::new();
    pair.train();
    let model = pair.home(0).join("model.safetensors");
    let summary: Value = serde_json::from_slice(&fs::read(pair.home(0).join("summary.json")).unwrap()).unwrap();
    let judged = json(&["eval", text(&model), "--json"]);
    assert_eq!(judged["accuracy"], summary["metrics"]["accuracy"]);
    assert_eq!(judged["loss"], summary["metrics"]["loss"]);
    assert_eq!(judged["model"], "softmax");
    assert!(judged["samples"].as_u64() > Some(100), "{judged}");
    let trained_on = json(&["eval", text(&model), "--json", "--on", "train"]);
    assert!(trained_on["samples"].as_u64() > judged["samples"].as_u64(), "{trained_on}");

    let exported = pair.file("out.safetensors");
    let told = json(&["export", "--json", "--home", text(&pair.home(0)), "-o", text(&exported)]);
    assert_eq!(told["round"], 8);
    assert_eq!(told["final"], true);
    assert_eq!(told["blake3"], summary["model_blake3"]);
    assert_eq!(fs::read(&exported).unwrap(), fs::read(&model).unwrap());

    let said = stdout(&run(&["eval", text(&model)]));
    assert!(said.starts_with("accuracy 0."), "{said}");
}

#[test]
fn the_model_of_a_killed_peer_comes_out_of_its_records_with_its_round() {
    let pair = Pair::new();
    pair.train_and_kill();
    let exported = pair.file("out.safetensors");
    let told = json(&["export", "--json", "--home", text(&pair.home(0)), "-o", text(&exported)]);
    assert_eq!(told["final"], false);
    assert!(told["round"].as_u64() > Some(10), "{told}");
    let judged = json(&["eval", text(&exported), "--json"]);
    // Chance is 0.1; the accuracy reached depends on when it was killed.
    assert!(judged["accuracy"].as_f64() > Some(0.3), "{judged}");
    assert_eq!(judged["metadata"]["rounds"], told["round"].to_string());

    let listed = json(&["ckpt", "list", "--json", "--home", text(&pair.home(0))]);
    let files = listed["files"].as_array().unwrap();
    let newest: Vec<&Value> = files.iter().filter(|file| file["state"] == "newest").collect();
    assert_eq!(newest.len(), 1, "{listed:#}");
    assert_eq!(newest[0]["round"], told["round"]);
    let highest = files.iter().filter_map(|file| file["record"].as_u64()).max();
    assert_eq!(newest[0]["record"].as_u64(), highest, "{listed:#}");

    let record = pair.home(0).join(newest[0]["file"].as_str().unwrap());
    let inside = json(&["ckpt", "inspect", "--json", text(&record)]);
    assert_eq!(inside["parameters"], 650);
    assert_eq!(inside["weight_units"], newest[0]["weight_units"]);
    let verified = run(&["ckpt", "verify", text(&pair.home(0)), text(&pair.home(1)), text(&record), text(&exported)]);
    assert!(verified.status.success(), "{}{}", stdout(&verified), stderr(&verified));
    assert_eq!(stdout(&verified).lines().filter(|line| line.starts_with("ok ")).count(), 4);

    // The peer itself goes on from this record.
    let mut peer = pair.start_first(&KILLED);
    let recovered = peer.wait_for("recovered");
    assert_eq!(recovered["round"], told["round"]);
    assert_eq!(recovered["record"], newest[0]["record"]);
    assert_eq!(recovered["weight_units"], newest[0]["weight_units"]);
}

#[test]
fn records_are_named_by_no_task_but_their_own() {
    let pair = Pair::new();
    pair.train_and_kill();
    let task = pair.home(0).join("task.json");
    let other = fs::read_to_string(&task).unwrap().replace("softmax", "mlp:hidden=64");
    fs::write(&task, other).unwrap();
    let out = pair.file("out.safetensors");
    let export = ["export", "--home", text(&pair.home(0)), "-o", text(&out)].map(str::to_owned);
    let export: Vec<&str> = export.iter().map(String::as_str).collect();
    assert_fails(&run(&export), 8, &["task.json is not the task of the records"]);
    fs::remove_file(&task).unwrap();
    assert_fails(&run(&export), 4, &["task.json"]);
    assert!(!out.exists());
}

#[test]
fn damage_is_found_and_told_with_exit_code_8() {
    let pair = Pair::new();
    pair.train();
    let home = pair.home(0);
    assert!(run(&["ckpt", "verify", text(&home)]).status.success());

    let model = home.join("model.safetensors");
    let length = fs::read(&model).unwrap().len();
    damage(&model, length - 3);
    assert_fails(&run(&["ckpt", "verify", text(&home)]), 8, &["1 of 2 do not hold"]);
    let told = run(&["ckpt", "verify", "--json", text(&home)]);
    assert_eq!(told.status.code(), Some(8));
    let told: Value = serde_json::from_str(&stdout(&told)).unwrap();
    assert_eq!(told["verdicts"][0]["holds"], false, "{told:#}");
    assert!(told["verdicts"][0]["fault"].as_str().unwrap().contains("summary"), "{told:#}");

    // A copy that stands alone is judged by the checksum inside, and one with other tensors by the task of the home.
    damage(&model, length - 3);
    let alone = pair.file("alone.safetensors");
    fs::copy(&model, &alone).unwrap();
    assert!(run(&["ckpt", "verify", text(&alone)]).status.success());
    let mut bytes = fs::read(&alone).unwrap();
    // Forty numbers that are finite all the same.
    for (at, byte) in bytes.iter_mut().enumerate().take(length - 160).skip(length - 200) {
        *byte = if at % 4 == 3 { 0x3f } else { byte.wrapping_mul(31).wrapping_add(17) };
    }
    fs::write(&alone, &bytes).unwrap();
    let verified = run(&["ckpt", "verify", text(&alone)]);
    assert_eq!(verified.status.code(), Some(8), "{}", stdout(&verified));
    assert!(stdout(&verified).contains("the checksum in it is another"), "{}", stdout(&verified));
    let task = home.join("task.json");
    let own = fs::read_to_string(&task).unwrap();
    fs::write(&task, own.replace("softmax", "mlp:hidden=8")).unwrap();
    assert!(stdout(&run(&["ckpt", "verify", text(&home)])).contains("no model of the task"));
    fs::write(&task, own).unwrap();

    // With the newest record damaged, the rest is listed, with a note that it is not all.
    let listed = json(&["ckpt", "list", "--json", "--home", text(&home)]);
    let files = listed["files"].as_array().unwrap();
    let newest = files.iter().find(|file| file["state"] == "newest").unwrap();
    let newest = home.join(newest["file"].as_str().unwrap());
    damage(&newest, 200);
    let verified = run(&["ckpt", "verify", text(&home)]);
    assert_eq!(verified.status.code(), Some(8), "{}", stdout(&verified));
    assert!(stdout(&verified).contains("The newest good record is"), "{}", stdout(&verified));
    damage(&newest, 200);

    let record = home.join("records/0000.record");
    damage(&record, 200);
    assert_fails(&run(&["ckpt", "verify", text(&record)]), 8, &[]);
    assert_fails(&run(&["ckpt", "inspect", text(&record)]), 8, &["0000.record"]);
    // The damage is undone: whether an export needs this record depends on how many there are.
    damage(&record, 200);
    assert!(run(&["ckpt", "verify", text(&record)]).status.success());

    for content in [&b""[..], b"garbage that is longer than a header", &[0xff; 64]] {
        fs::write(&model, content).unwrap();
        let out = pair.file("out.safetensors");
        assert_fails(&run(&["eval", text(&model)]), 8, &["model.safetensors"]);
        assert_fails(&run(&["ckpt", "inspect", text(&model)]), 8, &["model.safetensors"]);
        assert_fails(&run(&["export", "--home", text(&home), "-o", text(&out)]), 8, &["model.safetensors"]);
        assert!(!out.exists());
    }
}

#[test]
fn a_model_for_other_data_is_refused_with_what_differs() {
    let pair = Pair::new();
    pair.train();
    let model = pair.home(0).join("model.safetensors");
    let data = pair.file("other.csv");
    let rows: Vec<String> = (0..60).map(|row| format!("{},{},{}", row, row % 7, row % 3)).collect();
    fs::write(&data, format!("a,b,label\n{}\n", rows.join("\n"))).unwrap();
    let words = ["was not trained on such data", "a sample is 2 here and 1x8x8 there"];
    assert_fails(&run(&["eval", text(&model), "--data", &format!("csv:{}", text(&data))]), 4, &words);
    assert_fails(&run(&["eval", text(&model), "--model", "mlp"]), 4, &["tensor fc1.bias, which the file has not"]);
    assert_fails(&run(&["eval", "no-such-model.safetensors"]), 4, &["no-such-model.safetensors"]);
}

#[test]
fn a_home_without_a_model_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.safetensors");
    let home = text(folder.path());
    assert_fails(&run(&["export", "--home", home, "-o", text(&out)]), 4, &["neither a model nor a record"]);
    assert_fails(&run(&["ckpt", "verify", home]), 4, &["neither a model nor a record"]);
    let listed = run(&["ckpt", "list", "--home", home]);
    assert!(listed.status.success() && stdout(&listed).is_empty(), "{}", stdout(&listed));
}

#[test]
fn files_of_a_peer_that_runs_are_left_alone() {
    let pair = Pair::new();
    let _peers = pair.start(&["--model", "softmax", "--rounds", "1000000"]);
    let home = pair.home(0);
    for command in [&["ckpt", "list", "--home", text(&home)][..], &["ckpt", "verify", text(&home)]] {
        assert_fails(&run(command), 6, &["a mingle process runs in"]);
    }
}

/// Changes an entry of the metadata in a safetensors file: the entries are texts, in JSON.
fn rewrite_metadata(from: &Path, to: &Path, key: &str, value: Option<&str>) {
    let bytes = fs::read(from).unwrap();
    let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
    let (header, tensors) = rest.split_at(usize::try_from(u64::from_le_bytes(*length)).unwrap());
    let mut header: Value = serde_json::from_slice(header).unwrap();
    let metadata = header["__metadata__"].as_object_mut().unwrap();
    match value {
        Some(value) => drop(metadata.insert(key.to_owned(), value.into())),
        None => drop(metadata.remove(key)),
    }
    let mut header = serde_json::to_vec(&header).unwrap();
    header.resize(header.len().next_multiple_of(8), b' ');
    let length = (header.len() as u64).to_le_bytes();
    fs::write(to, [&length[..], &header, tensors].concat()).unwrap();
}

#[test]
fn a_model_whose_class_names_are_spoilt_is_judged_and_used_by_nobody() {
    let pair = Pair::new();
    pair.train();
    let (model, spoilt) = (pair.home(0).join("model.safetensors"), pair.file("spoilt.safetensors"));
    let ten = r#"["0","1","2","3","4","5","6","7","8","9"]"#;
    for value in [
        Some(r#"["0","1","#),
        Some(r#"["0","0","2","3","4","5","6","7","8","9"]"#),
        Some("[0,1,2,3,4,5,6,7,8,9]"),
        Some(r#"["0","1","2","3","4","5","6","7","8"]"#),
        Some(r#"["1","0","2","3","4","5","6","7","8","9"]"#),
        None,
    ] {
        rewrite_metadata(&model, &spoilt, "classes", value);
        assert_fails(&run(&["eval", text(&spoilt)]), 8, &["spoilt.safetensors"]);
        let verified = run(&["ckpt", "verify", text(&spoilt)]);
        assert_eq!(verified.status.code(), Some(8), "{value:?} {}", stdout(&verified));
    }
    rewrite_metadata(&model, &spoilt, "classes", Some("no list"));
    assert_fails(&run(&["predict", text(&spoilt), "--data", "digits"]), 8, &["spoilt.safetensors", "checksum"]);
    rewrite_metadata(&model, &spoilt, "classes", Some(ten));
    assert!(run(&["eval", text(&spoilt)]).status.success());
}

#[cfg(unix)]
#[test]
fn what_is_no_file_and_a_slot_without_bytes_are_never_found_to_hold() {
    let pair = Pair::new();
    pair.train();
    let pipe = pair.file("pipe.safetensors");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for command in [&["ckpt", "verify"][..], &["ckpt", "inspect"], &["eval"]] {
        assert_fails(&run(&[command, &[text(&pipe)]].concat()), 4, &["pipe.safetensors", "and no file"]);
    }
    let records = pair.home(0).join("records");
    let files = fs::read_dir(&records).unwrap().map(|entry| entry.unwrap().path());
    let slot = files.filter(|path| path.extension().is_some_and(|extension| extension == "record")).max().unwrap();
    fs::write(&slot, "").unwrap();
    let verified = run(&["ckpt", "verify", text(&pair.home(0))]);
    assert_eq!(verified.status.code(), Some(8), "{}", stdout(&verified));
    fs::remove_file(&slot).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&slot).status().unwrap().success());
    assert_eq!(run(&["ckpt", "verify", text(&pair.home(0))]).status.code(), Some(8));
}
