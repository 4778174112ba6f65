//! Training of the next round while the present one is mixed.

use std::time::Duration;

use mingle_protocol::sim::{Fault, NetworkModel, Profile, SimulatedSwarm, SwarmConfig, Variant, run_scenario};
use mingle_protocol::{Codec, Durability, NodeEvent, NodeId, Time, TrainingOverlap, WaitPolicy};

use crate::differences::{NODES, mean_target, swarm};
use crate::support::*;

const ROUNDS: u64 = 60;
const BOUNDED: WaitPolicy = WaitPolicy::Bounded { staleness: 4 };

/// A swarm that averages over a tree of three levels, whose messages and trainings take this time.
fn slow(policy: WaitPolicy, message: u64, training: u64, overlap: TrainingOverlap) -> SwarmConfig {
    let exactly = |milliseconds| (Duration::from_millis(milliseconds), Duration::from_millis(milliseconds));
    SwarmConfig {
        policy,
        overlap,
        keeps_up: true,
        network: NetworkModel { delay: exactly(message), ..NetworkModel::streams() },
        training_time: exactly(training),
        ..swarm(Codec::F32, ROUNDS)
    }
}

/// The time of a run in milliseconds, and the largest distance of a model from the optimum.
fn outcome(config: SwarmConfig) -> (u64, f64) {
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    swarm.run_until_drained(HOUR).unwrap();
    assert!(swarm.is_exact(), "weights add up");
    let rounds = rounds_of(&swarm).filter(|(_, report)| report.round + 1 == ROUNDS);
    assert_eq!(rounds.count(), NODES as usize, "all do all rounds");
    (swarm.now().micros() / 1_000, worst_distance(&mut swarm, NODES, &mean_target()))
}

#[test]
fn mixing_is_hidden_behind_training() {
    for policy in [WaitPolicy::Sync, BOUNDED] {
        // Four messages of 50 ms up and down the tree beside 200 ms of training.
        let (apart, usual) = outcome(slow(policy, 50, 200, TrainingOverlap::Off));
        let (together, late) = outcome(slow(policy, 50, 200, TrainingOverlap::On));
        println!("{policy:?}: {together} ms instead of {apart}; distance {late:.1e} instead of {usual:.1e}");
        assert!((together as f64) < 0.6 * apart as f64, "{policy:?}: {together} ms instead of {apart}");
        assert!(late < 0.02, "{policy:?}: the optimum is {late} away, {usual} without");
    }
}

#[test]
fn a_plan_without_exact_averages_mixes_first() {
    let gossip = |overlap| SwarmConfig { schedule: random_plan(NODES, 8, 1), ..slow(BOUNDED, 50, 200, overlap) };
    assert_eq!(outcome(gossip(TrainingOverlap::On)), outcome(gossip(TrainingOverlap::Off)));
}

#[test]
fn synchronous_runs_with_it_are_the_same_to_the_bit_whatever_the_network_does() {
    let bits = |message, training| {
        let mut swarm = SimulatedSwarm::new(slow(WaitPolicy::Sync, message, training, TrainingOverlap::On)).unwrap();
        swarm.run_until_drained(HOUR).unwrap();
        ids(NODES).flat_map(|id| swarm.ratio(id).iter().map(|z| z.to_bits()).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    assert_eq!(bits(50, 200), bits(20, 10));
}

#[test]
fn a_node_that_is_somewhat_slower_does_all_its_steps() {
    // The others are ready at once in every round: their parcels come after 40 ms, its own training takes 400.
    let config = SwarmConfig { slowness: [(NodeId(2), 2)].into(), ..slow(BOUNDED, 10, 200, TrainingOverlap::On) };
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    swarm.run_until_drained(HOUR).unwrap();
    let is_cut = |event: &NodeEvent| matches!(event, NodeEvent::FarSlower { .. } | NodeEvent::TrainingLate { .. });
    let cut: Vec<_> = swarm.events().iter().filter(|(_, _, event)| is_cut(event)).collect();
    assert!(cut.is_empty(), "{cut:?}");
}

#[test]
fn a_node_ten_times_slower_does_not_hold_up_the_others() {
    let slowness = [(NodeId(2), 10)];
    let (usual, _) = outcome(slow(BOUNDED, 50, 200, TrainingOverlap::On));
    let (with, _) = outcome(SwarmConfig { slowness: slowness.into(), ..slow(BOUNDED, 50, 200, TrainingOverlap::On) });
    assert!(with < 2 * usual, "{with} ms instead of {usual}");
}

#[test]
fn a_change_that_came_before_a_kill_is_not_learnt_twice_or_lost() {
    let config = SwarmConfig { durability: Durability::On, ..slow(BOUNDED, 50, 100, TrainingOverlap::On) };
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    for kill in 0..12 {
        let at = Time::from_millis(1_000 + 730 * kill);
        let id = NodeId(kill as u32 % NODES);
        swarm.at(at, Fault::Crash(id));
        swarm.at(at + Duration::from_millis(300), Fault::Restart(id));
    }
    // The auditor of the simulator compares what all have learnt after every event.
    swarm.run_until_drained(HOUR).unwrap();
    assert!(swarm.is_exact() && swarm.crashes() == 12, "{} crashes", swarm.crashes());
}

#[test]
fn nothing_is_lost_in_campaigns_with_it() {
    let profiles = [(Profile::ExactAverage, 12), (Profile::Mixed, 2), (Profile::Churn, 4)];
    // In the last one a node is killed whose record is of the instant before it took a change.
    let last = (Profile::ExactAverage, 4_000_040..4_000_041);
    for (profile, seeds) in profiles.map(|(profile, seeds)| (profile, 0..seeds)).into_iter().chain([last]) {
        for seed in seeds {
            let variant = Variant { overlap: TrainingOverlap::On, ..Variant::default() };
            let outcome = run_scenario(profile, seed, variant.scenario(profile, seed));
            assert_eq!(outcome.failure, None, "{profile}, seed {seed}");
        }
    }
}
