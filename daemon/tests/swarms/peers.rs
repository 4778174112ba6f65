//! `mingle run`: peers that find each other through a bootstrap address, and the errors when they cannot.

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use crate::support::{RunningPeer, assert_fails, run, stderr, stdout, text};

/// The homes of two peers and a plan that is bound to them.
struct Pair {
    folder: tempfile::TempDir,
    plan: PathBuf,
}

impl Pair {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plan = folder.path().join("plan.json");
        let made = run(&["plan", "make", "--topology", "complete:n=2", "-o", text(&plan)]);
        assert!(made.status.success(), "{}", stderr(&made));
        let pair = Self { folder, plan };
        pair.bind(0);
        pair.bind(1);
        pair
    }

    fn home(&self, node: usize) -> PathBuf {
        self.folder.path().join(node.to_string())
    }

    fn bind(&self, node: usize) {
        let peer = stdout(&run(&["init", "--home", text(&self.home(node))]));
        let binding = format!("{node}={}", peer.trim());
        let bound = run(&["plan", "bind", text(&self.plan), "--peer", &binding]);
        assert!(bound.status.success(), "{}", stderr(&bound));
    }

    /// Starts a peer on a short task of its own half of the digits.
    fn start(&self, home: &Path, more: &[&str]) -> RunningPeer {
        let mut arguments = vec!["--home", text(home), "--model", "softmax", "--split", "iid", "--rounds", "8"];
        arguments.extend(more);
        RunningPeer::start(&arguments)
    }
}

#[test]
fn a_peer_with_only_an_address_fetches_the_plan_and_both_train_to_one_model() {
    let pair = Pair::new();
    let mut first = pair.start(&pair.home(0), &["--plan", text(&pair.plan), "--wait", "sync"]);
    let address = first.address();
    let mut second = pair.start(&pair.home(1), &["--bootstrap", &address, "--wait", "sync"]);
    let plan = second.wait_for("plan");
    let shown = stdout(&run(&["plan", "show", text(&pair.plan)]));
    assert!(shown.contains(plan["hash"].as_str().unwrap()), "{shown}");
    assert!(plan["origin"].as_str().unwrap().contains("127.0.0.1"), "{plan}");
    for (node, peer) in [&mut first, &mut second].into_iter().enumerate() {
        assert_eq!(peer.wait_for("done")["round"], 8, "node {node}");
        assert_eq!(peer.exit_code(), Some(0));
        assert!(pair.home(node).join("model.safetensors").exists());
        let summary = fs::read_to_string(pair.home(node).join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        assert_eq!(summary["rounds"], 8);
        // Two peers that exchange halves hold one each, to the unit.
        assert_eq!(summary["ledger"]["mass"], 1_u64 << 40);
    }
}

#[test]
fn a_stranger_is_not_given_the_plan() {
    let pair = Pair::new();
    let mut first = pair.start(&pair.home(0), &["--plan", text(&pair.plan)]);
    let address = first.address();
    assert!(run(&["init", "--home", text(&pair.home(7))]).status.success());
    let stranger =
        run(&["run", "--home", text(&pair.home(7)), "--bootstrap", &address, "--listen", "/ip4/127.0.0.1/tcp/0"]);
    assert_fails(&stranger, 6, &["not in the plan", "mingle plan bind"]);
}

#[test]
fn a_peer_whose_key_is_not_in_the_plan_is_told_how_to_get_in() {
    let pair = Pair::new();
    assert!(run(&["init", "--home", text(&pair.home(7))]).status.success());
    let other =
        run(&["run", "--home", text(&pair.home(7)), "--plan", text(&pair.plan), "--listen", "/ip4/127.0.0.1/tcp/0"]);
    assert_fails(&other, 6, &["not in the plan", "mingle plan bind"]);
    let unbound = pair.folder.path().join("unbound.json");
    let made = run(&["plan", "make", "--topology", "complete:n=2", "-o", text(&unbound)]);
    assert!(made.status.success());
    let peer =
        run(&["run", "--home", text(&pair.home(0)), "--plan", text(&unbound), "--listen", "/ip4/127.0.0.1/tcp/0"]);
    assert_fails(&peer, 6, &["not in the plan"]);
}

#[test]
fn a_bootstrap_peer_that_does_not_answer_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    // A port that was free a moment ago, without a listener.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("/ip4/127.0.0.1/tcp/{port}");
    assert!(run(&["init", "--home", text(folder.path())]).status.success());
    let output = run(&[
        "run",
        "--home",
        text(folder.path()),
        "--bootstrap",
        &address,
        "--bootstrap-timeout",
        "1s",
        "--listen",
        "/ip4/127.0.0.1/tcp/0",
    ]);
    assert_fails(&output, 3, &[&address, "refused", "hint"]);
}

#[test]
fn a_port_in_use_is_named() {
    let pair = Pair::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("/ip4/127.0.0.1/udp/{}/quic-v1", socket.local_addr().unwrap().port());
    let output = run(&["run", "--home", text(&pair.home(0)), "--plan", text(&pair.plan), "--listen", &address]);
    assert_fails(&output, 3, &[&address, "in use", "--listen"]);
}

#[test]
fn a_second_process_in_one_home_is_refused() {
    let pair = Pair::new();
    let mut first = pair.start(&pair.home(0), &["--plan", text(&pair.plan)]);
    first.address();
    let second = run(&["run", "--home", text(&pair.home(0)), "--plan", text(&pair.plan)]);
    assert_fails(&second, 6, &["already runs", "--home"]);
}

#[test]
fn a_copied_identity_is_refused_while_the_first_is_in_the_swarm() {
    let pair = Pair::new();
    let mut first = pair.start(&pair.home(0), &["--plan", text(&pair.plan), "--rounds", "1000000"]);
    let address = first.address();
    let mut second = pair.start(&pair.home(1), &["--bootstrap", &address, "--rounds", "1000000"]);
    second.wait_for("joined");
    let copy = pair.folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(pair.home(1).join("identity.key"), copy.join("identity.key")).unwrap();
    let mut third = pair.start(&copy, &["--bootstrap", &address, "--rounds", "1000000"]);
    let end = third.wait_for("done");
    assert_eq!(end["error"]["code"], 6, "{end}");
    assert!(end["error"]["message"].as_str().unwrap().contains("identity"), "{end}");
    assert_eq!(third.exit_code(), Some(6));
}

#[test]
fn peers_with_different_tasks_say_what_differs() {
    let pair = Pair::new();
    let mut first = pair.start(&pair.home(0), &["--plan", text(&pair.plan)]);
    let address = first.address();
    let mut second = pair.start(&pair.home(1), &["--bootstrap", &address, "--rounds", "9"]);
    let end = second.wait_for("done");
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("--rounds 9 contradicts the task of the swarm, which has 8"), "{end}");
    assert_eq!(second.exit_code(), Some(6));
}

#[test]
fn data_that_cannot_be_used_are_explained_before_anything_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let fails = |arguments: &[&str], words: &[&str]| {
        let mut all = vec!["run", "--home", text(&home)];
        all.extend(arguments);
        assert_fails(&run(&all), 4, words);
        assert!(!home.exists(), "nothing is written");
    };
    let idx = format!("idx:{}", text(&data));
    fails(&["--data", &idx], &["train-images-idx3-ubyte"]);
    // A header that promises 2 images of 28 x 28 and a file that holds 3 bytes.
    let mut images = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28];
    images.extend([1, 2, 3]);
    fs::write(data.join("train-images-idx3-ubyte"), images).unwrap();
    fs::write(data.join("train-labels-idx1-ubyte"), [0, 0, 8, 1, 0, 0, 0, 2, 1, 2]).unwrap();
    fails(&["--data", &idx], &["train-images-idx3-ubyte"]);
    let table = folder.path().join("table.csv");
    fs::write(&table, "a,b,label\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n9,1,x\n2,2,y\n").unwrap();
    let csv = format!("csv:{}", text(&table));
    fails(&["--data", &csv, "--model", "cnn"], &["cnn", "2"]);
    fails(&["--model", "transformer"], &["transformer", "softmax"]);
    fails(&["--device", "abacus"], &["abacus"]);
    fails(&["--wait", "patiently"], &["patiently", "sync"]);
}

#[test]
fn an_interrupted_peer_writes_its_model_and_its_books() {
    let pair = Pair::new();
    let endless = ["--rounds", "1000000", "--evaluate-every", "2"];
    let mut first = pair.start(&pair.home(0), &[&["--plan", text(&pair.plan)], &endless[..]].concat());
    let address = first.address();
    let mut second = pair.start(&pair.home(1), &[&["--bootstrap", address.as_str()], &endless[..]].concat());
    second.wait_for("evaluated");
    let sent = std::process::Command::new("kill").args(["-s", "INT", &second.id().to_string()]).status().unwrap();
    assert!(sent.success());
    second.wait_for("stopping");
    second.wait_for("done");
    assert_eq!(second.exit_code(), Some(0));
    assert!(pair.home(1).join("model.safetensors").exists() && pair.home(1).join("summary.json").exists());
}
