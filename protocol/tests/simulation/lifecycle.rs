//! Beginning, stopping early, and draining.

use mingle_protocol::sim::{Fault, SimulatedSwarm, SwarmConfig};
use mingle_protocol::{NeighbourView, NodeEvent, NodeId, NodeState, Time, WaitPolicy};

use crate::support::*;
use crate::training::least_squares;

#[test]
fn a_node_that_stops_early_hands_over_what_it_promised_and_the_others_go_on() {
    for policy in POLICIES {
        let mut swarm =
            SimulatedSwarm::new(SwarmConfig { policy, ..averaging(random_plan(6, 9, 0), 6, 2_000) }).unwrap();
        swarm.at(Time::from_millis(1_000), Fault::Stop(NodeId(4)));
        swarm.run_until_drained(HOUR).unwrap();
        let stopped = swarm.node(NodeId(4)).unwrap().round();
        assert!(stopped < 1_000, "it was stopped long before the end");
        for id in ids(6).filter(|id| *id != NodeId(4)) {
            let node = swarm.node(id).unwrap();
            // An asynchronous node that only averages is done when all that could send to it are.
            let wanted = if policy == WaitPolicy::Sync { 2_000 } else { stopped + 200 };
            assert!(node.round() >= wanted, "{policy:?}: node {id} ended in round {}", node.round());
            let waits_in_vain = |view: NeighbourView| view.id == NodeId(4) && view.suspended.is_some();
            assert!(!node.neighbour_views().any(waits_in_vain), "{policy:?}");
        }
        let audit = swarm.audit();
        assert!(audit.is_complete() && audit.in_flight == 0, "{policy:?}: {audit}");
    }
}

#[test]
fn stopping_everyone_in_the_middle_drains_to_the_unit() {
    for millis in [0, 1, 15, 40, 100, 555, 1_234] {
        let mut swarm = SimulatedSwarm::new(least_squares(6, 10_000, 0.05)).unwrap();
        for id in ids(6) {
            swarm.at(Time::from_millis(millis + 7 * u64::from(id.0)), Fault::Stop(id));
        }
        swarm.run_until_drained(HOUR).unwrap();
        let audit = swarm.audit();
        assert!(audit.is_complete() && audit.in_flight == 0, "stopped at {millis} ms: {audit}");
        let gave_up = swarm.events().iter().any(|(_, _, event)| matches!(event, NodeEvent::DrainGaveUp { .. }));
        assert!(!gave_up, "stopped at {millis} ms");
    }
}

#[test]
fn a_neighbour_that_is_gone_holds_up_draining_only_until_the_deadline() {
    let mut swarm = SimulatedSwarm::new(averaging(random_plan(4, 4, 0), 4, 50)).unwrap();
    swarm.at(Time::from_millis(400), Fault::Crash(NodeId(1)));
    swarm.run_until_drained(HOUR).unwrap();
    for id in [0, 2, 3].map(NodeId) {
        assert_eq!(swarm.node(id).unwrap().state(), NodeState::Drained);
    }
    let gave_up = swarm.events().iter().find_map(|(_, _, event)| match event {
        NodeEvent::DrainGaveUp { undelivered } => Some(undelivered.clone()),
        _ => None,
    });
    assert!(gave_up.is_some_and(|undelivered| undelivered.iter().all(|(peer, _)| *peer == NodeId(1))));
}

#[test]
fn nobody_begins_before_every_neighbour_is_there() {
    let mut swarm = SimulatedSwarm::new(averaging(random_plan(3, 0, 0), 3, 50)).unwrap();
    swarm.at(Time::default(), Fault::LinkDown(NodeId(0), NodeId(1)));
    swarm.at(Time::from_millis(30_000), Fault::LinkUp(NodeId(0), NodeId(1)));
    swarm.run_until(Time::from_millis(29_999)).unwrap();
    for (node, missing) in [(0, 1), (1, 0)] {
        let node = swarm.node(NodeId(node)).unwrap();
        assert_eq!(node.state(), NodeState::Gathering);
        assert_eq!(node.missing_neighbours(), [NodeId(missing)]);
    }
    swarm.run_until_drained(HOUR).unwrap();
    assert!(swarm.audit().is_complete());
    let started = swarm.events().iter().filter(|(_, _, event)| matches!(event, NodeEvent::Started { step: 0 })).count();
    assert_eq!(started, 3);
}
