//! Activation probabilities of the matchings: those that connect the expected graph best within a budget.
//!
//! Maximise `lambda_2(sum_j p_j L_j)` subject to `0 <= p_j <= 1` and `sum_j p_j <= C M` (Wang et al., 2022, eq. 5):
//! concave, but not smooth where eigenvalues meet, which is where the optimum tends to be. With `X` any positive
//! semidefinite matrix of trace 1 that the all-ones vector is no part of,
//!
//! ```text
//! lambda_2(sum_j p_j L_j) = min_X sum_j p_j <L_j, X>
//! ```
//!
//! so the best `p` for any one `X` bounds the maximum; the gap to it is reported. Subtracting `mu / 2 ||X||^2` inside
//! the minimum makes the function smooth and changes it by at most `mu / 2` (Nesterov, "Smooth minimization of
//! non-smooth functions", 2005); its supergradient comes from the eigenvectors near the lowest eigenvalue instead of
//! the Fiedler vector alone. Accelerated projected ascent, with `mu` falling in [`STAGES`] stages.

use faer::Mat;

use crate::{
    design::{contraction::add_laplacian, sampled::Edge, smoothing::shares_of_lowest},
    spectrum::{self, Unresolved},
};

/// The smoothing of each stage, as a fraction of the connectivity of uniform probabilities.
const STAGES: [f64; 4] = [0.3, 0.1, 0.03, 0.01];

/// Probabilities are multiples of this, so that the last bits of the eigenvalue solver do not show.
const PROBABILITY_UNIT: f64 = 1.0 / (1_u32 << 20) as f64;

/// Activation probabilities, with the connectivity they reach.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Activation {
    /// One per matching.
    pub(super) probabilities: Vec<f64>,
    /// `lambda_2` of the expected Laplacian.
    pub(super) connectivity: f64,
    /// An upper bound on the connectivity of all probabilities within the budget.
    pub(super) bound: f64,
}

impl Activation {
    /// The best probabilities found after `spectra` eigenvalue decompositions, whose sum is at most `budget` times the
    /// number of matchings. Never worse than all equal to `budget`, but for rounding. O(spectra * n^3).
    pub(super) fn best(nodes: usize, matchings: &[Vec<Edge>], budget: f64, spectra: usize) -> Result<Self, Unresolved> {
        let mut ascent = Ascent::new(nodes, matchings, budget)?;
        let unit = ascent.best.0;
        for smoothing in STAGES {
            ascent.run(smoothing * unit, spectra.div_ceil(STAGES.len()))?;
        }
        let round = |probability: f64| (probability / PROBABILITY_UNIT).floor() * PROBABILITY_UNIT;
        let probabilities: Vec<f64> = ascent.best.1.iter().copied().map(round).collect();
        let connectivity = ascent.look(&probabilities, unit)?.connectivity;
        Ok(Self { probabilities, connectivity, bound: ascent.bound })
    }
}

struct Ascent<'m> {
    nodes: usize,
    matchings: &'m [Vec<Edge>],
    /// The most the probabilities may add up to.
    total: f64,
    /// The best so far: connectivity and probabilities.
    best: (f64, Vec<f64>),
    /// The least upper bound so far.
    bound: f64,
}

/// The function and its smoothing at one point.
struct View {
    connectivity: f64,
    /// The smoothed function.
    value: f64,
    /// The slope of the function in each probability.
    slopes: Vec<f64>,
}

impl<'m> Ascent<'m> {
    fn new(nodes: usize, matchings: &'m [Vec<Edge>], budget: f64) -> Result<Self, Unresolved> {
        let uniform = vec![budget; matchings.len()];
        let total = budget * matchings.len() as f64;
        let mut ascent = Self { nodes, matchings, total, best: (f64::NEG_INFINITY, Vec::new()), bound: f64::INFINITY };
        ascent.look(&uniform, f64::MIN_POSITIVE)?;
        Ok(ascent)
    }

    /// The function and its slopes at a point; remembers the best point and the least bound.
    fn look(&mut self, probabilities: &[f64], smoothing: f64) -> Result<View, Unresolved> {
        // The average is not part of the problem: its eigenvalue is moved above all others.
        let above = 2.0 * self.total.max(1.0) / self.nodes as f64 + 1.0;
        let mut expected = Mat::from_fn(self.nodes, self.nodes, |_, _| above);
        for (matching, &probability) in self.matchings.iter().zip(probabilities) {
            add_laplacian(&mut expected, matching, probability);
        }
        let (values, vectors) = spectrum::symmetric_eigen(&expected)?;
        let shares = shares_of_lowest(&values, smoothing);
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        let mean: f64 = shares.iter().zip(&values).map(|(share, value)| share * value).sum();
        let stretch = |&(u, v): &Edge| {
            let parts = shares.iter().enumerate();
            parts.map(|(k, share)| share * (vectors[(u, k)] - vectors[(v, k)]).powi(2)).sum::<f64>()
        };
        let slopes: Vec<f64> = self.matchings.iter().map(|matching| matching.iter().map(stretch).sum()).collect();
        self.bound = self.bound.min(most_within(&slopes, self.total));
        // Better by more than rounding: the choice between two equals does not depend on the machine.
        if values[0] > self.best.0 * (1.0 + 1e-9) || self.best.1.is_empty() {
            self.best = (values[0], probabilities.to_vec());
        }
        Ok(View { connectivity: values[0], value: mean + smoothing / 2.0 * squares, slopes })
    }

    /// Accelerated projected ascent of the smoothed function from the best point so far.
    fn run(&mut self, smoothing: f64, spectra: usize) -> Result<(), Unresolved> {
        let mut here = self.best.1.clone();
        let mut ahead = here.clone();
        let mut momentum = 1.0_f64;
        let mut view = self.look(&ahead, smoothing)?;
        // A first guess at how fast slopes change: a step as long as the budget is wide.
        let mut stiffness = norm(&view.slopes) / self.total.max(f64::MIN_POSITIVE);
        let mut left = spectra.saturating_sub(1);
        while left > 0 && stiffness.is_normal() {
            let mut next: Vec<f64> = ahead.iter().zip(&view.slopes).map(|(p, slope)| p + slope / stiffness).collect();
            project(&mut next, self.total);
            let there = self.look(&next, smoothing)?;
            left -= 1;
            let moved: Vec<f64> = next.iter().zip(&ahead).map(|(a, b)| a - b).collect();
            let promised = dot(&moved, &view.slopes) - stiffness / 2.0 * dot(&moved, &moved);
            if there.value < view.value + promised - 1e-12 * view.value.abs() {
                stiffness *= 2.0;
                continue;
            }
            let next_momentum = f64::midpoint(1.0, (1.0 + 4.0 * momentum * momentum).sqrt());
            let keep = (momentum - 1.0) / next_momentum;
            ahead = next.iter().zip(&here).map(|(new, old)| new + keep * (new - old)).collect();
            project(&mut ahead, self.total);
            here = next;
            momentum = next_momentum;
            stiffness *= 0.9;
            if left > 0 {
                view = self.look(&ahead, smoothing)?;
                left -= 1;
            }
        }
        Ok(())
    }
}

/// The largest value, at the given prices, of shares in [0, 1] with a sum of at most `total`.
fn most_within(prices: &[f64], total: f64) -> f64 {
    let mut sorted = prices.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let taken = |(index, price): (usize, f64)| price.max(0.0) * (total - index as f64).clamp(0.0, 1.0);
    sorted.into_iter().enumerate().map(taken).sum()
}

/// Moves a point to the nearest one with all entries in [0, 1] and a sum of at most `total`.
fn project(point: &mut [f64], total: f64) {
    let sum_at = |shift: f64| point.iter().map(|x| (x - shift).clamp(0.0, 1.0)).sum::<f64>();
    let mut shift = 0.0;
    if sum_at(0.0) > total {
        let (mut low, mut high) = (0.0, point.iter().copied().fold(0.0, f64::max));
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if sum_at(middle) > total { low = middle } else { high = middle }
        }
        shift = high;
    }
    point.iter_mut().for_each(|x| *x = (*x - shift).clamp(0.0, 1.0));
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{edge_coloring::matchings, topology::Topology};

    fn best(expression: &str, budget: f64, spectra: usize) -> (Activation, f64, usize) {
        let topology = Topology::generate(expression).unwrap();
        let matchings = matchings(&topology);
        let uniform = Ascent::new(topology.node_count(), &matchings, budget).unwrap().best.0;
        let activation = Activation::best(topology.node_count(), &matchings, budget, spectra).unwrap();
        (activation, uniform, matchings.len())
    }

    #[test]
    fn probabilities_are_feasible_better_than_uniform_and_near_the_bound() {
        for (expression, budget) in [
            ("rg:n=33,r=0.5,seed=0", 0.5),
            ("rg:n=33,r=0.5,seed=3", 0.2),
            ("windmill:cliques=3,size=6", 0.4),
            ("grid:rows=4,cols=5", 0.5),
            ("erdos-renyi:n=24,p=0.2,seed=4", 0.7),
        ] {
            let (activation, uniform, count) = best(expression, budget, 200);
            let Activation { probabilities, connectivity, bound } = activation;
            assert!(probabilities.iter().all(|p| (0.0..=1.0).contains(p)), "{expression}: {probabilities:?}");
            assert!(probabilities.iter().sum::<f64>() <= budget * count as f64 + 1e-9, "{expression}");
            assert!(connectivity >= uniform * (1.0 - 1e-5), "{expression}: {connectivity}, uniform {uniform}");
            assert!(connectivity <= bound * (1.0 + 1e-9), "{expression}: {connectivity} above the bound {bound}");
            assert!(connectivity >= 0.97 * bound, "{expression}: {connectivity}, at most {bound}");
        }
    }

    #[test]
    fn the_edge_that_joins_two_cliques_is_always_active() {
        let text = "0 1\n0 2\n0 3\n1 2\n1 3\n2 3\n4 5\n4 6\n4 7\n5 6\n5 7\n6 7\n3 4";
        let topology = Topology::parse(text).unwrap();
        let matchings = matchings(&topology);
        let activation = Activation::best(8, &matchings, 0.5, 300).unwrap();
        let bridge = matchings.iter().position(|matching| matching.contains(&(3, 4))).unwrap();
        assert!(activation.probabilities[bridge] > 0.999, "{:?}", activation.probabilities);
    }

    #[test]
    fn equal_matchings_are_equally_likely() {
        // A matching per leaf of a star: no leaf can be favoured.
        let (activation, uniform, _) = best("star:n=6", 0.6, 100);
        assert!(activation.probabilities.iter().all(|p| (p - 0.6).abs() < 1e-3), "{:?}", activation.probabilities);
        assert!((activation.connectivity - uniform).abs() < 1e-4 && (activation.bound - uniform).abs() < 1e-2);
    }

    #[test]
    fn projection_keeps_the_box_and_the_budget_and_leaves_what_is_inside() {
        let mut point = vec![1.5, 0.9, 0.2, -0.3];
        project(&mut point, 1.2);
        assert!((point.iter().sum::<f64>() - 1.2).abs() < 1e-12 && point.iter().all(|x| (0.0..=1.0).contains(x)));
        // The nearest point: 1.5 - s and 0.9 - s, with the first at its limit of 1.
        assert!(point.iter().zip([0.9, 0.3, 0.0, 0.0]).all(|(a, b)| (a - b).abs() < 1e-9), "{point:?}");
        let mut inside = vec![0.5, 0.25];
        project(&mut inside, 1.0);
        assert_eq!(inside, [0.5, 0.25]);
    }
}
