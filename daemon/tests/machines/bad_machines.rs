//! Machines that are themselves at fault, under real peers: a disk that is full, a clock that jumps, a processor that
//! is slow.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::founded_swarm::{ENDLESS as FOR_EVER, PLANS_ITSELF, Swarm};
use crate::support::planned_swarm::PlannedSwarm;
use crate::support::small_disk::SmallDisk;
use crate::support::{RunningPeer, assert_fails, mingle, run, text};
use serde_json::Value;

/// Rounds that no test runs to their end.
const ENDLESS: u64 = 1_000_000;

/// Waits until each peer has done a good number of rounds from now on.
fn go_on(peers: &mut [RunningPeer]) {
    time_of_rounds(peers, 30);
}

/// The failure with which a peer ends; it has this exit code.
fn failure_of(peer: &mut RunningPeer, code: i32) -> String {
    let end = peer.wait_through_rounds_for("done");
    assert_eq!((end["error"]["code"].as_i64(), peer.exit_code()), (Some(i64::from(code)), Some(code)), "{end}");
    end["error"].to_string()
}

/// The events that a peer has written down.
fn events_of(home: &Path) -> Vec<serde_json::Result<Value>> {
    let text = fs::read_to_string(home.join("events.jsonl")).unwrap();
    text.lines().map(serde_json::from_str).collect()
}

#[test]
#[ignore = "needs root, to mount a small disk"]
fn a_peer_whose_disk_is_full_trains_on_and_says_which_file_found_no_room_when_it_stops() {
    let swarm = PlannedSwarm::new(3, ENDLESS);
    let home = swarm.home(0);
    let disk = SmallDisk::under(&home);
    let often = ["--evaluate-every", "1"];
    // There is no room to begin.
    disk.fill();
    let said = failure_of(&mut swarm.start_with(0, &often), 4);
    assert!(["addresses.json", "No space left", "free some room"].iter().all(|word| said.contains(word)), "{said}");
    disk.free();

    let mut peers = [swarm.start_with(0, &often), swarm.start(1), swarm.start(2)];
    go_on(&mut peers);
    disk.fill();
    go_on(&mut peers);
    let stopped = run(&["stop", "--home", text(&home)]);
    assert_fails(&stopped, 1, &["not in good order", "model.safetensors"]);
    let said = failure_of(&mut peers[0], 4);
    assert!(["model.safetensors", "No space left", "free some room"].iter().all(|word| said.contains(word)), "{said}");
    let events = events_of(&home);
    let (_last, whole) = events.split_last().unwrap();
    assert!(!whole.is_empty() && whole.iter().all(Result::is_ok), "only the last may be cut off: {whole:?}");
    go_on(&mut peers[1..]);

    disk.free();
    peers[0] = swarm.start_with(0, &often);
    peers[0].wait_for("recovered");
    go_on(&mut peers);
    peers.iter_mut().for_each(RunningPeer::kill);
    swarm.audit("after a disk was full");
}

/// A clock that a test can set, for the processes that are started with it.
struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// A clock that is right.
    fn new(folder: &Path) -> Self {
        let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
        let library = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|library| library.exists());
        let library = library.expect("clocks that jump need libfaketime (the Debian package faketime)");
        let clock = Self { library, file: folder.join("clock") };
        clock.step("+0");
        clock
    }

    /// Sets it to so much more or less than the right time, such as `+1d`.
    fn step(&self, offset: &str) {
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{offset}\n")).unwrap();
        fs::rename(new, &self.file).unwrap();
    }

    /// Runs the command by this clock.
    fn rule(&self, mut command: Command) -> Command {
        command.env("LD_PRELOAD", &self.library).env("FAKETIME_TIMESTAMP_FILE", &self.file);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command
    }

    /// Days by which the right time is behind this clock.
    fn days_ahead(&self) -> i64 {
        let seconds = |mut command: Command| -> i64 {
            let output = command.arg("+%s").output().unwrap();
            String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
        };
        let (ruled, right) = (seconds(self.rule(Command::new("date"))), seconds(Command::new("date")));
        (ruled - right + 43_200).div_euclid(86_400)
    }
}

#[test]
#[ignore = "needs libfaketime"]
fn a_newcomer_whose_clock_is_wrong_is_told_what_both_clocks_show() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &FOR_EVER].concat());
    operator.wait_for("listening");
    let ticket = swarm.invite(2);
    let clock = Clock::new(swarm.folder.path());
    let join = |peer: usize, offset: &str| {
        clock.step(offset);
        let home = swarm.home(peer);
        let options = ["--home", text(&home), "--listen", "/ip4/127.0.0.1/tcp/0", "--model", "softmax"];
        RunningPeer::spawn_as(clock.rule(mingle()), &[&["join", &ticket][..], &options, &FOR_EVER].concat())
    };
    let began = Instant::now();
    let refused = failure_of(&mut join(1, "+40d"), 6);
    assert!(refused.contains("expired") && refused.contains("by a clock that shows"), "{refused}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());

    // Before its day an invitation holds too, so this one trains with the operator.
    let mut behind = join(2, "-40d");
    behind.wait_for("joined");
    go_on(&mut [behind, operator]);
}

#[test]
#[ignore = "needs libfaketime"]
fn a_clock_that_jumps_by_a_day_and_back_disturbs_nothing() {
    let swarm = PlannedSwarm::new(3, ENDLESS);
    let clock = Clock::new(&swarm.peers());
    let start = || swarm.start_as(clock.rule(mingle()), 0, &["--evaluate-every", "20"]);
    let mut peers = [start(), swarm.start(1), swarm.start(2)];
    go_on(&mut peers);
    let libraries = fs::read_to_string(format!("/proc/{}/maps", peers[0].id())).unwrap();
    assert!(libraries.contains("libfaketime"), "it goes by the clock of the test");
    for (offset, days) in [("+1d", 1), ("-1d", -1), ("+1d", 1)] {
        clock.step(offset);
        assert_eq!(clock.days_ahead(), days);
        go_on(&mut peers);
    }
    let events: Vec<Value> = events_of(&swarm.home(0)).into_iter().map(Result::unwrap).collect();
    assert!(events.is_sorted_by_key(|event| event["at_ms"].as_u64().unwrap()), "{events:#?}");
    // Each look at this clock reads a file, so its peer may be far slower than the others, and says so.
    let is_of_pace = |event: &Value| event["message"].to_string().contains("all local steps of a round take this peer");
    let is_trouble = |event: &&Value| {
        ["warning", "set_back", "failed"].iter().any(|kind| event["event"] == *kind) && !is_of_pace(event)
    };
    let trouble: Vec<&Value> = events.iter().filter(is_trouble).collect();
    assert!(trouble.is_empty(), "{trouble:#?}");

    // It goes on two days before it was killed.
    peers[0].kill();
    clock.step("-1d");
    peers[0] = start();
    peers[0].wait_for("recovered");
    go_on(&mut peers);
    peers.iter_mut().for_each(RunningPeer::kill);
    swarm.audit("after a clock has jumped");
}

#[test]
fn who_waits_for_nobody_is_not_held_up_by_a_peer_that_is_ten_times_slower_and_all_go_on_together() {
    let swarm = PlannedSwarm::new(4, ENDLESS);
    let mut peers: Vec<RunningPeer> =
        (0..4).map(|node| swarm.start_with(node, &["--wait", "async", "--deadline", "200ms"])).collect();
    go_on(&mut peers);
    let (fast, slow) = peers.split_at_mut(3);
    let cycles = 6;
    let usual = time_of_rounds(fast, 9 * cycles);
    let mut beside_a_slow_one = Duration::ZERO;
    for _ in 0..cycles {
        // Limited in rounds rather than in time: the speed of a busy machine changes too much.
        slow[0].signal("STOP");
        beside_a_slow_one += time_of_rounds(fast, 9);
        slow[0].signal("CONT");
        time_of_rounds(slow, 1);
    }
    assert!(beside_a_slow_one < 4 * usual, "{beside_a_slow_one:?} for what took {usual:?}");
    go_on(&mut peers);
    peers.iter().for_each(|peer| peer.signal("INT"));
    for peer in &mut peers {
        let end = peer.wait_through_rounds_for("done");
        assert_eq!((end["event"].as_str(), peer.exit_code()), (Some("done"), Some(0)), "{end}");
    }
    swarm.audit("with a slow peer");
}

/// The time until each peer has done so many rounds more.
fn time_of_rounds(peers: &mut [RunningPeer], rounds: u32) -> Duration {
    let began = Instant::now();
    for peer in peers.iter_mut() {
        peer.forget_what_it_said();
    }
    for peer in peers {
        for _ in 0..rounds {
            let round = peer.wait_for("round");
            assert_eq!(round["event"], "round", "{round}");
        }
    }
    began.elapsed()
}
