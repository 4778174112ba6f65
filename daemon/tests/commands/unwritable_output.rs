//! Output that cannot be written: requested output fails with an exit code, and remarks of a peer are dropped.
#![cfg(unix)]

use std::fs::{self, OpenOptions};
use std::process::Stdio;

use crate::support::pair::Pair;
use crate::support::{RunningPeer, mingle, text};

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
    ] {
        let mut program = mingle();
        program.args(arguments).stdin(Stdio::null()).stdout(full_disk()).stderr(Stdio::piped());
        let output = program.spawn().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {said}");
        assert!(said.contains("cannot write to standard output"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_peer_whose_remarks_cannot_be_written_trains_to_its_end() {
    let pair = Pair::new();
    let mut first = pair.start_first(&["--model", "softmax", "--rounds", "30"]);
    let address = first.address();
    let home = pair.home(1);
    let mut second = mingle();
    second.args(["run", "--home", text(&home), "--bootstrap", &address, "--rounds", "30", "--listen"]);
    second.args(["/ip4/127.0.0.1/tcp/0"]).stdin(Stdio::null()).stdout(full_disk()).stderr(full_disk());
    assert_eq!(second.status().unwrap().code(), Some(0));
    assert_eq!(first.wait_through_rounds_for("done")["round"], 30);
}

#[test]
fn a_peer_whose_terminal_is_closed_ends_in_good_order() {
    let pair = Pair::new();
    let mut peers = pair.start(&["--model", "softmax", "--rounds", "1000000"]);
    peers.iter_mut().for_each(|peer| drop(peer.wait_for("round")));
    peers.iter().for_each(|peer| peer.signal("HUP"));
    for (peer, home) in peers.iter_mut().zip(pair.homes()) {
        peer.wait_through_rounds_for("done");
        assert_eq!(RunningPeer::exit_code(peer), Some(0));
        for left in ["model.safetensors", "summary.json"] {
            assert!(fs::metadata(home.join(left)).is_ok(), "{left}");
        }
    }
}
