//! Plans and measurements that the simulation tests share.

use std::sync::Arc;

use mingle_protocol::sim::{SimulatedSwarm, SwarmConfig};
use mingle_protocol::{NodeEvent, NodeId, RoundReport, Schedule, Step, Time, WaitPolicy};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(crate) const HOUR: Time = Time::from_millis(3_600_000);
pub(crate) const POLICIES: [WaitPolicy; 3] =
    [WaitPolicy::Sync, WaitPolicy::Bounded { staleness: 2 }, WaitPolicy::Async];

pub(crate) fn ids(nodes: u32) -> impl Iterator<Item = NodeId> {
    (0..nodes).map(NodeId)
}

/// One step on a ring with `chords` random extra links, uniform column weights: strongly connected by construction.
pub(crate) fn random_step(nodes: u32, chords: usize, rng: &mut ChaCha8Rng) -> Step {
    let mut out: Vec<Vec<u32>> = (0..nodes).map(|i| vec![(i + 1) % nodes]).collect();
    for _ in 0..chords {
        let (from, to) = (rng.random_range(0..nodes), rng.random_range(0..nodes));
        if from != to && !out[from as usize].contains(&to) {
            out[from as usize].push(to);
        }
    }
    let share = |from: usize| 1.0 / (out[from].len() + 1) as f64;
    let links = |from: usize| out[from].iter().map(move |&to| (NodeId(from as u32), NodeId(to), share(from)));
    Step { keep: (0..out.len()).map(share).collect(), links: (0..out.len()).flat_map(links).collect() }
}

/// One step in which every node sends to the nodes listed for it, with uniform column weights.
pub(crate) fn linked(receivers: &[&[u32]]) -> Arc<Schedule> {
    let share = |from: usize| 1.0 / (receivers[from].len() + 1) as f64;
    let links = |from: usize| receivers[from].iter().map(move |&to| (NodeId(from as u32), NodeId(to), share(from)));
    let nodes = receivers.len();
    let step = Step { keep: (0..nodes).map(share).collect(), links: (0..nodes).flat_map(links).collect() };
    Arc::new(Schedule::new(nodes, &[step], 0).unwrap())
}

pub(crate) fn seconds(seconds: u64) -> Time {
    Time::from_millis(1_000 * seconds)
}

pub(crate) fn random_plan(nodes: u32, chords: usize, local_steps: u32) -> Arc<Schedule> {
    let step = random_step(nodes, chords, &mut ChaCha8Rng::seed_from_u64(u64::from(nodes)));
    Arc::new(Schedule::new(nodes as usize, &[step], local_steps).unwrap())
}

/// Pure averaging of distinct vectors of dimension 5.
pub(crate) fn averaging(schedule: Arc<Schedule>, nodes: u32, rounds: u64) -> SwarmConfig {
    let initial = (0..nodes).map(|i| (0..5).map(|k| (i * 7 + k) as f32).collect()).collect();
    SwarmConfig::averaging(schedule, initial, rounds)
}

pub(crate) fn mean_of(vectors: &[Vec<f32>]) -> Vec<f32> {
    let sum = |k: usize| vectors.iter().map(|vector| f64::from(vector[k])).sum::<f64>();
    (0..vectors[0].len()).map(|k| (sum(k) / vectors.len() as f64) as f32).collect()
}

pub(crate) fn assert_close(got: &[f32], want: &[f32], tolerance: f32) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{got} is not within {tolerance} of {want}");
    }
}

/// The largest distance of any node's ratio from `target`, relative to its norm.
pub(crate) fn worst_distance(swarm: &mut SimulatedSwarm, nodes: u32, target: &[f32]) -> f64 {
    let norm: f64 = target.iter().map(|v| f64::from(*v).powi(2)).sum();
    let distance = |ratio: &[f32]| -> f64 {
        ratio.iter().zip(target).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / norm.max(1e-12)
    };
    ids(nodes).map(|id| distance(&swarm.ratio(id)).sqrt()).fold(0.0, f64::max)
}

/// The sum of all numerators, which averaging conserves along with the mass.
pub(crate) fn numerator_sum(swarm: &SimulatedSwarm, nodes: u32) -> Vec<f64> {
    let dimension = swarm.node(NodeId(0)).unwrap().dimension();
    let mut sum = vec![0.0; dimension];
    for id in ids(nodes) {
        for (sum, x) in sum.iter_mut().zip(swarm.node(id).unwrap().numerator()) {
            *sum += f64::from(*x);
        }
    }
    sum
}

/// The rounds that nodes have finished.
pub(crate) fn rounds_of(swarm: &SimulatedSwarm) -> impl Iterator<Item = (NodeId, RoundReport)> {
    swarm.events().iter().filter_map(|(_, id, event)| match event {
        NodeEvent::RoundFinished(report) => Some((*id, *report)),
        _ => None,
    })
}
