//! Loss, duplication, delay, reordering and broken links: mass is exact at every instant, and the average still comes.

use std::time::Duration;

use mingle_protocol::sim::{Fault, SimulatedSwarm, SwarmConfig};
use mingle_protocol::{NodeEvent, NodeId, Suspension, Time};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::*;

/// Breaks random links for a while, again and again, until `until`.
pub(crate) fn flap_links(swarm: &mut SimulatedSwarm, nodes: u32, until: Time, rng: &mut ChaCha8Rng) {
    let mut at = Time::from_millis(rng.random_range(0..2_000));
    while at < until {
        let (a, b) = (rng.random_range(0..nodes), rng.random_range(0..nodes));
        if a != b {
            let up = at + Duration::from_millis(rng.random_range(1..8_000));
            swarm.at(at, Fault::LinkDown(NodeId(a), NodeId(b)));
            swarm.at(up, Fault::LinkUp(NodeId(a), NodeId(b)));
        }
        at = at + Duration::from_millis(rng.random_range(1..3_000));
    }
}

proptest! {
    /// The simulator adds up the whole swarm's mass after every event; the run only has to end.
    #[test]
    fn mass_is_conserved_to_the_unit_whatever_happens_to_messages_and_links(
        seed: u64, nodes in 2u32..9, chords in 0usize..12, period in 1usize..4,
        drop in 0.0f64..0.6, duplicate in 0.0f64..0.2, policy in 0usize..3, is_stream: bool,
    ) {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let steps: Vec<_> = (0..period).map(|_| random_step(nodes, chords, rng)).collect();
        let schedule = std::sync::Arc::new(mingle_protocol::Schedule::new(nodes as usize, &steps, 0).unwrap());
        let config = SwarmConfig { policy: POLICIES[policy], seed, ..averaging(schedule, nodes, 30) };
        let config = if is_stream { config } else { config.over_datagrams(drop, duplicate) };
        let mut swarm = SimulatedSwarm::new(config).unwrap();
        flap_links(&mut swarm, nodes, Time::from_millis(40_000), rng);
        swarm.run_until_drained(HOUR).unwrap();
        let audit = swarm.audit();
        prop_assert!(audit.is_complete(), "{audit}");
        prop_assert_eq!(audit.in_flight, swarm.outstanding());
    }
}

#[test]
fn averaging_survives_the_loss_of_half_of_all_messages() {
    for (policy, seed) in POLICIES.into_iter().zip(0..) {
        let config = SwarmConfig { policy, seed, ..averaging(random_plan(8, 8, 0), 8, 300).over_datagrams(0.5, 0.1) };
        let mean = mean_of(&config.initial);
        let mut swarm = SimulatedSwarm::new(config).unwrap();
        swarm.run_until_drained(HOUR).unwrap();
        assert!(swarm.audit().is_exact());
        let distance = worst_distance(&mut swarm, 8, &mean);
        assert!(distance < 1e-3, "{policy:?}: {distance}");
    }
}

#[test]
fn both_halves_of_a_partition_go_on_and_agree_once_it_heals() {
    let config = averaging(random_plan(6, 10, 0), 6, 4_000);
    let mean = mean_of(&config.initial);
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    for a in 0..3 {
        for b in 3..6 {
            swarm.at(Time::from_millis(200), Fault::LinkDown(NodeId(a), NodeId(b)));
            swarm.at(Time::from_millis(20_000), Fault::LinkUp(NodeId(a), NodeId(b)));
        }
    }
    swarm.run_until(Time::from_millis(15_000)).unwrap();
    let during: Vec<u64> = ids(6).map(|id| swarm.node(id).unwrap().round()).collect();
    swarm.run_until(Time::from_millis(19_000)).unwrap();
    for (id, before) in ids(6).zip(during) {
        assert!(swarm.node(id).unwrap().round() > before, "node {id} stood still during the partition");
        assert!(swarm.node(id).unwrap().neighbour_views().any(|view| view.suspended.is_some()), "node {id}");
    }
    swarm.run_until_drained(HOUR).unwrap();
    assert!(swarm.audit().is_complete());
    assert!(worst_distance(&mut swarm, 6, &mean) < 1e-4);
}

#[test]
fn a_silent_neighbour_is_suspended_and_taken_back_when_it_speaks() {
    // Datagrams: no link-down notifies the nodes that the network is gone; they notice the silence.
    let mut dark = SimulatedSwarm::new(averaging(random_plan(2, 0, 0), 2, 10).over_datagrams(1.0, 0.0)).unwrap();
    dark.run_until(Time::from_millis(60_000)).unwrap();
    for id in ids(2) {
        assert_eq!(dark.node(id).unwrap().missing_neighbours().len(), 1, "nobody was ever heard");
    }
    let mut swarm = SimulatedSwarm::new(averaging(random_plan(2, 0, 0), 2, 3_000)).unwrap();
    swarm.at(Time::from_millis(500), Fault::LinkDown(NodeId(0), NodeId(1)));
    swarm.at(Time::from_millis(9_000), Fault::LinkUp(NodeId(0), NodeId(1)));
    swarm.run_until_drained(HOUR).unwrap();
    for id in ids(2) {
        let reported: Vec<&NodeEvent> = swarm
            .events()
            .iter()
            .filter(|(_, at, _)| *at == id)
            .map(|(_, _, event)| event)
            .filter(|event| matches!(event, NodeEvent::NeighbourSuspended { .. } | NodeEvent::NeighbourBack { .. }))
            .collect();
        let peer = NodeId(1 - id.0);
        let suspended = NodeEvent::NeighbourSuspended { peer, reason: Suspension::LinkDown };
        assert_eq!(reported, [&suspended, &NodeEvent::NeighbourBack { peer }]);
    }
    assert!(swarm.audit().is_complete());
}
