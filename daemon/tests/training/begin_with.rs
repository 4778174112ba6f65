//! `mingle run --begin-with FILE`: runs that begin with a given model.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::pair::Pair;
use crate::support::{assert_fails, read_json, run, stderr, text};

const MODEL: [&str; 4] = ["--model", "softmax", "--evaluate-every", "1"];

/// A model that was trained on the digits for a while.
fn trained(folder: &Path) -> PathBuf {
    let pair = Pair::new();
    let mut peers = pair.start(&[&MODEL[..], &["--rounds", "200"]].concat());
    for peer in &mut peers {
        assert_eq!(peer.wait_through_rounds_for("done")["round"], 200);
    }
    let path = folder.join("begin.safetensors");
    fs::copy(pair.home(0).join("model.safetensors"), &path).unwrap();
    path
}

/// The accuracy of a model file on the digits.
fn accuracy(path: &Path) -> f64 {
    let output = run(&["eval", text(path), "--data", "digits", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["accuracy"].as_f64().unwrap()
}

/// Options for a run in which nothing is learned.
fn slow() -> Vec<&'static str> {
    [&MODEL[..], &["--learning-rate", "0.000000001", "--rounds", "2"]].concat()
}

/// Runs a pair whose first peer has `options` too; both have to end with the accuracy that the model had at the beginning.
fn both_begin_with_accuracy(reached: f64, pair: &Pair, options: &[&str]) {
    let slow = slow();
    let mut first = pair.start_first(&[&slow[..], options].concat());
    let (home, address) = (pair.home(1), first.address());
    let arguments = [&["--home", text(&home), "--bootstrap", &address][..], &slow].concat();
    let mut second = crate::support::RunningPeer::start(&arguments);
    for peer in [&mut first, &mut second] {
        assert_eq!(peer.wait_through_rounds_for("done")["round"], 2);
        assert_eq!(peer.exit_code(), Some(0));
    }
    for home in pair.homes() {
        let summary = read_json(&home.join("summary.json"));
        let ended = summary["metrics"]["accuracy"].as_f64().unwrap();
        assert!((ended - reached).abs() < 0.005, "{ended} after {reached}");
        assert!(summary["task"].as_str().unwrap().contains("from the model blake3:"), "{summary}");
    }
}

#[test]
fn a_swarm_begins_with_the_file_of_its_founder_also_where_others_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = trained(folder.path());
    let reached = accuracy(&file);
    assert!(reached > 0.8, "{reached}");
    let pair = Pair::new();
    both_begin_with_accuracy(reached, &pair, &["--begin-with", text(&file)]);
    goes_on_or_is_refused(&pair, &file, &slow());
}

#[test]
fn a_home_that_was_made_from_a_model_begins_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = trained(folder.path());
    let (rubbish, fresh) = (folder.path().join("rubbish.safetensors"), folder.path().join("home"));
    fs::write(&rubbish, "no model").unwrap();
    let refused = run(&["init", "--home", text(&fresh), "--from", text(&rubbish)]);
    assert_fails(&refused, 8, &["rubbish.safetensors is no model file"]);
    assert!(!fresh.exists(), "nothing is left of a refused init");

    let pair = Pair::new();
    let home = pair.home(0);
    let init = || run(&["init", "--home", text(&home), "--from", text(&file)]);
    assert!(stderr(&init()).contains("a run here begins with it"));
    both_begin_with_accuracy(accuracy(&file), &pair, &[]);
    // The beginning of a run stays.
    assert_fails(&init(), 6, &["a run has begun", "--fresh --begin-with FILE"]);
    let again = run(&[&["run", "--home", text(&home), "--plan", text(&pair.plan())][..], &slow()].concat());
    assert!(again.status.success(), "{}", stderr(&again));
}

/// The same file goes on with the run that began with it; another file is refused, and so is the file in a home with the
/// work of another run.
fn goes_on_or_is_refused(pair: &Pair, file: &Path, slow: &[&str]) {
    let (home, plan) = (pair.home(0), pair.plan());
    let start = ["run", "--home", text(&home), "--plan", text(&plan), "--listen", "/ip4/127.0.0.1/tcp/0"];
    let again = run(&[&start[..], slow, &["--begin-with", text(file)]].concat());
    assert!(again.status.success() && stderr(&again).contains("this run ended before"), "{}", stderr(&again));
    let other = pair.file("other.safetensors");
    let mut bytes = fs::read(file).unwrap();
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&0.5_f32.to_le_bytes());
    fs::write(&other, bytes).unwrap();
    let refused = run(&[&start[..], slow, &["--begin-with", text(&other)]].concat());
    assert_fails(&refused, 6, &["holds the work of another run", "--begin-with", "--fresh"]);
}

#[test]
fn a_file_that_cannot_be_begun_with_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = trained(folder.path());
    let pair = Pair::new();
    let (home, plan, bad) = (pair.home(0), pair.plan(), pair.file("bad.safetensors"));
    let start = ["run", "--home", text(&home), "--plan", text(&plan), "--listen", "/ip4/127.0.0.1/tcp/0"];
    let refused = |file: &Path, more: &[&str], code: i32, words: &[&str]| {
        assert_fails(&run(&[&start[..], &["--begin-with", text(file)], more].concat()), code, words);
    };
    refused(&file, &["--model", "mlp"], 4, &["no model of this task", "fc1"]);
    refused(&pair.file("missing"), &["--model", "softmax"], 4, &["missing"]);
    let sound = fs::read(&file).unwrap();
    let mut not_finite = sound.clone();
    let last = sound.len() - 4;
    not_finite[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&bad, not_finite).unwrap();
    refused(&bad, &["--model", "softmax"], 8, &["numbers of tensor linear.", "not finite"]);
    let half = String::from_utf8_lossy(&sound).contains("\"F32\"");
    assert!(half, "the header names the type");
    // A type of as many bytes.
    let position = sound.windows(5).position(|bytes| bytes == b"\"F32\"").unwrap();
    let mut other_type = sound.clone();
    other_type[position..position + 5].copy_from_slice(b"\"I32\"");
    fs::write(&bad, other_type).unwrap();
    refused(&bad, &["--model", "softmax"], 4, &["holds I32 in the file"]);
    fs::write(&bad, &sound[..sound.len() / 2]).unwrap();
    refused(&bad, &["--model", "softmax"], 8, &["no model file, or a damaged one"]);
    refused(&file, &["--continue"], 2, &["--begin-with", "--continue"]);
    assert!(!home.join("records").exists(), "nothing was begun");
    // A home with the work of another run.
    pair.train();
    refused(&file, &["--model", "softmax", "--rounds", "8"], 6, &["holds the work of another run", "--begin-with"]);
}

#[test]
fn a_peer_whose_swarm_did_not_begin_with_its_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = trained(folder.path());
    let pair = Pair::new();
    let mut first = pair.start_first(&[&MODEL[..], &["--rounds", "1000000"]].concat());
    let (home, address) = (pair.home(1), first.address());
    let start = ["run", "--home", text(&home), "--bootstrap", &address, "--listen", "/ip4/127.0.0.1/tcp/0"];
    let refused = run(&[&start[..], &MODEL, &["--begin-with", text(&file)]].concat());
    assert_fails(&refused, 6, &["--begin-with", "the model of its seed"]);
}

#[cfg(unix)]
mod trainers {
    use super::*;
    use crate::support::trainer::{Trainer, bytes};

    #[test]
    fn a_file_of_another_program_is_refused_before_a_trainer_comes() {
        let pair = Pair::new();
        let (home, plan, file) = (pair.home(0), pair.plan(), pair.file("model.pt"));
        let start = ["run", "--home", text(&home), "--plan", text(&plan), "--listen", "/ip4/127.0.0.1/tcp/0"];
        let start = [&start[..], &["--trainer", "attach", "--begin-with", text(&file)]].concat();
        assert_fails(&run(&start), 4, &["model.pt", "No such file"]);
        fs::write(&file, b"PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0").unwrap();
        assert_fails(&run(&start), 4, &["as torch.save of PyTorch writes it", "safetensors"]);
        write(&file, &[("x", f32::INFINITY), ("y", 1.0)]);
        assert_fails(&run(&start), 8, &["1 numbers of tensor x are not finite"]);
    }

    /// Writes a model of the trainers of the tests.
    fn write(path: &Path, tensors: &[(&str, f32)]) {
        let entry = |(index, (name, _)): (usize, &(&str, f32))| {
            let offsets = [4 * index, 4 * index + 4];
            (name.to_string(), serde_json::json!({ "dtype": "F32", "shape": [1], "data_offsets": offsets }))
        };
        let header: serde_json::Map<_, _> = tensors.iter().enumerate().map(entry).collect();
        let mut header = serde_json::to_vec(&header).unwrap();
        header.resize(header.len().next_multiple_of(8), b' ');
        let values: Vec<f32> = tensors.iter().map(|(_, value)| *value).collect();
        fs::write(path, [&(header.len() as u64).to_le_bytes(), &header[..], &bytes(&values)].concat()).unwrap();
    }

    #[test]
    fn the_trainers_of_a_swarm_begin_with_the_file_of_its_founder() {
        let pair = Pair::new();
        let (file, other) = (pair.file("model.safetensors"), pair.file("other.safetensors"));
        write(&file, &[("x", 7.0), ("y", -3.0)]);
        write(&other, &[("x", 1.0), ("y", 1.0)]);
        let options = ["--trainer", "attach", "--rounds", "1000000"];
        let mut first = pair.start_first(&[&options[..], &["--begin-with", text(&file)]].concat());
        let (home, address) = (pair.home(1), first.address());
        let arguments = ["--home", text(&home), "--bootstrap", &address, "--begin-with", text(&other)];
        let mut second = crate::support::RunningPeer::start(&[&arguments[..], &options].concat());
        let mut trainers = pair.homes().map(|home| Trainer::new(&home, [1.0, 2.0]));
        trainers.iter_mut().for_each(|trainer| drop(trainer.attach()));
        for trainer in &trainers {
            assert_eq!(trainer.order().vector(), [7.0, -3.0]);
        }
        crate::support::RunningPeer::wait_for_warning_of_any(&mut [&mut second], "--begin-with is not used");
        // The run goes on with the same file, and with no other.
        trainers.iter().for_each(|trainer| drop(trainer.answer(&trainer.order())));
        first.wait_for("round");
        first.kill();
        let (home, plan) = (pair.home(0), pair.plan());
        let start = ["--home", text(&home), "--plan", text(&plan), "--begin-with"];
        let refused = run(&[&["run"], &start[..], &[text(&other), "--listen", "/ip4/127.0.0.1/tcp/0"]].concat());
        assert_fails(&refused, 6, &["did not begin with", "--fresh"]);
        let mut again = crate::support::RunningPeer::start(&[&start[..], &[text(&file)]].concat());
        assert_eq!(again.wait_for("recovered")["event"], "recovered");
    }

    #[test]
    fn a_file_that_is_no_model_of_the_trainer_is_refused_with_the_first_difference() {
        let pair = Pair::new();
        let file = pair.file("model.safetensors");
        for (tensors, words) in [
            (&[("x", 7.0), ("z", -3.0)][..], "a tensor `y`, which the file has not"),
            (&[("x", 7.0), ("y", 1.0), ("z", 1.0)], "a tensor `z`, which the model has not"),
        ] {
            write(&file, tensors);
            let mut peer = pair.start_first(&["--trainer", "attach", "--begin-with", text(&file)]);
            Trainer::new(&pair.home(0), [1.0, 2.0]).attach();
            let message = peer.wait_for("done")["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.contains(words), "`{words}` is missing in: {message}");
            assert_eq!(peer.exit_code(), Some(4));
        }
    }
}
