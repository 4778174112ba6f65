//! Differences to references: what exact averages send once all nodes have had the same ratio.

use std::sync::Arc;
use std::time::Duration;

use mingle_protocol::sim::{Fault, SimulatedSwarm, SwarmConfig};
use mingle_protocol::{Codec, Durability, NodeEvent, NodeId, Schedule, Step, Time};

use crate::support::*;

pub(crate) const NODES: u32 = 7;
const DIMENSION: usize = 10_000;
const CODED: [Codec; 3] = [Codec::Int8, Codec::Int4, Codec::Int3];

/// An exact average of seven nodes over a binary tree: all weight goes up to node 0, and the average down again.
fn tree(local_steps: u32) -> Arc<Schedule> {
    let up = |from: u32| (NodeId(from), NodeId((from - 1) / 2), 1.0);
    let down = |to: u32, share: f64| (NodeId((to - 1) / 2), NodeId(to), share);
    let keeping = |nodes: &[(usize, f64)]| {
        let mut keep = vec![1.0; NODES as usize];
        nodes.iter().for_each(|&(node, kept)| keep[node] = kept);
        keep
    };
    let third = 1.0 / 3.0;
    let steps = [
        Step { keep: keeping(&[(3, 0.0), (4, 0.0), (5, 0.0), (6, 0.0)]), links: (3..7).map(up).collect() },
        Step { keep: keeping(&[(1, 0.0), (2, 0.0)]), links: (1..3).map(up).collect() },
        Step { keep: keeping(&[(0, 1.0 / 7.0)]), links: (1..3).map(|to| down(to, 3.0 / 7.0)).collect() },
        Step { keep: keeping(&[(1, third), (2, third)]), links: (3..7).map(|to| down(to, third)).collect() },
    ];
    Arc::new(Schedule::new(NODES as usize, &steps, local_steps).unwrap())
}

/// A point that a node's local steps lead to, of the size of a model's weights.
fn target(node: u32, k: usize) -> f32 {
    let k = k as u64 * 2_654_435_761 + u64::from(node) * 40_503;
    ((k % 1009) as f32 / 1009.0 - 0.5) * (1.0 + node as f32 / 4.0)
}

/// The distance from the optimum, relative to it, that rounding may add: each round moves nodes apart by a tenth of the
/// distance between their targets, and the error of a codec is a part of that.
fn noise(codec: Codec) -> f64 {
    match codec {
        Codec::Int8 => 0.002,
        Codec::Int4 => 0.03,
        _ => 0.07,
    }
}

pub(crate) fn mean_target() -> Vec<f32> {
    (0..DIMENSION).map(|k| (0..NODES).map(|node| target(node, k)).sum::<f32>() / NODES as f32).collect()
}

/// Nodes that go a tenth of the way to their own targets in every round.
pub(crate) fn swarm(codec: Codec, rounds: u64) -> SwarmConfig {
    let initial = vec![vec![0.0; DIMENSION]; NODES as usize];
    SwarmConfig {
        codec,
        clip: None,
        trainer: Box::new(|id, _, from, _| from.iter().enumerate().map(|(k, z)| 0.1 * (target(id.0, k) - z)).collect()),
        ..SwarmConfig::averaging(tree(1), initial, rounds)
    }
}

fn finished(config: SwarmConfig) -> SimulatedSwarm {
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    swarm.run_until_drained(HOUR).unwrap();
    assert!(swarm.audit().is_complete(), "{}", swarm.audit());
    swarm
}

fn count(swarm: &SimulatedSwarm, what: impl Fn(&NodeEvent) -> bool) -> usize {
    swarm.events().iter().filter(|(_, _, event)| what(event)).count()
}

#[test]
fn coded_exact_averages_learn_what_plain_ones_do_in_a_fraction_of_the_bytes() {
    let mean = mean_target();
    let mut plain = finished(swarm(Codec::F32, 60));
    let whole = plain.sent_bytes() as f64;
    let plain = worst_distance(&mut plain, NODES, &mean);
    for (codec, most_bytes) in CODED.into_iter().zip([0.27, 0.15, 0.12]) {
        let mut coded = finished(swarm(codec, 60));
        let bytes = coded.sent_bytes() as f64 / whole;
        let distance = worst_distance(&mut coded, NODES, &mean);
        println!("{codec}: {bytes:.3} of the bytes, {distance:.5} from the optimum ({plain:.5} in f32)");
        assert!(bytes < most_bytes, "{codec}: {bytes}");
        assert!(distance < plain + noise(codec), "{codec}: {distance}, in f32 {plain}");
        assert_eq!(count(&coded, |event| matches!(event, NodeEvent::ReferenceMissing { .. })), 0, "{codec}");
    }
}

#[test]
fn after_a_coded_exact_average_all_nodes_hold_the_same_bits() {
    for codec in CODED {
        let mut swarm = finished(swarm(codec, 20));
        let first = swarm.ratio(NodeId(0));
        for id in ids(NODES) {
            assert!(swarm.ratio(id) == first, "{codec}: node {id}");
        }
    }
}

#[test]
fn what_rounding_takes_away_comes_back() {
    // Without training nothing changes but by rounding: the sum of all numerators is that of the beginning.
    for codec in CODED {
        let initial: Vec<Vec<f32>> = (0..NODES).map(|node| (0..DIMENSION).map(|k| target(node, k)).collect()).collect();
        let mut swarm = finished(SwarmConfig { codec, ..SwarmConfig::averaging(tree(0), initial, 12) });
        let sum: Vec<f32> = numerator_sum(&swarm, NODES).iter().map(|sum| (sum / f64::from(NODES)) as f32).collect();
        assert_close(&sum, &mean_target(), 1e-5);
        let distance = worst_distance(&mut swarm, NODES, &mean_target());
        assert!(distance < 1e-4, "{codec}: the error shrinks with every average: {distance}");
    }
}

#[test]
fn runs_with_references_repeat_to_the_bit() {
    let digest = |codec| finished(swarm(codec, 12)).digest();
    for codec in CODED {
        assert_eq!(digest(codec), digest(codec), "{codec}");
    }
}

/// A swarm with records in which one node is killed four times.
fn killed(victim: u32, codec: Codec) -> SimulatedSwarm {
    let config =
        SwarmConfig { durability: Durability::On, drain_deadline: Duration::from_secs(3_600), ..swarm(codec, 200) };
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    for at in (3_000..13_000).step_by(2_500) {
        swarm.at(Time::from_millis(at), Fault::Crash(NodeId(victim)));
        swarm.at(Time::from_millis(at + 700), Fault::Restart(NodeId(victim)));
    }
    swarm.run_until_drained(HOUR).unwrap();
    assert!(swarm.is_exact(), "{codec}, node {victim}: {}", swarm.audit());
    swarm
}

#[test]
fn a_member_without_the_reference_gets_keyframes_and_catches_up_and_no_weight_is_lost() {
    for (victim, codec) in [(1, Codec::Int4), (3, Codec::Int3), (6, Codec::Int8), (0, Codec::Int4)] {
        let [plain, coded] = [Codec::F32, codec].map(|codec| {
            let mut swarm = killed(victim, codec);
            let distance = worst_distance(&mut swarm, NODES, &mean_target());
            (swarm, distance)
        });
        assert!(
            coded.1 < 1.1 * plain.1 + noise(codec),
            "{codec}, node {victim}: {} beside {} in f32",
            coded.1,
            plain.1
        );
        assert!(coded.0.sent_bytes() < plain.0.sent_bytes() / 2, "{codec}, node {victim}: it does send differences");
        let mut swarm = coded.0;
        let first = swarm.ratio(NodeId(0));
        assert!(ids(NODES).all(|id| swarm.ratio(id) == first), "{codec}, node {victim}: all hold the same bits again");
    }
}

#[test]
fn differences_are_decoded_where_messages_are_lost_and_overtake_each_other() {
    for policy in POLICIES {
        let [plain, coded] = [Codec::F32, Codec::Int4].map(|codec| {
            let config = SwarmConfig { policy, ..swarm(codec, 60) };
            worst_distance(&mut finished(config.over_datagrams(0.2, 0.1)), NODES, &mean_target())
        });
        assert!(coded < 1.2 * plain + noise(Codec::Int4), "{policy:?}: {coded} beside {plain}");
    }
}
