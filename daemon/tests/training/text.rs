//! Language models as a user trains and uses them: `--data text --model gpt:...`, then `mingle eval` and `mingle
//! generate`.

use std::fs;

use crate::support::pair::Pair;
use crate::support::{RunningPeer, assert_fails, run, stderr, stdout, text};
use serde_json::Value;

const TINY: [&str; 2] = ["--model", "gpt:layers=1,heads=2,width=32,context=32"];
const ADAMW: [&str; 4] = ["--optimizer", "adamw", "--learning-rate", "0.01"];

fn objects(arguments: &[&str]) -> Vec<Value> {
    let output = run(arguments);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(object: &Value, key: &str) -> f64 {
    object[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {object}"))
}

#[test]
fn a_simulated_swarm_learns_a_text_and_says_how_many_bits_a_character_takes() {
    let swarm = ["simulate", "--json", "--topology", "complete:n=3", "--data", "text", "--rounds", "60"];
    let more = [
        "--last-rounds",
        "train",
        "--evaluate-every",
        "20",
        "--batch-size",
        "4",
        "--schedule",
        "cosine:0.1",
        "--beta2",
        "0.99",
    ];
    let arguments = [&swarm[..], &more, &TINY, &ADAMW].concat();
    let told = objects(&arguments);
    let [first, .., last] = &told[..] else { panic!("{told:?}") };
    assert!(number(last, "bits_per_character") < number(first, "bits_per_character"), "{told:?}");
    // 58 characters are 5.86 bits; a model that knows how frequent each is takes 4.7.
    assert!(number(last, "bits_per_character") < 4.6, "{last}");
    let bits = number(last, "loss") / 2f64.ln();
    assert!((bits - number(last, "bits_per_character")).abs() < 1e-12, "{last}");
    // 60 steps of 3 nodes on 4 windows of 32 characters, of 35,917.
    assert!((number(last, "epochs") - 60.0 * 3.0 * 4.0 * 32.0 / 35_917.0).abs() < 1e-9, "{last}");
    assert_eq!(objects(&arguments)[0], told[0], "the same seed, the same bits");
}

#[test]
fn two_peers_train_on_texts_of_their_own_and_what_they_learnt_is_judged_and_printed() {
    let pair = Pair::new();
    let arguments =
        ["--data", "text", "--split", "iid", "--rounds", "40", "--evaluate-every", "20", "--batch-size", "4"];
    let mut peers = pair.start(&[&arguments[..], &TINY, &ADAMW].concat());
    for peer in &mut peers {
        assert!(peer.wait_for("done")["metrics"]["bits_per_character"].as_f64() < Some(5.0));
        assert_eq!(peer.exit_code(), Some(0));
    }
    let (home, model) = (pair.home(1), pair.home(1).join("model.safetensors"));
    let judged = objects(&["eval", "--json", text(&model), "--data", "text"]).remove(0);
    assert_eq!(judged["model"], TINY[1]);
    assert_eq!(judged["samples"], 3_990);
    assert!(number(&judged, "bits_per_character") < 5.0, "{judged}");
    assert!(stdout(&run(&["eval", text(&model), "--data", "text"])).starts_with("bits_per_character "));

    let generate = |more: &[&str]| run(&[&["generate", "--length", "60"], more].concat());
    let of_home = generate(&["--home", text(&home), "--prompt", "MENENIUS:\n", "--seed", "7"]);
    assert!(of_home.status.success(), "{}", stderr(&of_home));
    let said = stdout(&of_home);
    assert!(said.starts_with("MENENIUS:\n"), "{said}");
    assert_eq!(said.chars().count(), "MENENIUS:\n".len() + 60 + 1, "{said}");
    let of_file =
        |seed| stdout(&generate(&[text(&model), "--prompt", "MENENIUS:\n", "--seed", seed, "--temperature", "1"]));
    assert_eq!(of_file("7"), of_file("7"));
    assert_ne!(of_file("7"), of_file("8"));
    let object = objects(&["generate", "--json", "--length", "9", text(&model)]).remove(0);
    assert_eq!(object["text"].as_str().map(|text| text.chars().count()), Some(9), "{object}");

    let of_model = [text(&model)];
    let refused = |more: &[&str], words: &[&str]| assert_fails(&generate(&[&of_model[..], more].concat()), 4, words);
    refused(&["--prompt", "caf\u{e9}"], &["the character 'é' of the prompt is none of the 58"]);
    refused(&["--temperature", "0"], &["temperature must be positive"]);
    refused(&["--top-k", "0"], &["top-k is 1 or more"]);
    let predicted = run(&["predict", text(&model), "--data", "digits"]);
    assert_fails(&predicted, 4, &["is a language model", "mingle generate"]);
}

#[test]
fn an_unknown_character_of_a_joiner_is_refused_with_its_place_before_anything_is_mixed() {
    let pair = Pair::new();
    let (ana, ben) = (pair.file("ana.txt"), pair.file("ben.txt"));
    fs::write(&ana, "the quick brown fox jumps over the lazy dog\n".repeat(20)).unwrap();
    fs::write(&ben, format!("{}\nnext to a caf\u{e9}\n", "the lazy dog\n".repeat(20))).unwrap();
    let data = |path: &std::path::Path| format!("text:{}", path.display());
    let mut first = pair.start_first(&[&["--data", &data(&ana), "--rounds", "4"][..], &TINY].concat());
    let address = first.address();
    let home = pair.home(1);
    let loopback = ["--listen", "/ip4/127.0.0.1/udp/0/quic-v1"];
    let joins = |data: &str| {
        run(&[&["run", "--home", text(&home), "--bootstrap", &address, "--data", data], &loopback[..], &TINY].concat())
    };
    let place = "ben.txt, line 22, column 14: the character \u{e9} is not in the vocabulary of the task, which has 28 characters";
    assert_fails(&joins(&data(&ben)), 6, &[place, "tokens=bytes"]);
    assert_fails(&joins("text,tokens=bytes"), 6, &["text in bytes here and text in characters there"]);
    let mut second = RunningPeer::start(
        &[&["--home", text(&home), "--bootstrap", &address, "--data", &data(&ana)], &TINY[..]].concat(),
    );
    for peer in [&mut first, &mut second] {
        assert_eq!(peer.wait_for("done")["round"], 4);
        assert_eq!(peer.exit_code(), Some(0));
    }
}

#[test]
fn a_demo_on_bytes_says_how_many_bits_a_byte_takes_and_terminals_obey_no_model() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let demo = ["demo", "--json", "--peers", "3", "--data", "text,tokens=bytes", "--rounds", "12", "--no-comparison"];
    let more = ["--local-steps", "2", "--batch-size", "4", "--evaluate-every", "6", "-o", text(&root)];
    let report = objects(&[&demo[..], &more, &TINY, &ADAMW].concat()).pop().unwrap();
    assert_eq!(report["bits_per_token"]["token"], "byte", "{report}");
    assert!(number(&report["bits_per_token"], "worst") < 7.0, "256 bytes are 8 bits: {report}");
    let model = root.join("peers/2/model.safetensors");
    // Untrained bytes include controls, which are drawn when every byte is likely.
    let hot = ["--temperature", "50", "--top-k", "256", "--length", "300", "--prompt", "\u{1b}[31m"];
    let said = run(&[&["generate", text(&model)], &hot[..]].concat());
    assert!(said.status.success(), "{}", stderr(&said));
    let said = stdout(&said);
    assert!(said.starts_with(r"\u001b[31m"), "{said:?}");
    assert!(said.chars().all(|it| !it.is_control() || matches!(it, '\n' | '\t')), "{said:?}");
}

#[test]
fn models_and_data_that_do_not_go_together_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    let demo = |more: &[&str]| run(&[&["demo", "--peers", "2", "-o", text(&out)], more].concat());
    assert_fails(&demo(&["--data", "text"]), 4, &["model mlp needs numbers or images: text is for gpt"]);
    assert_fails(&demo(&["--model", "gpt"]), 4, &["needs text, such as --data text:FILE"]);
    assert_fails(&demo(&["--data", "text", "--model", "gpt:heads=3"]), 4, &["heads=3 do not divide width=128"]);
    assert_fails(&demo(&["--data", "text", "--model", "gpt", "--beta2", "0.99"]), 4, &["--beta2 0.99 does nothing"]);
    let empty = folder.path().join("empty.txt");
    fs::write(&empty, "").unwrap();
    let empty = format!("text:{}", empty.display());
    assert_fails(&demo(&["--data", &empty, "--model", "gpt"]), 4, &["empty.txt has 0 tokens"]);

    let pair = Pair::new();
    pair.train();
    let other = run(&["generate", "--home", text(&pair.home(0))]);
    assert_fails(&other, 4, &["generates no text: its model is softmax"]);
    let nothing = folder.path().join("nothing.safetensors");
    fs::write(&nothing, "no model").unwrap();
    assert_fails(&run(&["generate", text(&nothing)]), 8, &["is no model file, or a damaged one"]);
}
