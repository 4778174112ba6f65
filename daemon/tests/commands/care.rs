//! `mingle doctor`, `mingle bugreport`, and the notifications to a service manager.

use crate::support;
use std::fs;
use std::net::TcpListener;
use std::process::Command;

use crate::support::pair::Pair;
use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

/// The doctor's findings on a subject.
fn findings<'a>(report: &'a Value, subject: &str) -> Vec<&'a Value> {
    report["checks"].as_array().unwrap().iter().filter(|check| check["subject"] == subject).collect()
}

fn doctor(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = run(&[&["doctor", "--json"], arguments].concat());
    (output.status.code(), serde_json::from_str(&stdout(&output)).unwrap())
}

#[test]
fn a_machine_that_can_run_a_peer_is_found_well_with_numbers_that_were_measured() {
    let folder = tempfile::tempdir().unwrap();
    let home = text(folder.path());
    assert!(run(&["init", "--home", home]).status.success());
    let (code, report) = doctor(&["--home", home]);
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(report["failed"], 0);
    for subject in ["config", "identity", "device", "data", "ports", "network", "clock", "disk", "memory"] {
        assert!(!findings(&report, subject).is_empty(), "nothing about {subject}: {report:#}");
    }
    assert_eq!(findings(&report, "ports").len(), 2, "{report:#}");
    let loopback = findings(&report, "network")[0]["finding"].as_str().unwrap();
    assert!(loopback.contains("127.0.0.1 (loopback)"), "{loopback}");
    let disk = findings(&report, "disk");
    assert!(disk.iter().any(|check| check["finding"].as_str().unwrap().contains(" ms, the slowest of 16")), "{disk:?}");
    // The doctor leaves nothing behind.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    let text = stdout(&run(&["doctor", "--home", home]));
    assert!(text.lines().any(|line| line.starts_with("ok    device")), "{text}");
}

#[test]
fn data_and_a_model_can_be_looked_at_before_a_peer_is_set_up_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("wards.csv");
    let rows = (0..20).map(|row| format!("{row},{},{}\n", row * 7 % 5, ["ill", "well"][row % 2]));
    fs::write(&table, format!("age,dose,class\n{}", rows.collect::<String>())).unwrap();
    let data = format!("csv:{}", text(&table));
    let home = text(folder.path());
    let (code, report) = doctor(&["--home", home, "--data", &data, "--model", "softmax"]);
    assert_eq!(code, Some(0), "{report:#}");
    let finding = findings(&report, "data")[0]["finding"].as_str().unwrap();
    assert!(finding.starts_with(&data) && finding.contains("for 2 classes; softmax has 6 parameters"), "{finding}");
    let read = findings(&report, "data")[1]["finding"].as_str().unwrap();
    assert_eq!(read, "label: column `class`, the last; 20 samples, 2 classes");
    let (code, report) = doctor(&["--home", home, "--data", &data, "--model", "cnn"]);
    assert_eq!((code, &findings(&report, "data")[0]["verdict"]), (Some(4), &Value::from("fail")), "{report:#}");
}

#[test]
fn what_keeps_a_peer_from_running_fails_with_what_to_do_and_exit_code_4() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = folder.path().join("config.toml");
    fs::write(&config, format!("listen = [\"/ip4/127.0.0.1/tcp/{port}\"]\ndata = \"csv:no-such-file.csv\"\n")).unwrap();
    fs::write(folder.path().join("identity.key"), "no key").unwrap();
    let (code, report) = doctor(&["--home", text(folder.path())]);
    assert_eq!(code, Some(4), "{report:#}");
    for subject in ["ports", "data", "identity"] {
        let check = findings(&report, subject)[0];
        assert_eq!(check["verdict"], "fail", "{report:#}");
        assert!(!check["advice"].as_str().unwrap().is_empty(), "{check}");
    }
    assert_eq!(report["failed"], 3, "{report:#}");
    fs::write(&config, "rounds = true\n").unwrap();
    let (code, report) = doctor(&["--home", text(folder.path())]);
    assert_eq!((code, &findings(&report, "config")[0]["verdict"]), (Some(4), &Value::from("fail")));
}

#[test]
fn a_bug_report_has_what_happened_and_neither_key_nor_model_nor_address() {
    let pair = Pair::new();
    pair.train();
    let home = pair.home(0);
    let config = "bootstrap = [\"/dns4/secret-host.example.org/tcp/4717\"]\n\
        trainer = \"WANDB_API_KEY=first-secret python /srv/hospital/train.py --db-password second-secret \
        --from=https://ana:third-secret@db.example.org/x --hf-token='fourth secret'\"\n";
    fs::write(home.join("config.toml"), config).unwrap();
    // An event that quotes a command with a secret.
    let event = r#"{"schema":"mingle.event/1","seq":1,"at_ms":1,"event":"trainer_started","command":"t --key=\"fifth secret\""}"#;
    let events = fs::read_to_string(home.join("events.jsonl")).unwrap();
    fs::write(home.join("events.jsonl"), format!("{events}{event}\n")).unwrap();
    let report = pair.file("report.tar");
    let made = run(&["bugreport", "--json", "--home", text(&home), "-o", text(&report)]);
    assert!(made.status.success(), "{}{}", stdout(&made), stderr(&made));
    let told: Value = serde_json::from_str(&stdout(&made)).unwrap();
    let names: Vec<&str> =
        told["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    let wanted = [
        "README.txt",
        "version.json",
        "doctor.json",
        "records.json",
        "task.json",
        "config.toml",
        "plan.json",
        "summary.json",
        "events.jsonl",
    ];
    assert_eq!(names, wanted.map(|name| format!("mingle-report/{name}")));

    let archive = fs::read(&report).unwrap();
    let contains = |needle: &[u8]| archive.windows(needle.len()).any(|window| window == needle);
    assert!(contains(b"\"event\":\"joined\""));
    assert!(!contains(b"secret-host"), "an address is in the report");
    for secret in ["first-secret", "second-secret", "third-secret", "fourth secret", "fifth secret", "hospital"] {
        assert!(!contains(secret.as_bytes()), "{secret} is in the report");
    }
    let kept = "trainer = \"WANDB_API_KEY=*** python path-1.py --db-password *** --from=https://***@";
    assert!(contains(kept.as_bytes()), "what is no secret stays");
    assert!(
        contains(b"Replaced: addresses by host-1") && contains(b"Taken out here: "),
        "the report says what was done"
    );
    let key = fs::read(home.join("identity.key")).unwrap();
    for start in 0..key.len() - 16 {
        assert!(!contains(&key[start..start + 16]), "a part of the key is in the report");
    }
    let model = fs::read(home.join("model.safetensors")).unwrap();
    assert!(!contains(&model[model.len() - 64..]), "a part of the model is in the report");
    assert_fails(&run(&["bugreport", "--home", text(&home), "-o", text(&report)]), 4, &["report.tar"]);

    let unpacked = Command::new("tar").args(["-xf", text(&report), "-C", text(&pair.file(""))]).status();
    if unpacked.is_ok_and(|status| status.success()) {
        let config = fs::read_to_string(pair.file("mingle-report/config.toml")).unwrap();
        assert!(config.starts_with("bootstrap = [\"/dns4/host-"), "{config}");
    } else {
        eprintln!("skipped: there is no tar here");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_service_manager_hears_ready_when_all_neighbours_are_up_and_stopping_at_the_end() {
    use std::os::unix::net::UnixDatagram;
    use std::process::Stdio;
    let pair = Pair::new();
    let socket = pair.file("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let homes = [pair.home(0), pair.home(1)];
    let (plan, settings) = (pair.plan(), ["--model", "softmax", "--rounds", "8", "--evaluate-every", "4"]);
    let mut first =
        support::RunningPeer::start(&[&["--home", text(&homes[0]), "--plan", text(&plan)], &settings[..]].concat());
    let address = first.address();
    let mut second = support::mingle()
        .args(["run", "--home", text(&homes[1]), "--bootstrap", &address, "--listen", "/ip4/127.0.0.1/tcp/0"])
        .args(settings)
        .env("NOTIFY_SOCKET", &socket)
        .env("WATCHDOG_USEC", "20000")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    while !heard.iter().any(|state: &String| state.contains("STATUS=done after round 8")) {
        let length = manager.recv(&mut buffer).unwrap();
        heard.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
    }
    assert!(second.wait().unwrap().success());
    let at = |words: &str| heard.iter().position(|state| state.contains(words));
    let (ready, stopping) = (at("READY=1"), at("STOPPING=1"));
    assert!(at("STATUS=listening") < ready && ready.is_some() && ready < stopping, "{heard:?}");
    assert!(at("WATCHDOG=1").is_some(), "{heard:?}");
    assert!(at("STATUS=round 4, accuracy 0.").is_some(), "{heard:?}");
}
