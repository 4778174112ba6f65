//! Plans for tests, and the second eigenvalue of a plan.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{NodeId, Schedule, Step};

pub(super) fn ids(nodes: usize) -> impl Iterator<Item = NodeId> {
    (0..nodes as u32).map(NodeId)
}

/// `steps` steps on a ring with chords, with uneven weights: strongly connected and far from balanced.
pub(super) fn uneven(nodes: usize, chords: usize, steps: usize, seed: u64) -> Arc<Schedule> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let steps: Vec<Step> = (0..steps).map(|_| uneven_step(nodes, chords, &mut rng)).collect();
    Arc::new(Schedule::new(nodes, &steps, 0).unwrap())
}

fn uneven_step(nodes: usize, chords: usize, rng: &mut ChaCha8Rng) -> Step {
    let mut out: Vec<Vec<usize>> = (0..nodes).map(|node| vec![(node + 1) % nodes]).collect();
    for _ in 0..chords {
        let (from, to) = (rng.random_range(0..nodes), rng.random_range(0..nodes));
        if from != to && !out[from].contains(&to) {
            out[from].push(to);
        }
    }
    let (mut keep, mut links) = (Vec::new(), Vec::new());
    for (from, receivers) in out.iter().enumerate() {
        let parts: Vec<f64> = (0..=receivers.len()).map(|_| rng.random_range(0.5..2.0)).collect();
        let whole: f64 = parts.iter().sum();
        keep.push(parts[0] / whole);
        let share = |(to, part): (&usize, &f64)| (NodeId(from as u32), NodeId(*to as u32), part / whole);
        links.extend(receivers.iter().zip(&parts[1..]).map(share));
    }
    Step { keep, links }
}

/// One-peer exponential: in step r everybody sends half to the node 2^r further on.
pub(super) fn one_peer_exponential(log_nodes: u32) -> Arc<Schedule> {
    let nodes = 1_u32 << log_nodes;
    let step = |r: u32| Step {
        keep: vec![0.5; nodes as usize],
        links: (0..nodes).map(|i| (NodeId(i), NodeId((i + (1 << r)) % nodes), 0.5)).collect(),
    };
    let steps: Vec<Step> = (0..log_nodes).map(step).collect();
    Arc::new(Schedule::new(nodes as usize, &steps, 0).unwrap())
}

/// Three nodes on a path: the ends hand everything to the middle, which hands it back in thirds.
pub(super) fn gather_and_scatter() -> Arc<Schedule> {
    let [a, b, c] = [0, 1, 2].map(NodeId);
    let gather = Step { keep: vec![0.0, 1.0, 0.0], links: vec![(a, b, 1.0), (c, b, 1.0)] };
    let third = 1.0 / 3.0;
    let scatter = Step { keep: vec![1.0, 1.0 - 2.0 * third, 1.0], links: vec![(b, a, third), (b, c, third)] };
    Arc::new(Schedule::new(3, &[gather, scatter], 0).unwrap())
}

/// The modulus of the second eigenvalue of one period, from the rate at which the powers of its matrix settle.
pub(super) fn second_eigenvalue(schedule: &Schedule) -> f64 {
    const PERIODS: u64 = 30;
    let distance = |periods: u64| -> f64 {
        let columns: Vec<Vec<f64>> = ids(schedule.nodes()).map(|node| column(schedule, node, periods)).collect();
        let mean = |row: usize| columns.iter().map(|column| column[row]).sum::<f64>() / columns.len() as f64;
        let apart =
            columns.iter().map(|column| (0..column.len()).map(|row| (column[row] - mean(row)).powi(2)).sum::<f64>());
        apart.sum::<f64>().sqrt()
    };
    // Powers of a pair of complex eigenvalues oscillate: take the steepest of several spans.
    (0..8)
        .map(|more| (distance(PERIODS + more) / distance(more + 1)).powf(1.0 / (PERIODS - 1) as f64))
        .fold(0.0, f64::max)
}

/// The distribution, after some periods, of a unit of mass that began at `node`.
fn column(schedule: &Schedule, node: NodeId, periods: u64) -> Vec<f64> {
    let mut mass = vec![0.0; schedule.nodes()];
    mass[node.index()] = 1.0;
    for step in 0..periods * schedule.period() {
        let before = mass.clone();
        for from in ids(schedule.nodes()) {
            for link in schedule.out_links(from, step) {
                let moved = before[from.index()] * link.share.units() as f64 / crate::UNITS_PER_ONE as f64;
                mass[from.index()] -= moved;
                mass[link.to.index()] += moved;
            }
        }
    }
    mass
}
