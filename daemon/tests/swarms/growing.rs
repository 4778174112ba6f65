//! Swarms of real peers that grow and shrink while they train: no member ends for it, and every weight is there.

use std::path::PathBuf;

use crate::support::founded_swarm::PLANS_ITSELF;
use crate::support::{RunningPeer, run, stderr, stdout, text};

const TASK: [&str; 8] = ["--model", "softmax", "--split", "iid", "--evaluate-every", "20", "--rounds", "10000000"];

/// The homes of a swarm with an operator.
struct Swarm {
    folder: tempfile::TempDir,
}

impl Swarm {
    fn found() -> Self {
        let swarm = Self { folder: tempfile::tempdir().unwrap() };
        let founded = run(&["init", "--home", text(&swarm.home(0)), "--swarm", "g"]);
        assert!(founded.status.success(), "{}", stderr(&founded));
        swarm
    }

    fn home(&self, peer: usize) -> PathBuf {
        self.folder.path().join(peer.to_string())
    }

    fn start(&self, peer: usize, more: &[&str]) -> RunningPeer {
        RunningPeer::start(&[&["--home", text(&self.home(peer))], &TASK[..], more].concat())
    }

    fn join(&self, peer: usize, more: &[&str]) -> RunningPeer {
        let invited = run(&["invite", "--home", text(&self.home(0))]);
        assert!(invited.status.success(), "{}", stderr(&invited));
        RunningPeer::join(stdout(&invited).trim(), &[&["--home", text(&self.home(peer))], &TASK[..], more].concat())
    }

    /// The number of record slots of a peer.
    fn slots(&self, peer: usize) -> usize {
        let files = std::fs::read_dir(self.home(peer).join("records")).unwrap();
        files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|it| it == "record")).count()
    }

    /// Stops all peers at once, because one that has no sender left ends by itself, and checks that their disks add up.
    fn end(&self, peers: &mut [RunningPeer]) {
        peers.iter().for_each(|peer| peer.signal("INT"));
        for peer in peers.iter_mut() {
            peer.wait_for("done");
            assert_eq!(peer.exit_code(), Some(0));
        }
        let homes: Vec<PathBuf> = (0..peers.len()).map(|peer| self.home(peer)).collect();
        let homes: Vec<&str> = homes.iter().map(|home| text(home)).collect();
        let audit = run(&[&["audit", "--json"], &homes[..]].concat());
        assert!(audit.status.success(), "{}{}", stdout(&audit), stderr(&audit));
    }
}

/// Waits until the peer takes up a plan for so many peers, and goes on training in it.
fn goes_on_among(peer: &mut RunningPeer, members: usize) {
    loop {
        let event = peer.wait_for("new_plan");
        assert_eq!(event["event"], "new_plan", "it ended: {event}");
        if event["nodes"] == members {
            break;
        }
    }
    peer.wait_for("joined");
    trains_on(peer);
}

/// Waits until the peer has trained for forty rounds more, and returns the number of its rounds then.
fn trains_on(peer: &mut RunningPeer) -> u64 {
    let first = peer.wait_for("evaluated");
    let round = first["round"].as_u64().unwrap_or_else(|| panic!("it ended: {first}"));
    loop {
        let now = peer.wait_for("evaluated")["round"].as_u64().unwrap();
        if now >= round + 40 {
            return now;
        }
    }
}

/// Waits until the peer has trained for more rounds since it began than the swarm had finished before: a run that skipped
/// most of its rounds would end as one that is not whole.
fn trains_longer_than_it_was_away(peer: &mut RunningPeer) {
    let first = peer.wait_for("evaluated")["round"].as_u64().unwrap();
    while peer.wait_for("evaluated")["round"].as_u64().unwrap() <= 2 * first + 40 {}
}

fn goes_on_training(peer: &mut RunningPeer) {
    trains_on(peer);
}

#[test]
fn a_peer_that_joined_shows_the_settings_of_its_swarm_and_exports_its_rounds_under_all_plans() {
    let swarm = Swarm::found();
    let mut first = swarm.start(0, &PLANS_ITSELF[..]);
    first.address();
    let invited = run(&["invite", "--home", text(&swarm.home(0))]);
    let home = swarm.home(1);
    let mut second = RunningPeer::join(stdout(&invited).trim(), &["--home", text(&home), "--evaluate-every", "20"]);
    let under_the_first_plan = trains_on(&mut second);
    let mut third = swarm.join(2, &[]);
    goes_on_among(&mut second, 3);
    let rounds = trains_on(&mut second);
    assert!(rounds > under_the_first_plan + 40, "{rounds}");
    second.kill();
    let json = |arguments: &[&str]| {
        let output = run(&[arguments, &["--json", "--home", text(&home)]].concat());
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)))
    };
    let exported = json(&["export", "-o", text(&swarm.folder.path().join("out.safetensors"))]);
    // A round that was evaluated is in a record soon after.
    assert!(exported["round"].as_u64().unwrap() + 10 > rounds, "{exported}, after {rounds} rounds");
    let listed = json(&["ckpt", "list"]).to_string();
    assert!(listed.contains(&format!("\"round\":{}", exported["round"])), "{exported}, {listed}");
    let settings = &json(&["config", "show"])["settings"];
    for (key, value) in [("model", "softmax".into()), ("rounds", serde_json::Value::from(10_000_000))] {
        assert_eq!(settings[key], serde_json::json!({ "value": value, "origin": "swarm" }), "{key}");
    }
    assert_eq!(settings["evaluate_every"]["origin"], "last-run");
    assert_eq!(settings["wait"]["origin"], "default");
    third.kill();
    first.kill();
}

#[test]
fn a_peer_that_joined_by_ticket_is_started_again_with_the_same_ticket_or_without() {
    let swarm = Swarm::found();
    let mut first = swarm.start(0, &PLANS_ITSELF[..]);
    first.address();
    let ticket = stdout(&run(&["invite", "--home", text(&swarm.home(0))]));
    let home = swarm.home(1);
    let join = || RunningPeer::join(ticket.trim(), &["--home", text(&home), "--evaluate-every", "20"]);
    let go_on = || RunningPeer::start(&["--home", text(&home)]);
    let starts: [&dyn Fn() -> RunningPeer; 3] = [&join, &join, &go_on];
    for (number, start) in starts.into_iter().enumerate() {
        let mut second = start();
        if number > 0 {
            assert_eq!(second.wait_for("recovered")["event"], "recovered");
        }
        trains_longer_than_it_was_away(&mut second);
        second.signal("TERM");
        second.wait_for("done");
        assert_eq!(second.exit_code(), Some(0));
    }
    first.kill();
}

#[test]
fn a_swarm_that_plans_itself_grows_from_one_to_five_while_it_trains() {
    let swarm = Swarm::found();
    let mut peers = vec![swarm.start(0, &PLANS_ITSELF[..])];
    peers[0].address();
    for newcomer in 1..5 {
        let mut peer = swarm.join(newcomer, &[]);
        let plan = peer.wait_for("plan");
        assert_eq!(plan["event"], "plan", "{plan}");
        for member in &mut peers {
            // The founder alone has no plan before there are two.
            if newcomer > 1 {
                goes_on_among(member, newcomer + 1);
            } else {
                trains_on(member);
            }
        }
        trains_on(&mut peer);
        peers.push(peer);
        // Each of them has four parcels on the way to each receiver at most.
        assert!((0..=newcomer).all(|peer| swarm.slots(peer) >= 6), "{newcomer}");
    }
    swarm.end(&mut peers);
}

#[test]
fn a_newcomer_begins_with_the_model_of_a_member_that_is_back_and_has_met_nobody_yet() {
    let swarm = Swarm::found();
    let soon = ["--join-timeout", "1s"];
    let operator = [&PLANS_ITSELF[..], &soon[..]].concat();
    let mut first = swarm.start(0, &operator);
    first.address();
    let mut second = swarm.join(1, &soon);
    trains_on(&mut second);
    second.kill();
    first.signal("INT");
    first.wait_for("done");
    assert_eq!(first.exit_code(), Some(0));

    let mut first = swarm.start(0, &operator);
    assert_eq!(first.wait_for("waiting")["missing"], serde_json::json!([1]));
    let mut third = swarm.join(2, &soon);
    assert_eq!(third.wait_for("waiting_for_model")["members"], 2);
    assert_eq!(third.wait_for("borrowed")["peers"].as_array().unwrap().len(), 1);
    trains_on(&mut third);
    goes_on_among(&mut first, 3);
}

#[test]
fn members_that_get_more_receivers_while_a_neighbour_stands_still_go_on_and_give_the_room_back() {
    let swarm = Swarm::found();
    let mut peers = vec![swarm.start(0, &[])];
    peers[0].address();
    for peer in 1..5 {
        let mut peer = swarm.join(peer, &[]);
        peer.wait_for("admitted");
        peers.push(peer);
    }
    let apply = |topology: &str, members: &[usize]| {
        let plan = swarm.folder.path().join("plan.json");
        let made = run(&["plan", "make", "--topology", topology, "--method", "d-psgd", "-o", text(&plan)]);
        assert!(made.status.success(), "{}", stderr(&made));
        for (node, peer) in members.iter().enumerate() {
            let id = stdout(&run(&["id", "--home", text(&swarm.home(*peer))]));
            let binding = format!("{node}={}", id.trim());
            assert!(run(&["plan", "bind", text(&plan), "--peer", &binding]).status.success());
        }
        run(&["plan", "apply", text(&plan), "--home", text(&swarm.home(0)), "--timeout", "10s"])
    };
    let applied = apply("complete:n=3", &[0, 1, 2]);
    assert!(applied.status.success(), "{}", stderr(&applied));
    peers[..3].iter_mut().for_each(goes_on_training);
    assert_eq!([0, 1, 2].map(|peer| swarm.slots(peer)), [10; 3]);
    let applied = apply("complete:n=5", &[0, 1, 2, 3, 4]);
    assert!(applied.status.success(), "{}", stderr(&applied));
    peers.iter_mut().for_each(goes_on_training);
    assert_eq!([0, 1, 2, 3, 4].map(|peer| swarm.slots(peer)), [18; 5]);
    // Parcels to it are owed for as long as it stands still, each in a record of its own.
    peers[..4].iter_mut().for_each(RunningPeer::forget_what_it_said);
    peers[4].signal("STOP");
    for peer in &mut peers[..4] {
        assert_eq!(peer.wait_for("suspended")["event"], "suspended");
        trains_on(peer);
    }
    peers[4].signal("CONT");
    peers.iter_mut().for_each(goes_on_training);
    // With two receivers less, their slots are removed.
    let applied = apply("complete:n=3", &[0, 1, 2]);
    assert!(applied.status.success(), "{}", stderr(&applied));
    for peer in &mut peers[..3] {
        goes_on_among(peer, 3);
    }
    assert_eq!([0, 1, 2].map(|peer| swarm.slots(peer)), [10; 3]);
    peers.truncate(3);
    swarm.end(&mut peers);
}
