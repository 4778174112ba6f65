//! The smallest swarms in which a node comes back in the state of a moment ago, with parcels of both of its pasts still
//! under way: marks, bases and chains are for these, and the tests show the harm without them.

use std::collections::BTreeSet;
use std::time::Duration;

use mingle_protocol::sim::{
    Fault, NetworkModel, Profile, Scenario, SimError, SimulatedSwarm, SwarmConfig, TraceEntry, trace_scenario,
};
use mingle_protocol::{Durability, InjectedBug, NodeEvent, NodeId, Suspension, Time, WaitPolicy};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::*;

/// Two or three nodes over a network with delays of seconds, of which node 0 dies.
fn little_swarm(
    seed: u64,
    injected_bug: Option<InjectedBug>,
    durability: Durability,
    rng: &mut ChaCha8Rng,
) -> SimulatedSwarm {
    let nodes = rng.random_range(2..=3);
    let delay = (Duration::from_millis(1), Duration::from_millis(rng.random_range(100..3_000)));
    let config = SwarmConfig {
        seed,
        injected_bug,
        durability,
        policy: WaitPolicy::Async,
        network: NetworkModel { delay, ..NetworkModel::datagrams(rng.random_range(0.0..0.4), 0.2) },
        retransmit_after: Some(Duration::from_millis(300)),
        heartbeat: Duration::from_secs(1),
        drain_deadline: Duration::from_secs(3_600),
        training_time: (Duration::from_millis(10), Duration::from_millis(400)),
        ..averaging(random_plan(nodes, 2, 1), nodes, u64::MAX / 8)
    };
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    for id in ids(nodes) {
        swarm.at(Time::from_millis(20_000), Fault::Stop(id));
    }
    swarm
}

/// Kills a node, and starts it from a copy of its disk from a moment before. Returns whether a rollback was detected;
/// `Err` where weight was lost or doubled and no node noticed.
pub(crate) fn a_moment_back(seed: u64, injected_bug: Option<InjectedBug>) -> Result<bool, SimError> {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let mut swarm = little_swarm(seed, injected_bug, Durability::On, rng);
    let mut at = rng.random_range(500..6_000);
    let mut next = |fault, longest: u64| {
        swarm.at(Time::from_millis(at), fault);
        at += rng.random_range(0..longest);
    };
    next(Fault::BackUpDisk(NodeId(0)), 2_000);
    next(Fault::Crash(NodeId(0)), 1);
    next(Fault::RestoreDisk(NodeId(0)), 1_000);
    next(Fault::Restart(NodeId(0)), 1);
    swarm.run_until_drained(Time::from_millis(120_000))?;
    if swarm.events().iter().any(|(_, _, event)| matches!(event, NodeEvent::RollbackDetected { .. })) {
        return Ok(true);
    }
    let (total, _, expected) = swarm.on_disk();
    let now = swarm.now();
    if total == expected { Ok(false) } else { Err(SimError::TotalMass { now, total, expected }) }
}

/// A swarm that keeps no records, with a node that is killed and begins a new life.
pub(crate) fn a_new_life(seed: u64, injected_bug: Option<InjectedBug>) -> Result<(), SimError> {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let mut swarm = little_swarm(seed, injected_bug, Durability::Off, rng);
    for _ in 0..3 {
        let at = rng.random_range(500..10_000);
        swarm.at(Time::from_millis(at), Fault::Crash(NodeId(0)));
        swarm.at(Time::from_millis(at + rng.random_range(0..1_000)), Fault::Restart(NodeId(0)));
    }
    swarm.run_until_drained(Time::from_millis(120_000))
}

#[test]
fn a_node_that_comes_back_as_a_copy_from_a_moment_before_finds_out_or_adds_up() {
    let noticed =
        (0..60).filter(|&seed| a_moment_back(seed, None).unwrap_or_else(|error| panic!("seed {seed}: {error}")));
    let noticed = noticed.count();
    assert!((10..60).contains(&noticed), "{noticed} of 60 found out: both must occur");
}

#[test]
fn a_new_life_is_given_nothing_that_was_meant_for_the_one_before() {
    for seed in 0..60 {
        a_new_life(seed, None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn nobody_gives_up_its_weight_for_a_liar_but_liars_themselves() {
    let mut contradicted = 0;
    for seed in 0..30 {
        let scenario = Scenario::new(Profile::Hostile, seed);
        let corrupt = |(_, fault): &(Time, Fault)| if let Fault::Corrupt(id) = fault { Some(*id) } else { None };
        let liars: BTreeSet<NodeId> = scenario.faults.iter().filter_map(corrupt).collect();
        let (outcome, log) = trace_scenario(Profile::Hostile, seed, scenario);
        assert_eq!(outcome.failure, None, "seed {seed}");
        for (at, entry) in &log {
            let TraceEntry::Event(id, event) = entry else { continue };
            match event {
                // Its own signed lies about its lives are shown to it.
                NodeEvent::RollbackDetected { .. } => assert!(liars.contains(id), "seed {seed}: node {id} at {at:?}"),
                NodeEvent::NeighbourSuspended { reason: Suspension::Contradicts, .. } => contradicted += 1,
                _ => {}
            }
        }
    }
    assert!(contradicted > 10, "{contradicted}: they did lie about parcels");
}
