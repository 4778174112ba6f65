//! Peers follow their plan with the options that a user gets: its parcels are sent, and the weight is in their hands.

use std::path::PathBuf;

use crate::support::planned_swarm::{ONE, PlannedSwarm};
use crate::support::{RunningPeer, status};
use serde_json::Value;

const ROUNDS: u64 = 300;

/// The weights that a peer reports at the ends of its rounds, as parts of what it begins with.
fn weights_until_round(peer: &mut RunningPeer, last: u64) -> Vec<f64> {
    let mut weights = Vec::new();
    loop {
        let report = peer.wait_for("round");
        weights.push(report["weight_units"].as_u64().unwrap() as f64 / ONE as f64);
        if report["round"].as_u64() >= Some(last) {
            return weights;
        }
    }
}

/// The number of rounds that a running peer has finished, and of parcels that it has sent to each neighbour.
fn sent(status: &Value) -> (u64, Vec<u64>) {
    let parcels = |neighbour: &Value| neighbour["outgoing"]["parcels"].as_u64();
    let links = status["neighbours"].as_array().unwrap().iter().filter_map(parcels).collect();
    (status["round"].as_u64().unwrap(), links)
}

/// Looks at the parcels and weights of peers, each of which sends to every other one in each round, in this number of
/// rounds.
fn assert_faithful(what: &str, homes: &[PathBuf], peers: &mut [RunningPeer]) {
    let weights: Vec<f64> = peers.iter_mut().flat_map(|peer| weights_until_round(peer, ROUNDS)).collect();
    for home in homes {
        let (rounds, links) = sent(&status(home));
        assert_eq!(links.len(), homes.len() - 1, "every round of the plan has a parcel for every other node");
        let fewest = links.iter().min().copied().unwrap_or_default();
        println!("{what}: {fewest} parcels or more to each in {rounds} rounds");
        assert!(fewest as f64 >= 0.95 * rounds as f64, "{what}: {links:?} in {rounds} rounds");
    }
    let in_hand = weights.iter().sum::<f64>() / weights.len() as f64;
    println!("{what}: {in_hand:.3} of the weight in hand");
    assert!(in_hand >= 0.9, "{what}: {in_hand}");
}

#[test]
fn the_parcels_of_the_plan_are_sent_and_weights_are_in_hand() {
    for nodes in [2, 4] {
        let swarm = PlannedSwarm::new(nodes, 1_000_000);
        let homes: Vec<PathBuf> = (0..nodes).map(|node| swarm.home(node)).collect();
        assert_faithful(&format!("{nodes} peers"), &homes, &mut swarm.start_all());
    }
}

#[test]
fn parcels_are_sent_and_weights_are_in_hand_with_every_wait_policy() {
    for wait in ["sync", "bounded:1", "async"] {
        let swarm = PlannedSwarm::new(3, 1_000_000);
        let homes: Vec<PathBuf> = (0..3).map(|node| swarm.home(node)).collect();
        let mut peers: Vec<_> = (0..3).map(|node| swarm.start_with(node, &["--wait", wait])).collect();
        assert_faithful(&format!("--wait {wait}"), &homes, &mut peers);
    }
}
