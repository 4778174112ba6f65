//! Nodes that die, and nodes that come back without their state.

use std::time::Duration;

use mingle_protocol::sim::{Fault, SimulatedSwarm, SwarmConfig};
use mingle_protocol::{NodeEvent, NodeId, Time, UNITS_PER_ONE};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::*;

#[test]
fn the_survivors_go_on_and_their_books_say_what_the_dead_node_held() {
    for seed in 0..20 {
        let config = SwarmConfig { seed, ..averaging(random_plan(7, 14, 0), 7, 400) };
        let mut swarm = SimulatedSwarm::new(config).unwrap();
        let dead = NodeId(seed as u32 % 7);
        swarm.at(Time::from_millis(700 + 13 * seed), Fault::Crash(dead));
        swarm.run_until_drained(HOUR).unwrap();
        let audit = swarm.audit();
        assert!(audit.is_exact(), "seed {seed}: {audit}");
        assert_eq!(audit.absent.len(), 1);
        let absent = audit.absent[0];
        assert_eq!(absent.id, dead);
        // The simulator knows what the node held, and every parcel that never arrived.
        let truth = swarm.lost_with_nodes() + swarm.outstanding();
        let found = absent.held + i128::try_from(audit.in_doubt + audit.written_off + audit.in_flight).unwrap();
        assert_eq!(found, i128::try_from(truth).unwrap(), "seed {seed}: {audit}");
        assert_eq!(audit.held + truth, 7 * u128::from(UNITS_PER_ONE));
        for id in ids(7).filter(|id| *id != dead) {
            assert_eq!(swarm.node(id).unwrap().round(), 400, "node {id} did not finish");
        }
    }
}

#[test]
fn a_node_that_restarts_without_state_takes_its_place_again() {
    let config = averaging(random_plan(5, 8, 0), 5, 2_000);
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    let id = NodeId(3);
    swarm.at(Time::from_millis(1_000), Fault::Crash(id));
    swarm.at(Time::from_millis(4_000), Fault::Restart(id));
    swarm.run_until_drained(HOUR).unwrap();
    let audit = swarm.audit();
    assert!(audit.is_exact(), "{audit}");
    assert!(swarm.node(id).unwrap().w() > 0.1, "it holds {}", swarm.node(id).unwrap().w());
    let reported = |wanted: fn(&NodeEvent) -> bool| swarm.events().iter().filter(|(_, _, event)| wanted(event)).count();
    assert!(reported(|event| matches!(event, NodeEvent::NewIncarnation { incarnation: 2, .. })) > 0);
    let others: Vec<f32> = swarm.ratio(NodeId(0)).to_vec();
    for id in ids(5) {
        assert_close(&swarm.ratio(id), &others, 1e-4);
    }
}

#[test]
fn a_ring_starts_again_after_its_only_parcel_died_with_a_node() {
    // On a ring every parcel passes through every node: if no node split again unfed, one crash would end all mixing.
    let mut swarm = SimulatedSwarm::new(averaging(random_plan(4, 0, 0), 4, 3_000)).unwrap();
    swarm.at(Time::from_millis(900), Fault::Crash(NodeId(2)));
    swarm.at(Time::from_millis(2_500), Fault::Restart(NodeId(2)));
    swarm.run_until_drained(HOUR).unwrap();
    let others: Vec<f32> = swarm.ratio(NodeId(0)).to_vec();
    for id in ids(4) {
        assert!(swarm.node(id).unwrap().w() > 0.05, "node {id} starved");
        assert_close(&swarm.ratio(id), &others, 1e-4);
    }
    assert!(swarm.audit().is_exact());
}

proptest! {
    #[test]
    fn the_books_stay_exact_through_crashes_and_restarts(
        seed: u64, nodes in 3u32..8, drop in 0.0f64..0.4, policy in 0usize..3, is_stream: bool,
    ) {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let config = SwarmConfig {
            policy: POLICIES[policy],
            seed,
            ..averaging(random_plan(nodes, 2 * nodes as usize, 0), nodes, 60)
        };
        let config = if is_stream { config } else { config.over_datagrams(drop, 0.1) };
        let mut swarm = SimulatedSwarm::new(config).unwrap();
        for _ in 0..rng.random_range(1..5) {
            let id = NodeId(rng.random_range(0..nodes));
            let at = Time::from_millis(rng.random_range(0..15_000));
            swarm.at(at, Fault::Crash(id));
            if rng.random_bool(0.7) {
                swarm.at(at + Duration::from_millis(rng.random_range(1..20_000)), Fault::Restart(id));
            }
        }
        // A node that restarts when all its neighbours are dead waits for them for ever: in the end it is stopped.
        for id in ids(nodes) {
            swarm.at(Time::from_millis(300_000), Fault::Stop(id));
        }
        swarm.run_until(Time::from_millis(300_000)).unwrap();
        swarm.run_until_drained(HOUR).unwrap();
        let audit = swarm.audit();
        prop_assert!(audit.is_exact(), "{audit}");
        // The mass that the survivors miss is that which the simulator saw die or get stuck on the way to or from the
        // dead.
        let missing = audit.expected - audit.held;
        prop_assert_eq!(missing, swarm.lost_with_nodes() + swarm.outstanding());
    }
}
