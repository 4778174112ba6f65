//! Drift: the distance at which nodes settle from one another when each has changes of its own.
//!
//! Data differ from node to node, and so do the changes that local training makes. Apart from what all changes have in
//! common, node `i` adds some `c_i` in every round, with `sum_i c_i = 0`. Mixing by `W` works against it, and the
//! estimates settle around their mean at distances that are linear in `c`: at `(I - W)^# W c` for a doubly stochastic
//! matrix, `#` being the group inverse. `|lambda_2|` predicts that badly. A directed ring rotates differences instead
//! of ending them, and meanwhile they cancel; a node with little push-sum weight makes a large step of each change. So
//! the plan is run, including its weights.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::step::MixingStep;

/// Independent draws of the changes on small graphs; large ones average over their nodes.
const MAX_DRAWS: usize = 16;

/// Approximate number of nodes times draws.
const SAMPLES: usize = 1_024;

/// The most products of a share and a number, after which the distance reached so far is returned.
const WORK_LIMIT: usize = 400_000_000;

/// The least number of rounds between two looks.
const LOOK_EVERY: usize = 8;

/// Differences have settled when they change by at most this fraction from look to look.
const SETTLED: f64 = 2e-3;

/// The distance from the mean at which estimates settle, as the mean over nodes, when every node adds a change of its
/// own in every round. It is in units of these changes, both as root mean squares over draws, and measured at the ends
/// of rounds.
///
/// 0 for a period that averages exactly. Changes are random signs of a fixed seed less their mean, the same on every
/// machine. After 4e8 products, far more than a well-mixing plan needs, the smaller distance reached so far is
/// returned.
///
/// ```
/// use mingle_planner::{DesignOptions, Method, Topology, design, drift};
/// let settles_at = |method| {
///     let plan = design(&Topology::generate("ring:n=12")?, method, &DesignOptions::default())?;
///     Ok::<f64, Box<dyn std::error::Error>>(drift::response(plan.node_count(), plan.steps(), plan.round_length()))
/// };
/// assert!(settles_at(Method::ExactAverage)? < 1e-9);
/// assert!((4.0..5.0).contains(&settles_at(Method::DPsgd)?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn response(node_count: usize, steps: &[MixingStep], round_length: usize) -> f64 {
    let draws = (SAMPLES / node_count.max(1)).clamp(1, MAX_DRAWS);
    let changes = changes(node_count, draws);
    let mut states = vec![vec![0.0; node_count]; draws];
    let mut weights = vec![1.0; node_count];
    let mut scratch = vec![0.0; node_count];
    let rounds_per_period = (steps.len() / round_length.max(1)).max(1);
    let rounds_per_look = LOOK_EVERY.next_multiple_of(rounds_per_period);
    let work_per_period: usize = (1 + draws) * steps.iter().map(MixingStep::work).sum::<usize>().max(node_count);
    let looks = (WORK_LIMIT / (work_per_period * rounds_per_look / rounds_per_period).max(1)).max(1);
    let mut before = 0.0;
    for _ in 0..looks {
        let mut sum = 0.0;
        for round in 0..rounds_per_look {
            for (state, change) in states.iter_mut().zip(&changes) {
                state.iter_mut().zip(change).for_each(|(x, change)| *x += change);
            }
            let first = round % rounds_per_period * round_length;
            for step in &steps[first..first + round_length] {
                states.iter_mut().for_each(|state| step.mix(state, &mut scratch));
                step.mix(&mut weights, &mut scratch);
            }
            sum += distance(&states, &weights);
        }
        let now = sum / rounds_per_look as f64;
        if (now - before).abs() <= SETTLED * now || now < f64::EPSILON * 1e3 {
            return now;
        }
        before = now;
    }
    before
}

/// One vector of changes for each draw; their root mean square over all is 1.
fn changes(node_count: usize, draws: usize) -> Vec<Vec<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let draw = |rng: &mut ChaCha8Rng| {
        let signs: Vec<f64> = (0..node_count).map(|_| if rng.next_u64() & 1 == 0 { 1.0 } else { -1.0 }).collect();
        let mean = signs.iter().sum::<f64>() / node_count as f64;
        signs.into_iter().map(|sign| sign - mean).collect::<Vec<f64>>()
    };
    let mut changes: Vec<Vec<f64>> = (0..draws).map(|_| draw(&mut rng)).collect();
    let squares: f64 = changes.iter().flatten().map(|change| change * change).sum();
    let norm = (squares / (draws * node_count) as f64).sqrt();
    if norm > 0.0 {
        changes.iter_mut().flatten().for_each(|change| *change /= norm);
    }
    changes
}

/// The mean over nodes of the root mean square over draws of `x / w`, counting only nodes with weight.
fn distance(states: &[Vec<f64>], weights: &[f64]) -> f64 {
    let of_node = |(node, &weight): (usize, &f64)| {
        let squares: f64 = states.iter().map(|state| (state[node] / weight).powi(2)).sum();
        (squares / states.len() as f64).sqrt()
    };
    let held = weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
    held.map(of_node).sum::<f64>() / weights.len() as f64
}
