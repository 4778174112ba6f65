//! The files of `examples/deploy`: every setting that they name is one of this program. `scripts/check-deploy` runs the
//! programs that read these files.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use crate::support::pair::Pair;
use crate::support::{mingle, run, stderr, stdout, text};

fn deploy(file: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/deploy").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names that begin with `MINGLE_` and their values, as `NAME: value` or `NAME=value`.
fn variables(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let pair = |line: &str| {
        let (_, rest) = line.split_once("MINGLE_")?;
        let (name, value) = rest.split_once([':', '='])?;
        Some((format!("MINGLE_{name}"), value.trim().trim_end_matches(" \\").trim_matches('"').to_owned()))
    };
    lines.filter_map(pair).collect()
}

#[test]
fn a_check_that_could_not_be_made_does_not_look_like_a_pass() {
    let script = |name: &str, arguments: &[&str]| {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(name);
        // A search path without cargo-deny.
        let ran =
            std::process::Command::new("bash").arg(path).args(arguments).env("PATH", "/usr/bin:/bin").output().unwrap();
        (ran.status.code(), stdout(&ran) + &stderr(&ran))
    };
    let (code, said) = script("check", &["licences"]);
    assert!(code == Some(0) && said.contains("licences: NOT CHECKED") && !said.contains("licences: ok"), "{said}");
    assert!(
        said.trim_end().lines().filter(|line| line.starts_with("NOT CHECKED: licences and sources")).count() == 2,
        "{said}"
    );
    let (code, said) = script("audit", &[]);
    assert!(code == Some(0) && said.contains("advisories: NOT CHECKED"), "{said}");
    assert_eq!(script("audit", &["--strict"]).0, Some(3));
}

#[test]
fn the_settings_in_the_kubernetes_manifest_can_be_used() {
    let manifest = deploy("kubernetes/mingle.yaml");
    let settings = manifest.split("config.toml: |\n").nth(1).unwrap();
    let settings: Vec<&str> = settings.lines().map_while(|line| line.strip_prefix("    ")).collect();
    assert!(settings.len() > 5, "{settings:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, settings.join("\n")).unwrap();
    let checked = run(&["config", "check", text(&path)]);
    assert!(checked.status.success(), "{}", stderr(&checked));
}

#[test]
fn the_variables_in_image_compose_file_and_units_set_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for file in ["Containerfile", "compose/compose.yaml", "systemd/mingle.service", "systemd/mingle-user.service"] {
        for (name, value) in variables(&deploy(file)) {
            seen += 1;
            // The last one is for the reader of the compose file.
            if ["MINGLE_HOME", "MINGLE_CONFIG", "MINGLE_IMAGE"].contains(&name.as_str()) {
                continue;
            }
            let home = text(folder.path());
            let output =
                mingle().args(["config", "show", "--json", "--home", home]).env(&name, &value).output().unwrap();
            assert!(output.status.success(), "{file}: {name}={value}: {}", stderr(&output));
            let told = format!("\"variable\":\"{name}\"");
            assert!(stdout(&output).contains(&told), "{file}: {name} sets nothing");
        }
    }
    assert!(seen >= 10, "only {seen} variables were found");
}

#[test]
fn units_do_not_start_again_what_a_start_cannot_mend() {
    for file in ["systemd/mingle.service", "systemd/mingle-user.service"] {
        let unit = deploy(file);
        for line in ["Type=notify", "Restart=on-failure", "RestartPreventExitStatus=2 4 6 8", "SuccessExitStatus=130"] {
            assert!(unit.lines().any(|it| it == line), "{file} has no {line}");
        }
    }
}

/// Every metric of ours in a text.
fn metrics(text: &str) -> BTreeSet<&str> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split(|letter: char| !is_name(letter)).filter(|word| word.starts_with("mingle_")).collect()
}

#[test]
fn every_metric_of_the_dashboard_is_one_that_a_training_peer_exports() {
    let pair = Pair::new();
    let endless = ["--model", "softmax", "--rounds", "1000000", "--evaluate-every", "2", "--http", "127.0.0.1:0"];
    let mut peers = pair.start(&endless);
    let interface = peers[0].wait_for("interface");
    let address = interface["page"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/');
    // The distance between the models is known once a parcel of a neighbour has come.
    let is_known = |_: &usize| !peers[0].wait_for("evaluated")["disagreement"].is_null();
    (0..10_000_usize).find(is_known).expect("no model of a neighbour was ever compared");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let dashboard = deploy("grafana/mingle.json");
    let asked = metrics(&dashboard);
    assert!(asked.len() >= 7, "{asked:?}");
    for metric in asked {
        // A counter that has counted nothing has a description and no number.
        let described = format!("# TYPE {} counter", metric.trim_end_matches("_total"));
        let exported = page.contains(&format!("\n{metric} ")) || page.contains(&format!("\n{metric}{{"));
        assert!(
            exported || page.contains(&described),
            "the dashboard asks for {metric}, of which there is none: {page}"
        );
    }
}
