//! `--codec`: fewer bytes for the same model, in every command that sends models or forecasts what is sent.

use std::fs;
use std::path::Path;

use crate::support::pair::Pair;
use crate::support::planned_swarm::PlannedSwarm;
use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

/// Runs a demo of the model that is its default and returns its final object.
fn demo(folder: &Path, more: &[&str]) -> Value {
    let start =
        ["demo", "--json", "--no-comparison", "--peers", "6", "--evaluate-every", "50", "--output", text(folder)];
    let output = run(&[&start, more].concat());
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap()
}

#[test]
fn int8_moves_less_than_three_tenths_of_the_bytes_and_loses_less_than_a_point_of_accuracy() {
    let folder = tempfile::tempdir().unwrap();
    let runs = ["f32", "int8"].map(|codec| {
        let report = demo(&folder.path().join(codec), &["--rounds", "150", "--codec", codec]);
        assert_eq!(report["audit"]["disputes"], serde_json::json!([]), "{codec}");
        assert_eq!(report["audit"]["held"].as_u64(), Some(6 << 40), "{codec}");
        assert_eq!(report["encoding"]["codec"], codec);
        report
    });
    let bytes = runs.each_ref().map(|report| report["sent_bytes"].as_f64().unwrap());
    let accuracy = runs.each_ref().map(|report| report["swarm"]["mean_accuracy"].as_f64().unwrap());
    assert!(bytes[1] < 0.3 * bytes[0], "int8 moves {bytes:?}");
    assert!(accuracy[1] > accuracy[0] - 0.01 && accuracy[0] > 0.9, "accuracies {accuracy:?}");
    // The bytes that a peer reports as saved are those that the other run sent besides, except for acknowledgements.
    let saved = runs[1]["encoding"]["saved_bytes"].as_f64().unwrap();
    assert!((bytes[1] + saved - bytes[0]).abs() < 0.02 * bytes[0], "{bytes:?}, {saved} saved");
    assert_eq!(runs[1]["encoding"]["parcels"].as_object().unwrap().keys().collect::<Vec<_>>(), ["int8"]);
}

#[test]
fn the_same_seed_gives_the_same_models_to_the_bit_with_random_rounding_too() {
    let folder = tempfile::tempdir().unwrap();
    let models = ["first", "second"].map(|name| {
        let root = folder.path().join(name);
        demo(&root, &["--rounds", "12", "--codec", "int8", "--seed", "5"]);
        let model = |node: usize| {
            let file = fs::read(root.join(format!("peers/{node}/model.safetensors"))).unwrap();
            let header = usize::try_from(u64::from_le_bytes(file[..8].try_into().unwrap())).unwrap();
            file[8 + header..].to_vec()
        };
        (0..6).map(model).collect::<Vec<_>>()
    });
    assert!(models[0] == models[1], "seed 5");
    assert!(models[0].iter().any(|model| *model != models[0][0]));
}

#[test]
fn peers_with_different_codecs_train_together_and_lose_no_weight() {
    let swarm = PlannedSwarm::new(4, 300);
    let codecs = ["f32", "bf16", "f16", "int8"];
    let mut peers: Vec<_> =
        codecs.iter().enumerate().map(|(node, codec)| swarm.start_with(node, &["--codec", codec])).collect();
    swarm.finish(&mut peers, "four codecs");
    for (node, codec) in codecs.iter().enumerate() {
        let summary = fs::read_to_string(swarm.home(node).join("summary.json")).unwrap();
        let summary: Value = serde_json::from_str(&summary).unwrap();
        assert_eq!(summary["encoding"]["codec"], *codec);
        assert!(summary["encoding"]["parcels"][*codec].as_u64() > Some(0), "{summary}");
        assert_eq!(summary["encoding"]["saved_bytes"] == 0, *codec == "f32", "{summary}");
    }
}

#[test]
fn a_running_peer_shows_its_codec_and_what_that_saves() {
    let pair = Pair::new();
    let endless = ["--model", "mlp", "--rounds", "1000000", "--evaluate-every", "2", "--codec", "int8"];
    let mut peers = pair.start(&endless);
    peers[0].wait_for("evaluated");
    let home = pair.home(0);
    assert!(run(&["wait", "--home", text(&home), "--for", "round=4"]).status.success());
    let status = json(&["status", "--json", "--home", text(&home)]);
    assert_eq!(status["encoding"]["codec"], "int8", "{status}");
    let (sent, saved) = (status["sent_bytes"].as_f64().unwrap(), status["encoding"]["saved_bytes"].as_f64().unwrap());
    assert!(sent / (sent + saved) < 0.4, "{status}");
    let shown = stdout(&run(&["status", "--home", text(&home)]));
    assert!(shown.contains("MB sent as int8: ") && shown.contains("% of f32"), "{shown}");
}

#[test]
fn a_plan_that_cannot_use_a_coarse_codec_says_so() {
    let told = |codec: &str, method: &str| {
        let arguments = ["simulate", "--topology", "ring:n=6", "--rounds", "4", "--codec", codec, "--method", method];
        stdout(&run(&arguments))
    };
    let exact = told("bf16", "exact-average");
    assert!(exact.contains("codec    bf16, 0.") && exact.contains(" in f32"), "{exact}");
    for (codec, method, share) in
        [("int8", "d-psgd", "0.25"), ("int8", "exact-average", "0.25"), ("int4", "exact-average", "0.15")]
    {
        let text = told(codec, method);
        assert!(text.contains(&format!("codec    {codec}, {share} of the bytes of f32\n")), "{text}");
    }
    let gossip = told("int4", "d-psgd");
    assert!(gossip.contains("codec    int4, 0.25 of the bytes of f32: 0 of 12 parcels are sent in it"), "{gossip}");

    // A peer reports it, too.
    for (codec, method, reason) in [
        ("bf16", "exact-average", "keep so little weight"),
        ("int3", "d-psgd", "a model that all peers had in common, which this plan never gives them"),
    ] {
        let swarm = PlannedSwarm::with_design("ring:n=3", method, 3, 200);
        let mut peers: Vec<_> = (0..3).map(|node| swarm.start_with(node, &["--codec", codec])).collect();
        swarm.finish(&mut peers, codec);
        let warned = |node: usize| {
            let events = fs::read_to_string(swarm.home(node).join("events.jsonl")).unwrap();
            events.lines().any(|line| line.contains("\"warning\"") && line.contains(reason))
        };
        assert!((0..3).any(warned), "{codec}, {method}");
    }
}

#[test]
fn exact_averages_go_in_four_bits_by_default_and_move_an_eighth_of_the_bytes_and_end_with_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let exact = ["--method", "exact-average", "--rounds", "60", "--local-steps", "10"];
    let [whole, coded] = ["f32", "int4"].map(|codec| {
        let root = folder.path().join(codec);
        // Four bits are what auto takes here, and auto is the default.
        let asked = if codec == "f32" { &["--codec", "f32"][..] } else { &[] };
        let report = demo(&root, &[&exact[..], asked].concat());
        assert_eq!(report["encoding"]["codec"], codec);
        assert_eq!(report["audit"]["disputes"], serde_json::json!([]), "{codec}");
        assert_eq!(report["audit"]["held"].as_u64(), Some(6 << 40), "{codec}");
        report
    });
    let bytes = [&whole, &coded].map(|report| report["sent_bytes"].as_f64().unwrap());
    let accuracy = [&whole, &coded].map(|report| report["swarm"]["mean_accuracy"].as_f64().unwrap());
    assert!(bytes[1] < bytes[0] / 5.0, "parcels of 2,410 parameters, with headers and acknowledgements: {bytes:?}");
    assert!(accuracy[1] > accuracy[0] - 0.01 && accuracy[0] > 0.9, "accuracies {accuracy:?}");
    assert_eq!(coded["encoding"]["parcels"].as_object().unwrap().keys().collect::<Vec<_>>(), ["int4"]);
    assert_eq!(coded["encoding"]["reason"], "auto, since the plan has exact averages");
    assert_eq!(whole["encoding"]["reason"], Value::Null, "it was asked for");
    let model = |node: usize| fs::read(folder.path().join(format!("int4/peers/{node}/model.safetensors"))).unwrap();
    assert!((1..6).all(|node| model(node) == model(0)), "all peers end with the same bits");
}

#[test]
fn peers_without_options_take_four_bits_under_exact_averages_and_f32_under_gossip() {
    for (method, codec, reason) in [
        ("exact-average", "int4", "auto, since the plan has exact averages"),
        ("d-psgd", "f32", "auto, since no node of the plan hands an exact average to all"),
    ] {
        let swarm = PlannedSwarm::with_design("ring:n=3", method, 3, 60);
        let mut peers: Vec<_> =
            (0..3).map(|node| swarm.start_with(node, &["--momentum-across-rounds", "auto"])).collect();
        swarm.finish(&mut peers, method);
        for node in 0..3 {
            let home = swarm.home(node);
            let summary: Value = serde_json::from_str(&fs::read_to_string(home.join("summary.json")).unwrap()).unwrap();
            let encoding = &summary["encoding"];
            assert_eq!((&encoding["codec"], &encoding["reason"]), (&codec.into(), &reason.into()), "{summary}");
            let events = fs::read_to_string(home.join("events.jsonl")).unwrap();
            let mut events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let said = events.find(|event| event["event"] == "codec").unwrap();
            assert_eq!((&said["codec"], &said["reason"]), (&codec.into(), &reason.into()), "told at the start");
            // The first parcels may be keyframes, to neighbours that have not stated their references yet.
            let parcels = encoding["parcels"].as_object().unwrap();
            let count = |codec: &str| parcels.get(codec).and_then(Value::as_u64).unwrap_or_default();
            let all: u64 = parcels.values().flat_map(Value::as_u64).sum();
            assert!(count(codec) >= 20 && count(codec) + count("f16") == all, "{summary}");
            assert_eq!(encoding["saved_bytes"] == 0, codec == "f32", "{summary}");
            assert_eq!(summary["momentum_across_rounds"], serde_json::json!({ "choice": "auto", "momentum": 0.4 }));
        }
    }
}

#[test]
fn a_running_peer_shows_the_codec_and_the_momentum_that_auto_took() {
    let swarm = PlannedSwarm::with_design("ring:n=3", "exact-average", 3, 1_000_000);
    let mut peers: Vec<_> = (0..3).map(|node| swarm.start_with(node, &["--momentum-across-rounds", "auto"])).collect();
    peers[0].wait_for("round");
    let home = swarm.home(0);
    let status = json(&["status", "--json", "--home", text(&home)]);
    assert_eq!(status["encoding"]["codec"], "int4", "{status}");
    assert_eq!(status["momentum_across_rounds"]["momentum"], 0.4, "{status}");
    let shown = stdout(&run(&["status", "--home", text(&home)]));
    for words in [
        "codec int4: auto, since the plan has exact averages",
        "momentum across rounds 0.40: auto, by what the plan bears",
    ] {
        assert!(shown.contains(words), "{shown}");
    }
}

#[test]
fn few_bits_over_long_periods_with_momentum_are_warned_of() {
    let told = |codec: &str, k: u32, momentum: &str| {
        let method = format!("periodic-average:inner=one-peer-exponential,k={k}");
        let arguments = ["--method", &method, "--rounds", "1", "--codec", codec, "--momentum-across-rounds", momentum];
        stdout(&run(&[&["simulate", "--topology", "complete:n=8"], &arguments[..]].concat()))
    };
    let warning = "int3 with momentum across rounds, and exact averages 16 rounds apart: models may drift apart";
    let drifting = told("int3", 15, "0.8");
    assert!(drifting.contains(&format!("warning  {warning}")), "{drifting}");
    for (codec, k, momentum) in [("int3", 7, "0.8"), ("int3", 15, "off"), ("int4", 15, "0.8"), ("auto", 15, "0.8")] {
        let safe = told(codec, k, momentum);
        assert!(!safe.contains("warning") && safe.contains("weights of all nodes"), "{codec}, k={k}: {safe}");
    }
    let auto = told("auto", 7, "0.8");
    assert!(auto.contains("of the bytes of f32 (auto, since the plan has exact averages)"), "{auto}");
}

#[test]
fn a_comparison_shows_the_bytes_of_a_round_by_codec() {
    let arguments = ["plan", "compare", "--topology", "ring:n=6", "--methods", "d-psgd,exact-average"];
    let codecs = ["--codec", "f32,int8,auto", "--payload-bytes", "4096000"];
    let table = stdout(&run(&[&arguments[..], &codecs].concat()));
    let heading = table.lines().nth(1).unwrap();
    assert!(heading.trim_end().ends_with("f32 MB  int8 MB  auto MB"), "{table}");
    let row = |name: &str| -> Vec<f64> {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        cells[cells.len() - 3..].iter().map(|cell| cell.parse().unwrap()).collect()
    };
    // Twelve links, 1,024,000 parameters: four bytes each, or one and a scale for 256 of them.
    assert_eq!(row("d-psgd"), [49.15, 12.48, 49.15]);
    // Ten parcels up and down a tree.
    assert_eq!(row("exact-average"), [40.96, 10.4, 5.28]);
    let document = json(&[&arguments[..], &codecs, &["--json"]].concat());
    assert_eq!(document["designs"][0]["bytes_per_round"]["f32"], 12.0 * 4_096_000.0);
    assert_eq!(document["designs"][0]["bytes_per_round"]["int8"], 12.0 * (1_024_000.0 + 4.0 * 4_000.0));
    let plain = stdout(&run(&arguments));
    assert!(!plain.contains("f32 MB"), "{plain}");
}

#[test]
fn what_cannot_go_together_is_refused() {
    assert_fails(&run(&["run", "--codec", "int2"]), 2, &["int2", "f32, f16, bf16, int8, int4 and int3, and auto"]);
    let problem = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/problems/heart.toml");
    assert_fails(
        &run(&["run", "--problem", problem, "--codec", "int8"]),
        2,
        &["--problem", "cannot be used with", "--codec"],
    );
    let folder = tempfile::tempdir().unwrap();
    let demo = ["demo", "--problem", "sparse-regression", "--codec", "f16", "-o", text(folder.path())];
    assert_fails(&run(&demo), 2, &["--problem", "cannot be used with", "--codec"]);
    // Options that would do nothing.
    for option in [&["--rounds", "5"][..], &["--momentum", "0.9"], &["--durability", "off"]] {
        let output = run(&[&["run", "--problem", problem], option].concat());
        assert_fails(&output, 2, &["--problem", "cannot be used with", option[0]]);
    }
    assert_fails(&run(&["run", "--problem", problem, "--fresh"]), 4, &["--fresh", "heart.toml", "nothing is kept"]);
    assert_fails(&run(&["run", "--problem", problem, "--continue"]), 4, &["--continue", "heart.toml is a problem"]);
    let wait = ["simulate", "--topology", "ring:n=4", "--ledger", "off", "--wait", "sync"];
    assert_fails(&run(&wait), 4, &["--wait", "--ledger off", "hint"]);
    let objective = ["plan", "make", "--topology", "ring:n=4", "--method", "tuned", "--objective", "agreement"];
    assert_fails(&run(&objective), 4, &["--objective is what auto chooses by", "tuned"]);
    let textbook = ["simulate", "--topology", "ring:n=4", "--ledger", "off", "--codec", "bf16"];
    assert_fails(&run(&textbook), 4, &["--ledger off sends f32 alone"]);

    let config = folder.path().join("config.toml");
    fs::write(&config, "codec = \"int8\"\n").unwrap();
    assert!(run(&["config", "check", text(&config)]).status.success());
    let shown = run(&["config", "show", "--config", text(&config), "--origin"]);
    assert!(stdout(&shown).contains("codec = \"int8\""), "{}", stdout(&shown));
    fs::write(&config, "codec = \"zip\"\n").unwrap();
    assert_fails(&run(&["config", "check", text(&config)]), 4, &["config.toml:1", "zip"]);
}
