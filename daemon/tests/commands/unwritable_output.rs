//! Output that cannot be written: requested output fails with an exit code, and remarks of a peer are dropped.
#![cfg(unix)]

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::founded_swarm::{PLANS_ITSELF, Swarm, TASK};
use crate::support::pair::{KILLED, Pair};
use crate::support::{RunningPeer, mingle, mingle_of_a_terminal, read_json, run, text};

fn full_disk() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn what_was_asked_for_and_cannot_be_written_fails_as_bad_input() {
    for arguments in [
        &["--version"][..],
        &["--help"],
        &["topology", "show", "ring:n=4"],
        &["plan", "compare", "--topology", "ring:n=4"],
        &["completions", "zsh"],
        &["data", "card"],
        &["data", "card", "--json"],
        &["graph", "show"],
        &["simulate", "--topology", "ring:n=3", "--model", "softmax", "--rounds", "2"],
    ] {
        assert_fails_on_a_full_disk(arguments);
    }
}

/// Asserts that a command whose standard output is a full disk says so, and that it ends the same way where it can say
/// nothing either.
#[track_caller]
fn assert_fails_on_a_full_disk(arguments: &[&str]) {
    let program = |remarks: Stdio| {
        let mut program = mingle();
        program.args(arguments).stdin(Stdio::null()).stdout(full_disk()).stderr(remarks);
        program.spawn().unwrap().wait_with_output().unwrap()
    };
    let output = program(Stdio::piped());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{arguments:?}: {said}");
    assert!(said.contains("cannot write to standard output"), "{arguments:?}: {said}");
    assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    assert_eq!(program(full_disk()).status.code(), Some(4), "{arguments:?}, with stderr on a full disk");
}

/// A regression for two peers, whose table is dealt out.
fn regression(pair: &Pair) -> std::path::PathBuf {
    let row = |row: usize| format!("{},{},{}\n", row % 5, row % 7, 2 * (row % 5) + row % 3);
    fs::write(pair.file("table.csv"), format!("a,b,y\n{}", (0..30).map(row).collect::<String>())).unwrap();
    let path = pair.file("problem.toml");
    let problem = "kind = \"sparse-regression\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\nlambda = 0.02\n";
    fs::write(&path, problem).unwrap();
    path
}

#[test]
fn what_was_asked_for_about_a_model_a_problem_and_a_peer_and_cannot_be_written_fails_as_bad_input() {
    let pair = Pair::new();
    pair.train();
    let (home, plan, problem) = (pair.home(0), pair.plan(), regression(&pair));
    let model = home.join("model.safetensors");
    let solve = ["solve", "--problem", text(&problem), "--plan", text(&plan)];
    assert!(run(&solve).status.success());
    for json in [&[][..], &["--json"]] {
        for arguments in [
            &solve[..],
            &["eval", text(&model)],
            &["predict", text(&model), "--data", "digits"],
            &["ckpt", "inspect", text(&model)],
            &["audit", text(&home), text(&pair.home(1))],
        ] {
            assert_fails_on_a_full_disk(&[arguments, json].concat());
        }
    }
    let mut peers = pair.start(&KILLED);
    peers.iter_mut().for_each(|peer| drop(peer.wait_for("round")));
    for json in [&[][..], &["--json"]] {
        assert_fails_on_a_full_disk(&[&["status", "--home", text(&home)], json].concat());
    }
    // None of the requests has harmed the peer.
    peers[0].forget_what_it_said();
    assert_eq!(peers[0].wait_for("round")["event"], "round");
}

#[test]
fn a_demo_ends_with_its_models_whether_its_remarks_can_be_written_or_not_and_fails_without_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let training = ["demo", "--peers", "2", "--rounds", "2", "--model", "softmax", "--no-comparison"];
    let training = [&training[..], &["--evaluate-every", "1", "-o", text(&root)]].concat();
    let code = |arguments: &[&str], output: Stdio| {
        let mut program = mingle();
        program.args(arguments).stdin(Stdio::null()).stdout(output).stderr(full_disk());
        program.status().unwrap().code()
    };
    for (output, expected) in [(Stdio::null(), 0), (full_disk(), 4)] {
        assert_eq!(code(&training, output), Some(expected));
        for node in 0..2 {
            let model = root.join(format!("peers/{node}/model.safetensors"));
            assert!(model.exists(), "{expected}: {}", model.display());
            fs::remove_file(model).unwrap();
        }
    }
    assert_eq!(code(&[&training[..], &["--json"]].concat(), full_disk()), Some(4));
    let problem = ["demo", "--problem", "sparse-regression", "--peers", "3", "-o", text(&root)];
    for json in [&[][..], &["--json"]] {
        assert_fails_on_a_full_disk(&[&problem[..], json].concat());
    }
}

/// The second of two peers that train a small model for 30 rounds, not yet started, and the first.
fn second_of(pair: &Pair) -> (RunningPeer, Command) {
    let mut first = pair.start_first(&["--model", "softmax", "--rounds", "30"]);
    let mut second = mingle();
    second.args(["run", "--home", text(&pair.home(1)), "--bootstrap", &first.address(), "--rounds", "30"]);
    second.args(["--listen", "/ip4/127.0.0.1/tcp/0"]).stdin(Stdio::null());
    (first, second)
}

/// Asserts that both peers have trained to the end.
fn assert_trained(first: &mut RunningPeer, pair: &Pair) {
    assert_eq!(first.wait_through_rounds_for("done")["round"], 30);
    assert_eq!(read_json(&pair.home(1).join("summary.json"))["rounds"], 30);
    assert!(pair.home(1).join("model.safetensors").exists());
}

#[test]
fn a_peer_whose_remarks_cannot_be_written_trains_to_its_end() {
    let pair = Pair::new();
    let (mut first, mut second) = second_of(&pair);
    assert_eq!(second.stdout(full_disk()).stderr(full_disk()).status().unwrap().code(), Some(0));
    assert_trained(&mut first, &pair);
}

#[test]
fn a_peer_that_joins_by_ticket_and_can_say_nothing_trains_to_its_end() {
    for (json, code) in [(false, 0), (true, 4)] {
        let swarm = Swarm::found();
        let rounds = ["--rounds", "30"];
        let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &rounds].concat());
        operator.address();
        let (ticket, home) = (swarm.invite(1), swarm.home(1));
        let mut joining = mingle();
        joining.args(["join", &ticket, "--home", text(&home), "--listen", "/ip4/127.0.0.1/tcp/0"]).args(TASK);
        joining.args(rounds).args(json.then_some("--json")).stdin(Stdio::null());
        assert_eq!(joining.stdout(full_disk()).stderr(full_disk()).status().unwrap().code(), Some(code));
        assert_eq!(operator.wait_through_rounds_for("done")["round"], 30);
        assert_eq!(operator.exit_code(), Some(0));
        assert_eq!(read_json(&home.join("summary.json"))["rounds"], 30);
        assert!(home.join("model.safetensors").exists());
    }
}

#[test]
fn a_peer_whose_reader_goes_after_the_first_line_trains_to_its_end() {
    for json in [false, true] {
        let pair = Pair::new();
        let (mut first, mut second) = second_of(&pair);
        let (reader, writer) = std::io::pipe().unwrap();
        second.args(json.then_some("--json")).env("MINGLE_LOG", "debug");
        second.stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut peer = second.spawn().unwrap();
        let mut line = String::new();
        // As `2>&1 | head -1` would do it.
        BufReader::new(reader).read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        assert_eq!(peer.wait().unwrap().code(), Some(0), "with --json: {json}");
        assert_trained(&mut first, &pair);
    }
}

#[test]
fn a_peer_whose_requested_events_cannot_be_written_trains_to_its_end_and_fails_as_bad_input() {
    let pair = Pair::new();
    let (mut first, mut second) = second_of(&pair);
    let output = second.arg("--json").stdout(full_disk()).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("cannot write to standard output") && said.contains("in the home"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert_trained(&mut first, &pair);
}

/// A stream whose reader stands still, with no room for another byte, and the end that nobody reads.
fn full_stream() -> (Stdio, UnixStream) {
    let (mut writer, reader) = UnixStream::pair().unwrap();
    writer.set_nonblocking(true).unwrap();
    for piece in [&[b'x'; 4096][..], b"x"] {
        while writer.write(piece).is_ok() {}
    }
    writer.set_nonblocking(false).unwrap();
    (OwnedFd::from(writer).into(), reader)
}

#[test]
fn a_peer_whose_reader_stands_still_trains_to_its_end_and_holds_up_nobody() {
    for (json, code) in [(true, 4), (false, 0)] {
        let pair = Pair::new();
        let (mut first, mut second) = second_of(&pair);
        let ((output, _unread), (remarks, _unread_too)) = (full_stream(), full_stream());
        let log = pair.file("remarks");
        let errors = if json { File::create(&log).unwrap().into() } else { remarks };
        let mut peer = second.args(json.then_some("--json")).stdout(output).stderr(errors).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(120);
        let ended = loop {
            if let Some(ended) = peer.try_wait().unwrap() {
                break ended;
            }
            if Instant::now() > until {
                peer.kill().unwrap();
                panic!("it waits for its reader, with --json: {json}");
            }
            std::thread::yield_now();
        };
        let said = fs::read_to_string(&log).unwrap_or_default();
        assert_eq!(ended.code(), Some(code), "{said}");
        assert!(!json || (said.contains("its reader does not read") && said.contains("in the home")), "{said}");
        assert_trained(&mut first, &pair);
    }
}

#[test]
fn a_peer_whose_terminal_is_closed_ends_in_good_order() {
    let pair = Pair::new();
    let mut peers = pair.start_as(mingle_of_a_terminal, &["--model", "softmax", "--rounds", "1000000"]);
    peers.iter_mut().for_each(|peer| drop(peer.wait_for("round")));
    pair.homes().iter().for_each(|home| assert!(home.join("mingle.sock").exists()));
    peers.iter().for_each(|peer| peer.signal("HUP"));
    for (peer, home) in peers.iter_mut().zip(pair.homes()) {
        peer.wait_through_rounds_for("done");
        assert_eq!(RunningPeer::exit_code(peer), Some(0));
        for left in ["model.safetensors", "summary.json"] {
            assert!(fs::metadata(home.join(left)).is_ok(), "{left}");
        }
        assert!(fs::symlink_metadata(home.join("mingle.sock")).is_err(), "its socket is still there");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_peer_that_was_started_to_outlive_its_terminal_trains_on_when_that_is_closed() {
    let pair = Pair::new();
    let arguments = ["--model", "softmax", "--rounds", "1000000"];
    let mut first = pair.start_first(&arguments);
    let address = first.address();
    let home = pair.home(1);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(mingle().get_program());
    let place = ["run", "--listen", "/ip4/127.0.0.1/tcp/0", "--home", text(&home), "--bootstrap", &address];
    let mut second = RunningPeer::spawn_as(command, &[&place, &arguments[..]].concat());
    second.wait_for("round");
    second.signal("HUP");
    // The next events are those of training, and it ends for another reason.
    for _ in 0..20 {
        second.wait_for("round");
    }
    second.signal("TERM");
    second.wait_through_rounds_for("done");
    assert_eq!(second.exit_code(), Some(0));
}
