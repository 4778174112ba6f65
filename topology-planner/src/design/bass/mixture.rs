//! A mixture of mixing matrices with a probability each: the search space of BASS's optimised design.
//!
//! With candidates `r`, sets of subsets that broadcast, drawn with probability `p_r` and mixing by
//! `W_r = I - sum_e w_re L_e`, minimise `|| sum_r p_r W_r W_r - J ||` subject to `sum_r p_r c_r <= B`, `c_r` the slots
//! of a candidate. The problem is convex in the probabilities for given weights and in the weights for given
//! probabilities. Herrera et al. (2025) solve two semidefinite programs in turn; here steps along the gradients of the
//! smoothed norm alternate, each taken only if it helps.

use faer::Mat;

use crate::{
    design::{DesignError, sampled::Edge, smoothing::shares_of_lowest},
    spectrum,
};

/// The smoothing of each stage, as a fraction of the norm at its start.
const STAGES: [f64; 3] = [0.1, 0.03, 0.01];

/// One mixing matrix.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// The subsets that broadcast.
    pub(super) active: Vec<usize>,
    /// The edges between them.
    pub(super) edges: Vec<Edge>,
    /// The weight of each edge.
    pub(super) weights: Vec<f64>,
    /// The slots the candidate takes.
    pub(super) cost: usize,
}

/// Mixing matrices with a probability each.
#[derive(Debug, Clone)]
pub(super) struct Mixture {
    nodes: usize,
    /// The most slots allowed on average.
    budget: f64,
    candidates: Vec<Candidate>,
    shares: Vec<f64>,
}

/// The variables that a search may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Free {
    /// The weights of the edges.
    Weights,
    /// Weights and probabilities.
    WeightsAndShares,
}

/// The norm of a mixture, with the data for its gradient.
struct View {
    norm: f64,
    /// The smoothed norm.
    value: f64,
    /// The eigenvectors that the smoothed norm depends on, each with its weight.
    directions: Vec<(f64, Vec<f64>)>,
}

impl Mixture {
    /// A mixture whose shares sum to 1 and are within the budget.
    pub(super) fn new(nodes: usize, budget: f64, candidates: Vec<Candidate>, shares: Vec<f64>) -> Self {
        Self { nodes, budget, candidates, shares }
    }

    /// The matrices.
    pub(super) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The probability of each matrix.
    pub(super) fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// The norm `|| E[W W] - J ||`.
    pub(super) fn norm(&self) -> Result<f64, DesignError> {
        Ok(self.view(f64::MIN_POSITIVE)?.norm)
    }

    /// The mixture of the same matrices with other probabilities.
    pub(super) fn with_shares(&self, shares: Vec<f64>) -> Self {
        Self { shares, ..self.clone() }
    }

    /// Changes every weight.
    pub(super) fn map_weights(&mut self, map: impl Fn(f64) -> f64) {
        let weights = self.candidates.iter_mut().flat_map(|candidate| &mut candidate.weights);
        weights.for_each(|weight| *weight = map(*weight));
    }

    /// The best mixture found from this one after `spectra` eigenvalue decompositions: never a worse one.
    pub(super) fn improved(self, spectra: usize, free: Free) -> Result<Self, DesignError> {
        let mut best_norm = self.norm()?;
        let mut best = self;
        for smoothing in STAGES {
            let mut here = best.clone();
            let smoothing = smoothing * best_norm;
            let mut view = here.view(smoothing)?;
            let mut weight_pace = 0.1;
            let mut share_pace = 1.0 / here.candidates.len() as f64;
            for turn in 0..spectra / STAGES.len() {
                let moves_shares = free == Free::WeightsAndShares && turn % 2 == 1;
                let pace = if moves_shares { &mut share_pace } else { &mut weight_pace };
                let next =
                    if moves_shares { here.shares_moved(&view, *pace) } else { here.weights_moved(&view, *pace) };
                let there = next.view(smoothing)?;
                *pace *= if there.value < view.value { 1.5 } else { 0.5 };
                if there.value < view.value {
                    (here, view) = (next, there);
                    if view.norm < best_norm * (1.0 - 1e-9) {
                        best = here.clone();
                        best_norm = view.norm;
                    }
                }
            }
        }
        Ok(best)
    }

    fn view(&self, smoothing: f64) -> Result<View, DesignError> {
        let nodes = self.nodes;
        let mut expected = Mat::from_fn(nodes, nodes, |_, _| 1.0 / nodes as f64);
        for (candidate, &share) in self.candidates.iter().zip(&self.shares).filter(|(_, share)| **share > 0.0) {
            for column in candidate.columns(nodes) {
                for &(row, a) in &column {
                    column.iter().for_each(|&(other, b)| expected[(row, other)] -= share * a * b);
                }
            }
        }
        // The negated matrix, whose lowest eigenvalues come first, is the one to be kept small.
        let (values, vectors) = spectrum::symmetric_eigen(&expected).map_err(DesignError::Spectrum)?;
        let shares = shares_of_lowest(&values, smoothing);
        let lowest: f64 = shares.iter().zip(&values).map(|(q, value)| q * value + smoothing / 2.0 * q * q).sum();
        let used = shares.into_iter().enumerate().filter(|(_, share)| *share > 0.0);
        let directions = used.map(|(k, share)| (share, (0..nodes).map(|node| vectors[(node, k)]).collect())).collect();
        Ok(View { norm: -values[0], value: -lowest, directions })
    }

    /// One projected step on the probabilities.
    fn shares_moved(&self, view: &View, pace: f64) -> Self {
        let slope = |candidate: &Candidate| {
            let squares = |(share, direction): &(f64, Vec<f64>)| {
                share * candidate.mixed(direction).iter().map(|x| x * x).sum::<f64>()
            };
            view.directions.iter().map(squares).sum::<f64>()
        };
        let slopes: Vec<f64> = self.candidates.iter().map(slope).collect();
        let least = slopes.iter().copied().fold(f64::INFINITY, f64::min);
        let most = slopes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let scale = pace / (most - least).max(f64::MIN_POSITIVE);
        let moves = self.shares.iter().zip(&slopes);
        let moved: Vec<f64> = moves.map(|(share, slope)| share - scale * (slope - least)).collect();
        let costs: Vec<f64> = self.candidates.iter().map(|candidate| candidate.cost as f64).collect();
        self.with_shares(within_budget(&moved, &costs, self.budget))
    }

    /// One step on the weights of every candidate, including those that are not drawn: they may be worth it later.
    fn weights_moved(&self, view: &View, pace: f64) -> Self {
        let mut next = self.clone();
        for (moved, candidate) in next.candidates.iter_mut().zip(&self.candidates) {
            for (share, direction) in &view.directions {
                let mixed = candidate.mixed(direction);
                for (weight, &(u, v)) in moved.weights.iter_mut().zip(&candidate.edges) {
                    *weight += pace * share * (direction[u] - direction[v]) * (mixed[u] - mixed[v]) * self.nodes as f64;
                }
            }
            moved.make_feasible(self.nodes);
        }
        next
    }
}

impl Candidate {
    /// The columns of its matrix, as pairs of row and value.
    fn columns(&self, nodes: usize) -> Vec<Vec<(usize, f64)>> {
        let mut columns: Vec<Vec<(usize, f64)>> = (0..nodes).map(|node| vec![(node, 1.0)]).collect();
        for (&(u, v), &weight) in self.edges.iter().zip(&self.weights) {
            columns[u].push((v, weight));
            columns[v].push((u, weight));
            columns[u][0].1 -= weight;
            columns[v][0].1 -= weight;
        }
        columns
    }

    /// `W x`.
    fn mixed(&self, x: &[f64]) -> Vec<f64> {
        let mut mixed = x.to_vec();
        for (&(u, v), &weight) in self.edges.iter().zip(&self.weights) {
            let flow = weight * (x[u] - x[v]);
            mixed[u] -= flow;
            mixed[v] += flow;
        }
        mixed
    }

    /// Makes every weight non-negative, and lets no node give more than it has.
    fn make_feasible(&mut self, nodes: usize) {
        let mut given = vec![0.0; nodes];
        for (weight, &(u, v)) in self.weights.iter_mut().zip(&self.edges) {
            *weight = weight.max(0.0);
            given[u] += *weight;
            given[v] += *weight;
        }
        for (weight, &(u, v)) in self.weights.iter_mut().zip(&self.edges) {
            *weight /= given[u].max(given[v]).max(1.0);
        }
    }
}

/// The nearest shares to a point that are not negative, sum to 1 and cost at most `budget`, if any do.
fn within_budget(point: &[f64], costs: &[f64], budget: f64) -> Vec<f64> {
    let at_price = |price: f64| {
        let discounted = point.iter().zip(costs).map(|(x, cost)| x - price * cost).collect();
        on_simplex(discounted)
    };
    let mean = |shares: &[f64]| shares.iter().zip(costs).map(|(share, cost)| share * cost).sum::<f64>();
    let mut shares = at_price(0.0);
    if mean(&shares) <= budget {
        return shares;
    }
    let (mut low, mut high) = (0.0, 1e-3);
    for _ in 0..40 {
        shares = at_price(high);
        if mean(&shares) <= budget {
            break;
        }
        low = high;
        high *= 2.0;
    }
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        let between = at_price(middle);
        if mean(&between) > budget {
            low = middle;
        } else {
            high = middle;
            shares = between;
        }
    }
    shares
}

/// The nearest point whose entries are not negative and sum to 1.
fn on_simplex(mut point: Vec<f64>) -> Vec<f64> {
    let mut sorted = point.clone();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut sum = 0.0;
    let mut shift = 0.0;
    for (index, &value) in sorted.iter().enumerate() {
        sum += value;
        let here = (sum - 1.0) / (index + 1) as f64;
        if value <= here {
            break;
        }
        shift = here;
    }
    point.iter_mut().for_each(|x| *x = (*x - shift).max(0.0));
    let total: f64 = point.iter().sum();
    point.iter_mut().for_each(|x| *x /= total);
    point
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn candidate(edges: &[Edge], weight: f64, cost: usize) -> Candidate {
        Candidate { active: Vec::new(), edges: edges.to_vec(), weights: vec![weight; edges.len()], cost }
    }

    #[test]
    fn shares_on_the_simplex_and_within_the_budget_are_the_nearest() {
        assert_eq!(on_simplex(vec![0.25, 0.75]), [0.25, 0.75]);
        assert_eq!(on_simplex(vec![2.0, 0.0, -1.0]), [1.0, 0.0, 0.0]);
        assert_eq!(on_simplex(vec![0.5, 0.0, 0.5, -4.0]), [0.5, 0.0, 0.5, 0.0]);
        let costs = [10.0, 2.0, 6.0];
        let shares = within_budget(&[1.0, 0.0, 0.0], &costs, 6.0);
        let mean: f64 = shares.iter().zip(costs).map(|(share, cost)| share * cost).sum();
        assert!((mean - 6.0).abs() < 1e-9 && (shares.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{shares:?}");
        // By hand: x = (1, 0, 0) - t - q (10, 2, 6) on the simplex at a cost of 6 has q = 1 / 8 and t = -3 / 4.
        assert!(shares.iter().zip([0.5, 0.5, 0.0]).all(|(a, b)| (a - b).abs() < 1e-6), "{shares:?}");
        assert_eq!(within_budget(&[1.0, 0.0, 0.0], &costs, 10.0), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn the_norm_of_a_pair_is_that_of_its_second_eigenvalue_squared() {
        let mixture = Mixture::new(2, 9.0, vec![candidate(&[(0, 1)], 0.3, 2)], vec![1.0]);
        assert!((mixture.norm().unwrap() - 0.16).abs() < 1e-12);
    }

    #[test]
    fn weights_and_shares_of_two_candidates_reach_what_can_be_computed() {
        // Two nodes: nothing, for free, or averaging, for 2 slots. With a budget of 1 they are drawn equally often.
        let candidates = vec![candidate(&[], 0.0, 0), candidate(&[(0, 1)], 0.1, 2)];
        let start = Mixture::new(2, 1.0, candidates, vec![0.9, 0.1]);
        let found = start.improved(300, Free::WeightsAndShares).unwrap();
        assert!((found.shares[1] - 0.5).abs() < 1e-3, "{found:?}");
        assert!((found.candidates[1].weights[0] - 0.5).abs() < 1e-2, "{found:?}");
        assert!((found.norm().unwrap() - 0.5).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn improving_weights_of_a_path_gives_its_best_symmetric_matrix() {
        // The path of three: the largest modulus of I - w L but 1 is least at w = 1 / 2: eigenvalues 1, 1/2, -1/2.
        let start = Mixture::new(3, 9.0, vec![candidate(&[(0, 1), (1, 2)], 0.2, 3)], vec![1.0]);
        let found = start.improved(300, Free::Weights).unwrap();
        assert!((found.norm().unwrap() - 0.25).abs() < 2e-3, "{found:?}");
        for candidate in found.candidates() {
            let columns = candidate.columns(3);
            assert!(columns.iter().all(|column| column.iter().all(|&(_, value)| value >= -1e-12)), "{columns:?}");
        }
    }
}
