//! BASS (Herrera, Chen and Larsson, "Faster convergence with less communication: Broadcast-based subgraph sampling for
//! decentralized learning over wireless networks", 2025): nodes that can broadcast together form subsets, and each step
//! some of the subsets broadcast, one slot each.
//!
//! Two nodes may share a subset when no third one hears both and they do not hear each other: the subsets are the colours
//! of the square of the interference graph. Matrices are symmetric, so an edge counts in a step only if both its ends
//! broadcast in it: `W = I - a L` of the subgraph between the nodes that do.
//!
//! `bass-heuristic` lets each subset take part with a probability in proportion to the betweenness of its nodes, at most
//! 1, that add up to the budget of slots. `bass-optimised` draws candidates, sets of subsets, and gives each the
//! probability that minimises the expected contraction `|| E[W W] - J ||` within the budget on average, a convex
//! problem, solved by mirror descent.

use faer::Mat;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    Design, DesignError, Method, Request,
    sampled::{self, DRAWS, Drawn, STEPS},
};
use crate::{
    betweenness::betweenness,
    digraph::Link,
    plan::{Medium, Parameter},
    topology::Topology,
};

/// How many sets of subsets `bass-optimised` chooses from, as in the paper's experiments.
const CANDIDATES: usize = 100;

/// The budget, where none is given: this fraction of the subsets.
const DEFAULT_BUDGET: f64 = 0.6;

/// Steps of mirror descent for a unit of effort.
const DESCENTS_PER_EFFORT: usize = 15;

/// Draws a period of steps.
pub(super) fn design(request: &Request<'_>) -> Result<Design, DesignError> {
    if request.options.medium == Medium::PointToPoint {
        return Err(DesignError::BroadcastOnly { method: request.method });
    }
    sampled::check_size(request)?;
    let sampler = Sampler::new(request);
    let mut rng = ChaCha8Rng::seed_from_u64(request.options.seed);
    for _ in 0..DRAWS {
        let candidates = sampler.candidates(CANDIDATES, &mut rng);
        let chosen = if request.method == Method::BassOptimised {
            sampler.optimise(candidates, request.options.effort)?
        } else {
            Mixture { probabilities: vec![1.0 / CANDIDATES as f64; CANDIDATES], weight: 0.0, candidates }
        };
        let drawn = match request.method {
            Method::BassOptimised => chosen.draw(&sampler, &mut rng),
            _ => sampler.candidates(STEPS, &mut rng).iter().map(|active| sampler.step(active)).collect(),
        };
        let mean = drawn.iter().map(|step| step.slots.as_ref().map_or(0, Vec::len)).sum::<usize>() as f64;
        let nodes = request.topology.node_count();
        if sampled::joins_all(nodes, &drawn) && mean <= sampler.budget * STEPS as f64 + 1e-9 {
            let weight = sampler.best_weight(&chosen, sampled::max_degree(nodes, &drawn))?;
            let parameters = vec![
                ("effort", Parameter::Whole(request.options.effort.into())),
                ("slots_per_step", Parameter::Real(sampler.budget)),
                ("subsets", Parameter::Whole(sampler.subsets.len() as u64)),
            ];
            return Ok(sampled::design(request, drawn, weight, parameters));
        }
    }
    Err(DesignError::SampleDisconnected { method: request.method, steps: STEPS, budget: sampler.budget as usize })
}

/// Who broadcasts together, and how often.
struct Sampler<'t> {
    topology: &'t Topology,
    subsets: Vec<Vec<usize>>,
    probabilities: Vec<f64>,
    /// Slots per step, on average.
    budget: f64,
}

impl<'t> Sampler<'t> {
    fn new(request: &Request<'t>) -> Self {
        let topology = request.topology;
        let subsets = collision_free_subsets(topology);
        let most = subsets.len() as f64;
        let budget = request.options.budget_slots.map_or(DEFAULT_BUDGET * most, |slots| slots as f64).min(most);
        let centrality = betweenness(topology);
        // Leaves have none, and must be heard all the same.
        let least = centrality.iter().sum::<f64>() / centrality.len() as f64 * 0.1 + f64::MIN_POSITIVE;
        let importance =
            subsets.iter().map(|subset| subset.iter().map(|&node| centrality[node] + least).sum()).collect();
        Self { topology, probabilities: capped_shares(importance, budget), subsets, budget }
    }

    /// Sets of subsets, drawn by their probabilities; the mean cost of the sets is at most the budget.
    fn candidates(&self, count: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
        let mut active = vec![Vec::new(); count];
        // Systematic sampling: a subset takes part in a fraction of the sets that is its probability, rounded down.
        for (subset, &probability) in self.probabilities.iter().enumerate() {
            let mut order: Vec<usize> = (0..count).collect();
            (1..count).rev().for_each(|last| order.swap(last, below(rng, last + 1)));
            let times = (probability * count as f64 + 1e-9) as usize;
            order.into_iter().take(times).for_each(|set| active[set].push(subset));
        }
        active
    }

    /// The step in which some subsets broadcast.
    fn step(&self, active: &[usize]) -> Drawn {
        let mut is_active = vec![false; self.topology.node_count()];
        active.iter().flat_map(|&subset| &self.subsets[subset]).for_each(|&node| is_active[node] = true);
        let both = |&&(u, v): &&(usize, usize)| is_active[u] && is_active[v];
        let heard = |from: usize| {
            let receivers = self.topology.neighbors(from).iter().filter(|&&to| is_active[to]);
            receivers.map(|&to| Link::new(from, to)).collect::<Vec<_>>()
        };
        let slot = |&subset: &usize| self.subsets[subset].iter().flat_map(|&node| heard(node)).collect::<Vec<_>>();
        Drawn {
            edges: self.topology.edges().iter().filter(both).copied().collect(),
            slots: Some(active.iter().map(slot).filter(|slot| !slot.is_empty()).collect()),
        }
    }

    /// Probabilities of the candidates that minimise the expected contraction.
    fn optimise(&self, candidates: Vec<Vec<usize>>, effort: u32) -> Result<Mixture, DesignError> {
        let count = candidates.len();
        let mut mixture = Mixture { probabilities: vec![1.0 / count as f64; count], weight: 0.0, candidates };
        let steps: Vec<Drawn> = mixture.candidates.iter().map(|active| self.step(active)).collect();
        let costs: Vec<f64> = steps.iter().map(|step| step.slots.as_ref().map_or(0, Vec::len) as f64).collect();
        mixture.weight = self.best_weight(&mixture, sampled::max_degree(self.topology.node_count(), &steps))?;
        let squares = self.squares(&mixture);
        let (mut best, mut best_cost) = (mixture.probabilities.clone(), f64::INFINITY);
        for descent in 0..=DESCENTS_PER_EFFORT * effort as usize {
            let expected = weighted_sum(&squares, &mixture.probabilities);
            let (contraction, direction) = sampled::top_of_disagreement(&expected)?;
            if contraction < best_cost {
                (best_cost, best) = (contraction, mixture.probabilities.clone());
            }
            let slopes: Vec<f64> = squares.iter().map(|square| quadratic_form(square, &direction)).collect();
            let pace = 4.0 / (1.0 + descent as f64).sqrt();
            mixture.follow(&slopes, &costs, self.budget, pace);
        }
        mixture.probabilities = best;
        Ok(mixture)
    }

    /// `W W` of every candidate.
    fn squares(&self, mixture: &Mixture) -> Vec<Mat<f64>> {
        let nodes = self.topology.node_count();
        let square = |active: &Vec<usize>| {
            let laplacian = sampled::laplacian(nodes, &self.step(active).edges);
            let matrix = Mat::from_fn(nodes, nodes, |row, column| {
                f64::from(u8::from(row == column)) - mixture.weight * laplacian[(row, column)]
            });
            &matrix * &matrix
        };
        mixture.candidates.iter().map(square).collect()
    }

    /// The weight with the least expected contraction under which no node gives more than it has.
    fn best_weight(&self, mixture: &Mixture, max_degree: usize) -> Result<f64, DesignError> {
        let nodes = self.topology.node_count();
        let (mut linear, mut square) = (Mat::<f64>::zeros(nodes, nodes), Mat::<f64>::zeros(nodes, nodes));
        for (active, &probability) in mixture.candidates.iter().zip(&mixture.probabilities) {
            let laplacian = sampled::laplacian(nodes, &self.step(active).edges);
            let product = &laplacian * &laplacian;
            linear += faer::Scale(probability) * laplacian;
            square += faer::Scale(probability) * product;
        }
        sampled::minimise(0.0, 1.0 / max_degree.max(1) as f64, |weight| {
            let matrix = Mat::from_fn(nodes, nodes, |r, c| {
                f64::from(u8::from(r == c)) - 2.0 * weight * linear[(r, c)] + weight * weight * square[(r, c)]
            });
            Ok(sampled::top_of_disagreement(&matrix)?.0)
        })
    }
}

/// Candidates with the probability of each.
struct Mixture {
    candidates: Vec<Vec<usize>>,
    probabilities: Vec<f64>,
    weight: f64,
}

impl Mixture {
    /// A step of mirror descent on the simplex, kept within the budget by a price per slot.
    fn follow(&mut self, slopes: &[f64], costs: &[f64], budget: f64, pace: f64) {
        let least = slopes.iter().copied().fold(f64::INFINITY, f64::min);
        let spread = slopes.iter().copied().fold(0.0, |most: f64, slope| most.max(slope - least)).max(1e-12);
        let at_price = |price: f64| {
            let shifted = slopes.iter().zip(costs).zip(&self.probabilities);
            let mut next: Vec<f64> = shifted
                .map(|((slope, cost), share)| {
                    share * (-pace * (slope - least) / spread - price * (cost - budget)).exp()
                })
                .collect();
            let sum: f64 = next.iter().sum();
            next.iter_mut().for_each(|share| *share /= sum);
            next
        };
        let mean = |shares: &[f64]| shares.iter().zip(costs).map(|(share, cost)| share * cost).sum::<f64>();
        let (mut low, mut high) = (0.0, 0.0);
        if mean(&at_price(0.0)) > budget {
            high = 10.0;
            for _ in 0..50 {
                let middle = f64::midpoint(low, high);
                if mean(&at_price(middle)) > budget { low = middle } else { high = middle }
            }
        }
        self.probabilities = at_price(high);
    }

    /// A period: every candidate about as often as its probability says, in random order.
    fn draw(&self, sampler: &Sampler<'_>, rng: &mut ChaCha8Rng) -> Vec<Drawn> {
        let mut chosen = Vec::with_capacity(STEPS);
        let (mut sum, offset) = (0.0, (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64);
        for (candidate, probability) in self.probabilities.iter().enumerate() {
            sum += probability * STEPS as f64;
            while (chosen.len() as f64 + offset) < sum && chosen.len() < STEPS {
                chosen.push(candidate);
            }
        }
        while chosen.len() < STEPS {
            chosen.push(below(rng, self.candidates.len()));
        }
        (1..STEPS).rev().for_each(|last| chosen.swap(last, below(rng, last + 1)));
        chosen.into_iter().map(|candidate| sampler.step(&self.candidates[candidate])).collect()
    }
}

/// Nodes that may broadcast together: the square of the interference graph, coloured by saturation.
fn collision_free_subsets(topology: &Topology) -> Vec<Vec<usize>> {
    let nodes = topology.node_count();
    let around = |node: usize| {
        let near = topology.interferers(node).iter().copied();
        let mut both: Vec<usize> =
            near.clone().chain(near.flat_map(|other| topology.interferers(other).iter().copied())).collect();
        both.sort_unstable();
        both.dedup();
        both.retain(|&other| other != node);
        both
    };
    let squares: Vec<Vec<usize>> = (0..nodes).map(around).collect();
    let mut colors = vec![usize::MAX; nodes];
    for _ in 0..nodes {
        let used = |node: usize| {
            let mut used: Vec<usize> =
                squares[node].iter().map(|&other| colors[other]).filter(|&color| color != usize::MAX).collect();
            used.sort_unstable();
            used.dedup();
            used
        };
        let open = (0..nodes).filter(|&node| colors[node] == usize::MAX);
        let key = |&node: &usize| (used(node).len(), squares[node].len(), std::cmp::Reverse(node));
        if let Some(node) = open.max_by_key(key) {
            let used = used(node);
            colors[node] = (0..).find(|color| used.binary_search(color).is_err()).unwrap_or(0);
        }
    }
    let mut subsets = vec![Vec::new(); colors.iter().max().map_or(0, |&last| last + 1)];
    colors.iter().enumerate().for_each(|(node, &color)| subsets[color].push(node));
    subsets
}

/// Shares in proportion to the importance, none above 1, that add up to `total`.
fn capped_shares(importance: Vec<f64>, total: f64) -> Vec<f64> {
    let sum_at = |scale: f64| importance.iter().map(|value| (scale * value).min(1.0)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    while sum_at(high) < total - 1e-9 && high < f64::MAX / 4.0 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if sum_at(middle) > total { high = middle } else { low = middle }
    }
    importance.into_iter().map(|value| (low * value).min(1.0)).collect()
}

fn weighted_sum(matrices: &[Mat<f64>], weights: &[f64]) -> Mat<f64> {
    let nodes = matrices.first().map_or(0, Mat::nrows);
    let mut sum = Mat::zeros(nodes, nodes);
    for (matrix, &weight) in matrices.iter().zip(weights) {
        sum += faer::Scale(weight) * matrix;
    }
    sum
}

/// `v^T M v`.
fn quadratic_form(matrix: &Mat<f64>, vector: &[f64]) -> f64 {
    let row = |r: usize| vector.iter().enumerate().map(|(c, value)| matrix[(r, c)] * value).sum::<f64>();
    (0..vector.len()).map(|r| vector[r] * row(r)).sum()
}

fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    (rng.next_u64() % bound as u64) as usize
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn no_node_hears_two_of_a_subset_and_none_of_a_subset_hears_another() {
        for expression in ["rg:n=33,r=0.4,seed=1", "grid:rows=4,cols=5", "windmill:cliques=3,size=5", "star:n=7"] {
            let topology = Topology::generate(expression).unwrap();
            let subsets = collision_free_subsets(&topology);
            assert_eq!(subsets.iter().map(Vec::len).sum::<usize>(), topology.node_count(), "{expression}");
            for subset in &subsets {
                for (at, &a) in subset.iter().enumerate() {
                    for &b in &subset[..at] {
                        assert!(!topology.interferes(a, b), "{expression}: {a} and {b}");
                        let hears_both = |&&node: &&usize| topology.interferes(node, b);
                        assert_eq!(topology.interferers(a).iter().find(hears_both), None, "{expression}: {a} and {b}");
                    }
                }
            }
        }
    }

    #[test]
    fn shares_are_in_proportion_up_to_one_and_fill_the_budget() {
        let shares = capped_shares(vec![8.0, 1.0, 1.0], 2.0);
        assert!(shares.iter().zip([1.0, 0.5, 0.5]).all(|(a, b)| (a - b).abs() < 1e-9), "{shares:?}");
    }
}
