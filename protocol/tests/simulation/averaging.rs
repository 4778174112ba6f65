//! Without training every swarm agrees on the average of its initial ratios.

use std::sync::Arc;

use mingle_protocol::sim::{SimulatedSwarm, SwarmConfig};
use mingle_protocol::{NodeEvent, NodeId, NodeState, Schedule, Step, WaitPolicy};

use crate::support::*;

#[test]
fn a_fault_free_swarm_agrees_on_the_average() {
    for policy in POLICIES {
        let config = averaging(random_plan(8, 8, 0), 8, 150);
        let mean = mean_of(&config.initial);
        let mut swarm = SimulatedSwarm::new(SwarmConfig { policy, ..config }).unwrap();
        swarm.run_until_drained(HOUR).unwrap();
        assert!(swarm.audit().is_complete(), "{policy:?}: {}", swarm.audit());
        let distance = worst_distance(&mut swarm, 8, &mean);
        assert!(distance < 1e-4, "{policy:?}: {distance}");
    }
}

#[test]
fn weights_that_are_not_uniform_give_the_same_average() {
    let steps = uneven_ring(5);
    let schedule = Arc::new(Schedule::new(5, &[steps], 0).unwrap());
    let config = averaging(Arc::clone(&schedule), 5, 200);
    let mean = mean_of(&config.initial);
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    swarm.run_until_drained(HOUR).unwrap();
    assert!(worst_distance(&mut swarm, 5, &mean) < 1e-5);
    for id in ids(5) {
        let settled = schedule.stationary_weight(id, 0);
        assert!((swarm.node(id).unwrap().w() - settled).abs() < 1e-6, "node {id} does not hold w*");
        assert!((settled - 1.0).abs() > 0.05, "the plan is meant to be uneven");
    }
}

/// A node gives less than planned where it is short of weight and its neighbours may take without giving. Weights that are on
/// their way to the usual ones are no sign of that.
#[test]
fn weights_follow_the_plan_from_the_first_round_on() {
    const NODES: u32 = 6;
    // Each sends to the next two; the last two keep little, and what they get comes from nodes that begin with less than usual.
    let keep = |i: u32| if i < 4 { 0.7 } else { 0.1 };
    let links = |i: u32| [1, 2].map(|away| (NodeId(i), NodeId((i + away) % NODES), (1.0 - keep(i)) / 2.0));
    let step = Step { keep: (0..NODES).map(keep).collect(), links: (0..NODES).flat_map(links).collect() };
    let schedule = Arc::new(Schedule::new(NODES as usize, std::slice::from_ref(&step), 0).unwrap());
    assert!(!schedule.is_reversible());
    let mut swarm = SimulatedSwarm::new(averaging(Arc::clone(&schedule), NODES, 60)).unwrap();
    swarm.run_until_drained(HOUR).unwrap();
    let mut planned = vec![1.0; NODES as usize];
    for round in 0..40 {
        let mut next: Vec<f64> = planned.iter().zip(&step.keep).map(|(weight, keep)| weight * keep).collect();
        step.links.iter().for_each(|(from, to, share)| next[to.index()] += share * planned[from.index()]);
        planned = next;
        for (id, report) in rounds_of(&swarm).filter(|(_, report)| report.round == round) {
            let weight = report.mass.to_f64();
            assert!((weight - planned[id.index()]).abs() < 1e-6, "round {round}, {id}: {weight}, planned {planned:?}");
        }
    }
}

fn uneven_ring(nodes: u32) -> Step {
    let share = |i: u32| 0.2 + 0.1 * f64::from(i);
    Step {
        keep: (0..nodes).map(|i| 1.0 - share(i)).collect(),
        links: (0..nodes).map(|i| (NodeId(i), NodeId((i + 1) % nodes), share(i))).collect(),
    }
}

/// Up a binary tree of seven nodes to its root and down again: four steps, in which most nodes keep nothing.
fn gather_and_scatter() -> Vec<Step> {
    let parent = |i: u32| NodeId((i - 1) / 2);
    let mut steps = vec![Step::default(); 4];
    for (step, level) in [(0, 3..7), (1, 1..3)] {
        steps[step].keep = (0..7).map(|i| if level.contains(&i) { 0.0 } else { 1.0 }).collect();
        steps[step].links = level.map(|i| (NodeId(i), parent(i), 1.0)).collect();
    }
    let third = 1.0 / 3.0;
    // The root keeps one seventh and gives three sevenths to each subtree; those keep a third and give two away.
    steps[2].keep = (0..7).map(|i| if i == 0 { 1.0 / 7.0 } else { 1.0 }).collect();
    steps[2].links = [1, 2].map(|i| (NodeId(0), NodeId(i), 3.0 / 7.0)).to_vec();
    steps[3].keep = (0..7).map(|i| if i == 1 || i == 2 { third } else { 1.0 }).collect();
    steps[3].links = (3..7).map(|i| (parent(i), NodeId(i), third)).collect();
    steps
}

#[test]
fn gathering_and_scattering_on_a_tree_averages_exactly_in_every_period() {
    let schedule = Arc::new(Schedule::new(7, &gather_and_scatter(), 0).unwrap());
    for rounds in [1, 2, 5] {
        let config = averaging(Arc::clone(&schedule), 7, rounds);
        let mean = mean_of(&config.initial);
        let mut swarm = SimulatedSwarm::new(config).unwrap();
        swarm.run_until_drained(HOUR).unwrap();
        for id in ids(7) {
            assert_close(&swarm.ratio(id), &mean, 2e-6);
            let w = swarm.node(id).unwrap().w();
            assert!((w - 1.0).abs() < 1e-9, "node {id} holds {w} after a whole period");
        }
        assert!(swarm.audit().is_complete());
        let missed = swarm.events().iter().any(|(_, _, event)| matches!(event, NodeEvent::DeadlineMissed { .. }));
        assert!(!missed, "nobody waits for a parcel the plan does not have");
    }
}

#[test]
fn averaging_conserves_the_numerators_up_to_rounding() {
    let config = averaging(random_plan(10, 12, 0), 10, 500);
    let before: Vec<f64> = mean_of(&config.initial).iter().map(|mean| 10.0 * f64::from(*mean)).collect();
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    swarm.run_until_drained(HOUR).unwrap();
    for (after, before) in numerator_sum(&swarm, 10).iter().zip(&before) {
        assert!((after - before).abs() < 1e-5 * before.abs(), "{after} was {before}");
    }
}

#[test]
fn a_node_without_neighbours_has_nothing_to_average_and_drains_at_once() {
    let schedule = Schedule::new(1, &[Step { keep: vec![1.0], links: Vec::new() }], 0).unwrap();
    let mut swarm = SimulatedSwarm::new(averaging(Arc::new(schedule), 1, 1_000_000)).unwrap();
    swarm.run_until_drained(HOUR).unwrap();
    assert_eq!(swarm.node(NodeId(0)).unwrap().state(), NodeState::Drained);
    assert!(swarm.audit().is_complete());
}

#[test]
fn disagreement_falls_to_nothing_as_the_nodes_agree() {
    let mut swarm = SimulatedSwarm::new(averaging(random_plan(6, 6, 0), 6, 100)).unwrap();
    swarm.run_until_drained(HOUR).unwrap();
    let at_round = |wanted: u64| -> Vec<f64> {
        let report = |event: &NodeEvent| match event {
            NodeEvent::RoundFinished(report) if report.round == wanted => report.disagreement,
            _ => None,
        };
        swarm.events().iter().filter_map(|(_, _, event)| report(event)).collect()
    };
    assert_eq!((at_round(0).len(), at_round(99).len()), (6, 6));
    assert!(at_round(0).iter().all(|disagreement| *disagreement > 0.05));
    assert!(at_round(99).iter().all(|disagreement| *disagreement < 1e-5));
}

#[test]
fn policies_differ_in_waiting_and_in_nothing_else() {
    // A bounded swarm whose staleness no node can reach behaves like an asynchronous one that trains.
    for policy in [WaitPolicy::Bounded { staleness: 0 }, WaitPolicy::Bounded { staleness: u64::MAX }] {
        let config = averaging(random_plan(4, 2, 0), 4, 80);
        let mean = mean_of(&config.initial);
        let mut swarm = SimulatedSwarm::new(SwarmConfig { policy, ..config }).unwrap();
        swarm.run_until_drained(HOUR).unwrap();
        let distance = worst_distance(&mut swarm, 4, &mean);
        assert!(distance < 1e-4, "{policy:?}: {distance}");
        assert!(swarm.audit().is_complete());
    }
}
