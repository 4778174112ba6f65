//! Real processes that are killed outright, again and again: they resume where they were, and no mass is lost or
//! doubled.

use crate::support::planned_swarm::{ONE, PlannedSwarm};
use crate::support::{RunningPeer, run, stdout, text};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

/// A number from the environment.
fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// Waits for the `count`-th event of a kind from now on.
fn wait_for_events(peer: &mut RunningPeer, kind: &str, count: u32) {
    for _ in 0..count {
        let event = peer.wait_for(kind);
        assert!(event.get("error").is_none(), "{event}");
    }
}

#[test]
fn peers_that_are_killed_again_and_again_go_on_where_they_were_and_no_unit_of_mass_is_lost() {
    // Another seed is another history: scripts/campaign crashes 7
    let seed = number("MINGLE_CRASH_SEED", 20);
    let crashes = number("MINGLE_CRASHES", 10);
    let nodes = usize::try_from(number("MINGLE_CRASH_PEERS", 4)).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let swarm = PlannedSwarm::new(nodes, 300 + 30 * crashes);
    let mut peers = swarm.start_all();
    let mut history = vec![format!("seed {seed}")];
    // Everyone is under way before the first blow.
    peers.iter_mut().for_each(|peer| assert_eq!(peer.wait_for("round")["event"], "round"));
    for _ in 0..crashes {
        let (victim, rounds) = (random.random_range(0..nodes), random.random_range(1..12));
        wait_for_events(&mut peers[victim], "round", rounds);
        peers[victim].kill();
        peers[victim] = swarm.start(victim);
        history.push(format!("node {victim} after {rounds} rounds"));
        // Now and then it does not even come to start again.
        if random.random_bool(0.5) {
            let moment = ["listening", "task", "recovered", "joined"][random.random_range(0..4)];
            wait_for_events(&mut peers[victim], moment, 1);
            peers[victim].kill();
            peers[victim] = swarm.start(victim);
            history.push(format!("and again when {moment}"));
        }
        let recovered = peers[victim].wait_for("recovered");
        assert!(recovered["record"].as_u64() > Some(1), "{history:?}: {recovered}");
    }
    // The power goes out: all of them at once, and the disks alone must account for all mass.
    peers.iter_mut().for_each(RunningPeer::kill);
    let report = swarm.audit(&format!("{history:?}, then all"));
    let step = |peer: &Value| peer["step"].as_u64().unwrap();
    assert!(report["peers"].as_array().unwrap().iter().all(|peer| step(peer) < swarm.rounds), "{report:#}");
    let mut peers = swarm.start_all();
    swarm.finish(&mut peers, &format!("{history:?}, then all, then again"));
    // The run is over, and a peer that starts the same again reports so.
    for node in 0..nodes {
        let mut again = swarm.start(node);
        assert_eq!(again.wait_for("finished")["round"], swarm.rounds);
        assert_eq!(again.exit_code(), Some(0));
    }
    swarm.audit("started again after the end");
}

#[test]
fn weight_on_disk_is_not_forgotten_unasked_and_is_given_up_when_asked() {
    let swarm = PlannedSwarm::new(4, 100_000);
    let mut peers = swarm.start_all();
    // So many rounds are not possible without parcels that both sides have applied and confirmed.
    wait_for_events(&mut peers[0], "round", 30);
    peers[0].kill();
    let refused = |more: &[&str], words: &[&str]| {
        let mut peer = swarm.start_with(0, more);
        let end = peer.wait_for("done");
        assert_eq!((end["error"]["code"].as_u64(), peer.exit_code()), (Some(6), Some(6)), "{end}");
        let said = end["error"].to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    };
    refused(&["--durability", "off"], &["not over", "--durability on", "--fresh"]);
    refused(&["--seed", "1"], &["holds the work of another run", "the seed is 1 here and 0 there", "--fresh"]);
    // Its neighbours remember it: it gets no second starting weight, and is notified.
    peers[0] = swarm.start_with(0, &["--fresh"]);
    let set_back = peers[0].wait_for("set_back");
    assert_eq!((set_back["incarnation"].as_u64(), set_back["discarded_units"].as_u64()), (Some(2), Some(ONE)));
    wait_for_events(&mut peers[0], "round", 1);
    peers.iter_mut().for_each(RunningPeer::kill);
    let output = run(&["audit", "--json", text(&swarm.peers())]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(output.status.success(), "{report:#}");
    assert_eq!(report["verdict"], "incomplete", "{report:#}");
    assert!(report["sum_units"].as_u64() < report["expected_units"].as_u64(), "{report:#}");
}

#[cfg(unix)]
#[test]
fn peers_that_were_interrupted_keep_their_weight_and_go_on_with_it() {
    let swarm = PlannedSwarm::new(4, 300);
    let mut peers = swarm.start_all();
    wait_for_events(&mut peers[1], "round", 5);
    for peer in &peers {
        let sent = std::process::Command::new("kill").args(["-s", "INT", &peer.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
    for peer in &mut peers {
        assert_eq!(peer.wait_for("done")["event"], "done");
        assert_eq!(peer.exit_code(), Some(0));
    }
    swarm.audit("interrupted");
    let mut peers = swarm.start_all();
    for (node, peer) in peers.iter_mut().enumerate() {
        let round = peer.wait_for("recovered")["round"].as_u64().unwrap();
        assert!((1..swarm.rounds).contains(&round), "node {node} goes on at round {round}");
    }
    swarm.finish(&mut peers, "after an interruption");
}
