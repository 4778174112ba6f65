//! The cost of a slow site to the others, by the design of their plan: production nodes on virtual time, with the
//! defaults of `mingle run`.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mingle_planner::{DesignOptions, Medium, Method, Topology};
use mingle_protocol::sim::{NetworkModel, SimulatedSwarm, SwarmConfig};
use mingle_protocol::{NodeEvent, NodeId, Schedule, Time, WaitPolicy};
use mingle_solving::schedule;

const LOCAL_STEPS: u32 = 10;
/// Rounds in which nodes get to know each other's pace, and as many that are timed.
const ROUNDS: u64 = 40;
const LIMIT: Time = Time::from_millis(3_600_000);
const METHODS: [Method; 10] = [
    Method::Auto,
    Method::NguyenHe,
    Method::Tuned,
    Method::ExactAverage,
    Method::Matcha,
    Method::DPsgd,
    Method::SgpUniform,
    Method::Exponential,
    Method::OnePeerExponential,
    Method::BaseGraph(None),
];

/// A plan by a method; `None` where the method takes no such topology.
fn schedule_of(method: Method, topology: &str) -> Option<Arc<Schedule>> {
    let options = DesignOptions { medium: Medium::PointToPoint, local_steps: LOCAL_STEPS, ..DesignOptions::default() };
    let plan = mingle_planner::design(&Topology::generate(topology).unwrap(), method, &options).ok()?;
    Some(Arc::new(schedule(&plan).unwrap()))
}

/// Seconds that the median of the nodes without `slow` needs for the timed rounds.
fn time_of_the_others(schedule: &Arc<Schedule>, slow: NodeId, slowness: u32) -> f64 {
    let nodes = schedule.nodes();
    let delay = (Duration::from_millis(1), Duration::from_millis(5));
    let config = SwarmConfig {
        policy: WaitPolicy::default(),
        keeps_up: true,
        seed: 1,
        network: NetworkModel { delay, ..NetworkModel::streams() },
        training_time: (Duration::from_millis(90), Duration::from_millis(110)),
        slowness: BTreeMap::from([(slow, slowness)]),
        ..SwarmConfig::averaging(Arc::clone(schedule), vec![vec![0.0; 4]; nodes], 100 * ROUNDS)
    };
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    let others = || (0..nodes as u32).map(NodeId).filter(|node| *node != slow);
    while others().any(|node| swarm.node(node).unwrap().round() <= 2 * ROUNDS) {
        let until = swarm.now() + Duration::from_secs(1);
        assert!(until < LIMIT, "the others do not get on");
        swarm.run_until(until).unwrap();
    }
    let end_of = |node: NodeId, round: u64| {
        let ends = swarm.events().iter().filter_map(|(at, id, event)| match event {
            NodeEvent::RoundFinished(report) if *id == node && report.round >= round => Some(*at),
            _ => None,
        });
        ends.min().unwrap()
    };
    let took = |node| end_of(node, 2 * ROUNDS).since(end_of(node, ROUNDS)).as_secs_f64();
    let mut times: Vec<f64> = others().map(took).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
fn a_site_ten_times_slower_costs_the_others_less_than_twice_the_time_by_every_design() {
    let mut too_long = Vec::new();
    for topology in ["complete:n=8", "rg:n=8,r=0.6,seed=1", "star:n=8"] {
        for method in METHODS {
            let Some(schedule) = schedule_of(method, topology) else { continue };
            for slow in [0, 3, 7].map(NodeId) {
                let [usual, beside] = [1, 10].map(|slowness| time_of_the_others(&schedule, slow, slowness));
                println!("{topology}, {method}, node {slow}: {:.2} times as long", beside / usual);
                if beside > 2.0 * usual {
                    too_long.push((topology, method, slow, beside / usual));
                }
            }
        }
    }
    assert!(too_long.is_empty(), "{too_long:?}");
}
