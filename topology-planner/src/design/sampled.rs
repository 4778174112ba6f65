//! Common parts of designs that draw symmetric steps at random.
//!
//! Such a design is a seeded sequence in the plan: steps drawn once and repeated for ever, with a gradient step before
//! each. A step uses some edges in both directions with equal weights: its matrix is symmetric, hence push-sum weights
//! stay 1 and the method is D-PSGD on a changing graph.
//!
//! A period is short, so it is drawn with little variance. A thing to be active in a fraction `p` of `T` steps is
//! active in `p T` of them, rounded up or down by a random offset that all things share, at random places. Marginals,
//! the mean number of slots and the independence of different things are those of independent draws.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{DesignError, DesignRequest};
use crate::{
    digraph::{Digraph, Link},
    spectrum,
};

/// Steps in a period: enough for a mean over them to be near the expected one (a matching that is active half of the
/// time is active 32 times), and a plan for the links of a (3, 21)-windmill still fits the wire.
const STEPS: usize = 64;

/// A period has fewer steps, down to [`FEWEST_STEPS`], if the links of all would exceed this number, some 14 bytes
/// each.
const LINKS_IN_PERIOD: f64 = 60_000.0;

const FEWEST_STEPS: usize = 8;

/// The most steps: a period is doubled up to this number while its edges do not join all nodes.
pub(super) const MOST_STEPS: usize = 1_024;

/// Number of periods of one length that are drawn.
const DRAWS: usize = 4;

/// Weights are multiples of this: sums of weights are exact, and the last bits of an eigenvalue solver, which differ
/// from machine to machine, do not show in a plan.
const WEIGHT_UNIT: f64 = 1.0 / (1_u32 << 24) as f64;

/// An edge, `u < v`.
pub(super) type Edge = (usize, usize);

/// A drawn period: for each step the numbers of the active things, ascending.
pub(super) type Period = Vec<Vec<usize>>;

/// Draws periods, longer and longer, until the edges of one join all nodes. `links_per_step` is the expected number;
/// `edges` returns the edges of a step. `None` if no period of up to [`MOST_STEPS`] does.
pub(super) fn draw_joined(
    request: &DesignRequest<'_>,
    links_per_step: f64,
    mut draw: impl FnMut(usize, &mut ChaCha8Rng) -> Period,
    edges: impl Fn(&[usize]) -> Vec<Edge>,
) -> Option<Period> {
    let nodes = request.topology.node_count();
    let mut rng = ChaCha8Rng::seed_from_u64(request.options.seed);
    let mut steps = ((LINKS_IN_PERIOD / links_per_step.max(1.0)) as usize).clamp(FEWEST_STEPS, STEPS);
    while steps <= MOST_STEPS {
        for _ in 0..DRAWS {
            let period = draw(steps, &mut rng);
            if joins_all(nodes, period.iter().flat_map(|active| edges(active))) {
                return Some(period);
            }
        }
        steps *= 2;
    }
    None
}

/// Returns `true` if the edges join all nodes.
pub(super) fn joins_all(nodes: usize, edges: impl Iterator<Item = Edge>) -> bool {
    let links = edges.flat_map(|(u, v)| [Link::new(u, v), Link::new(v, u)]);
    Digraph::new(nodes, links).first_cut_off().is_none()
}

/// A period in which thing `i` is active in `probabilities[i]` of the steps, rounded; the sum of all activations is at
/// most the expected one.
pub(super) fn independent(probabilities: &[f64], steps: usize, rng: &mut ChaCha8Rng) -> Period {
    let counts = rounded_counts(probabilities, steps, rng);
    let mut period = vec![Vec::new(); steps];
    let mut order: Vec<usize> = (0..steps).collect();
    for (thing, &count) in counts.iter().enumerate() {
        for place in 0..count {
            order.swap(place, place + below(rng, steps - place));
            period[order[place]].push(thing);
        }
    }
    period
}

/// Whole numbers next to `steps` times the probabilities, whose sum is that of the products, rounded down.
pub(super) fn rounded_counts(probabilities: &[f64], steps: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let offset = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    // Products that should add up to a whole number may miss it by a rounding error.
    let total = (probabilities.iter().sum::<f64>() * steps as f64 + 1e-6) as usize;
    let mut sum = 0.0;
    let mut before = 0;
    let count = |probability: &f64| {
        sum += probability * steps as f64;
        let here = ((sum + offset) as usize).clamp(before, total).min(before + steps);
        let count = here - before;
        before = here;
        count
    };
    probabilities.iter().map(count).collect()
}

/// Shuffles by the method of Fisher and Yates.
pub(super) fn shuffle<T>(things: &mut [T], rng: &mut ChaCha8Rng) {
    (1..things.len()).rev().for_each(|last| things.swap(last, below(rng, last + 1)));
}

/// A number below `bound`, which is not 0. The bias of a 64-bit remainder is below 2^-50 here.
fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    (rng.next_u64() % bound as u64) as usize
}

/// The largest degree of a node in any of the steps.
pub(super) fn max_degree<'s>(nodes: usize, steps: impl Iterator<Item = &'s Vec<Edge>>) -> usize {
    let degree = |edges: &Vec<Edge>| {
        let mut degrees = vec![0; nodes];
        for &(u, v) in edges {
            degrees[u] += 1;
            degrees[v] += 1;
        }
        degrees.into_iter().max().unwrap_or(0)
    };
    steps.map(degree).max().unwrap_or(0)
}

/// The weight as a plan holds it, rounded down, so that a sum within a limit stays within it.
pub(super) fn planned_weight(weight: f64) -> f64 {
    (weight / WEIGHT_UNIT).floor() * WEIGHT_UNIT
}

/// A number for the parameters of a plan, without the digits that differ from machine to machine, and without the sign
/// of a zero.
pub(super) fn reported(number: f64) -> f64 {
    (number * 1e6).round() / 1e6 + 0.0
}

/// The number of spectra to compute in a search: `at_default` at the default effort on small graphs. A spectrum is
/// O(n^3), so there are fewer above 128 nodes, and at least one for each unit of effort.
pub(super) fn spectra(request: &DesignRequest<'_>, at_default: usize) -> usize {
    let nodes = request.topology.node_count();
    let effort = request.options.effort as usize;
    let shrunk = at_default * effort / 10 * 128 * 128 / nodes.max(128).pow(2);
    shrunk.max(effort).max(1)
}

/// Refuses more nodes than spectra are computed for.
pub(super) fn check_size(request: &DesignRequest<'_>) -> Result<(), DesignError> {
    let nodes = request.topology.node_count();
    if nodes > spectrum::MAX_DENSE_NODES {
        return Err(DesignError::TooManyNodes { nodes, method: request.method, limit: spectrum::MAX_DENSE_NODES });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_active_as_often_as_its_probability_says_and_the_sum_is_kept() {
        for seed in 0..200 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let probabilities = [1.0, 0.375, 0.0, 0.71, 0.02, 0.895];
            let period = independent(&probabilities, 64, &mut rng);
            let mut all = 0;
            for (thing, probability) in probabilities.iter().enumerate() {
                let count = period.iter().filter(|active| active.contains(&thing)).count();
                assert!((count as f64 - probability * 64.0).abs() < 1.0, "seed {seed}, {thing}: {count} times");
                all += count;
            }
            assert_eq!(all, 192, "seed {seed}: 3 per step, as the probabilities add up to");
            assert!(period.iter().all(|active| active.is_sorted()), "seed {seed}");
        }
    }

    #[test]
    fn different_things_are_active_independently() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut together = 0;
        for _ in 0..500 {
            together += independent(&[0.5, 0.5], 64, &mut rng).iter().filter(|active| active.len() == 2).count();
        }
        assert!((together as f64 / 32_000.0 - 0.25).abs() < 0.01, "{together} of 32000");
    }

    #[test]
    fn planned_weights_add_up_without_rounding() {
        for degree in 1..200_u32 {
            let weight = planned_weight(1.0 / f64::from(degree));
            let sum = (0..degree).fold(0.0, |sum, _| sum + weight);
            assert_eq!(sum, weight * f64::from(degree));
            assert!(sum <= 1.0 && 1.0 - sum < 2e-5, "{degree}: {sum}");
        }
    }
}
