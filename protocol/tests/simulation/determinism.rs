//! The same seed gives the same run; a synchronous swarm gives the same bits whatever the network's timing.

use std::sync::Arc;
use std::time::Duration;

use mingle_protocol::sim::{NetworkModel, SimulatedSwarm, SwarmConfig};
use mingle_protocol::{Codec, NodeId, Schedule, Step, WaitPolicy};

use crate::differences;
use crate::support::*;
use crate::training::least_squares;

fn run(config: SwarmConfig) -> (Vec<Vec<u32>>, [u8; 32]) {
    let nodes = config.schedule.nodes() as u32;
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    swarm.run_until_drained(HOUR).unwrap();
    let bits = ids(nodes).map(|id| swarm.ratio(id).iter().map(|v| v.to_bits()).collect()).collect();
    (bits, swarm.digest())
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_last_byte() {
    for policy in POLICIES {
        let config = || SwarmConfig { policy, seed: 11, ..least_squares(6, 40, 0.05).over_datagrams(0.2, 0.1) };
        let (first, second) = (run(config()), run(config()));
        assert_eq!(first, second);
        assert_ne!(first.1, run(SwarmConfig { seed: 12, ..config() }).1, "the seed must matter");
    }
}

#[test]
fn a_synchronous_swarm_without_faults_gives_the_same_bits_whatever_the_timing() {
    let config = |seed, shortest, longest| SwarmConfig {
        policy: WaitPolicy::Sync,
        seed,
        network: NetworkModel {
            delay: (Duration::from_millis(shortest), Duration::from_millis(longest)),
            ..NetworkModel::streams()
        },
        training_time: (Duration::from_millis(1), Duration::from_millis(longest)),
        ..least_squares(9, 60, 0.05)
    };
    let (reference, digest) = run(config(1, 1, 2));
    for (seed, shortest, longest) in [(2, 1, 2), (3, 0, 300), (4, 50, 400), (5, 1, 500)] {
        let (bits, other) = run(config(seed, shortest, longest));
        assert_eq!(bits, reference, "seed {seed}, delays {shortest} to {longest} ms");
        assert_ne!(other, digest, "the timing was meant to differ");
    }
}

/// The plan of eight nodes by which a demo trains: each keeps as much as it gives each receiver. The first weights are not
/// the usual ones, so that credit binds.
fn plan_of_a_demo() -> Arc<Schedule> {
    let receivers: [&[u32]; 8] = [
        &[1, 2, 4, 5, 6, 7],
        &[0, 4, 6],
        &[0, 3, 4, 5, 6, 7],
        &[2, 5, 7],
        &[0, 1, 2, 6],
        &[0, 2, 3, 7],
        &[0, 1, 2, 4, 7],
        &[0, 2, 3, 5, 6],
    ];
    let share = |from: usize| 1.0 / (receivers[from].len() + 1) as f64;
    let links = |from: usize| receivers[from].iter().map(move |&to| (NodeId(from as u32), NodeId(to), share(from)));
    let step = Step { keep: (0..8).map(share).collect(), links: (0..8).flat_map(links).collect() };
    Arc::new(Schedule::new(8, &[step], 1).unwrap())
}

/// The same with these delays, and trainings as long.
fn with_delays(config: SwarmConfig, seed: u64, shortest: u64, longest: u64) -> SwarmConfig {
    let delay = (Duration::from_millis(shortest), Duration::from_millis(longest));
    let network = NetworkModel { delay, ..NetworkModel::streams() };
    SwarmConfig { policy: WaitPolicy::Sync, seed, network, training_time: delay, ..config }
}

#[test]
fn what_a_node_may_give_does_not_depend_on_how_soon_parcels_come() {
    let config = || SwarmConfig { schedule: plan_of_a_demo(), ..least_squares(8, 30, 0.05) };
    let (reference, digest) = run(with_delays(config(), 1, 1, 2));
    for (seed, shortest, longest) in [(2, 1, 2), (3, 0, 300), (4, 50, 400), (5, 1, 500), (6, 1, 100)] {
        let (bits, other) = run(with_delays(config(), seed, shortest, longest));
        assert!(bits == reference, "seed {seed}, delays {shortest} to {longest} ms");
        assert_ne!(other, digest, "the timing was meant to differ");
    }
}

#[test]
fn coded_averages_do_not_depend_on_how_soon_statements_of_references_come() {
    for codec in [Codec::F32, Codec::Int4] {
        let config = || differences::swarm(codec, 12);
        let (reference, _) = run(with_delays(config(), 1, 1, 2));
        for (seed, shortest, longest) in [(2, 1, 2), (3, 0, 300), (4, 50, 400), (5, 1, 500), (6, 1, 100)] {
            let (bits, _) = run(with_delays(config(), seed, shortest, longest));
            assert!(bits == reference, "{codec}, seed {seed}, delays {shortest} to {longest} ms");
        }
    }
}

/// Two exact averages in turn of seven nodes around node 0. The leaves of nodes 1 and 2 change places between them, so a leaf
/// sends to a node that may not have the reference yet which the leaf has from another.
fn trees_in_turn() -> Arc<Schedule> {
    let link = |from: u32, to: u32, share: f64| (NodeId(from), NodeId(to), share);
    let round = |of_leaves: [u32; 4]| {
        let leaves = || (3..7).zip(of_leaves);
        let keep = |kept: [f64; 7]| kept.to_vec();
        let third = 1.0 / 3.0;
        let down = leaves().map(|(leaf, parent)| link(parent, leaf, third)).collect();
        [
            Step {
                keep: keep([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
                links: leaves().map(|(leaf, parent)| link(leaf, parent, 1.0)).collect(),
            },
            Step {
                keep: keep([1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]),
                links: [1, 2].map(|from| link(from, 0, 1.0)).to_vec(),
            },
            Step {
                keep: keep([1.0 / 7.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
                links: [1, 2].map(|to| link(0, to, 3.0 / 7.0)).to_vec(),
            },
            Step { keep: keep([1.0, third, third, 1.0, 1.0, 1.0, 1.0]), links: down },
        ]
    };
    let steps = [round([1, 1, 2, 2]), round([2, 2, 1, 1])].concat();
    Arc::new(Schedule::new(7, &steps, 1).unwrap().with_round_length(4).unwrap())
}

#[test]
fn a_coded_parcel_that_comes_before_its_reference_waits_for_it() {
    let config = |seed| {
        let training_time = (Duration::ZERO, Duration::from_millis(1));
        let swarm = SwarmConfig { schedule: trees_in_turn(), ..differences::swarm(Codec::Int4, 60) };
        SwarmConfig { training_time, ..with_delays(swarm, seed, 0, 300) }
    };
    let (reference, _) = run(config(1));
    for seed in 2..8 {
        assert!(run(config(seed)).0 == reference, "seed {seed}");
    }
}

#[test]
fn duplicated_and_reordered_datagrams_do_not_change_a_synchronous_result() {
    for nodes in [2, 7] {
        let config = |seed| SwarmConfig { seed, ..least_squares(nodes, 50, 0.05) };
        let (reference, _) = run(config(1));
        for seed in 2..8 {
            assert_eq!(run(config(seed).over_datagrams(0.0, 0.3)).0, reference, "{nodes} nodes, seed {seed}");
        }
    }
}
