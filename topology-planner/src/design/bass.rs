//! BASS (Herrera, Chen and Larsson, "Faster convergence with less communication: Broadcast-based subgraph sampling for
//! decentralized learning over wireless networks", IEEE Open Journal of the Communications Society, 2025): nodes that
//! can broadcast together form subsets, and in each step some of the subsets broadcast, one slot each.
//!
//! 1. The nodes are partitioned into collision-free subsets ([`subsets`]).
//! 2. Matrices are symmetric, so an edge mixes in a step only if both its ends broadcast in it.
//! 3. `bass-heuristic` lets each subset broadcast with a probability of its own, in proportion to how central its nodes
//!    are ([`importance`]); the probabilities add up to the budget of slots. All active edges have one weight `a`,
//!    `W = I - a L`, which minimises the contraction `|| E[W W] - J ||`.
//! 4. `bass-optimised` chooses among 100 sets of subsets, by how often to draw each and with which weights on its edges
//!    ([`mixture`]). The steps of the heuristic are among them, so that it is never worse than the heuristic.
//!
//! A period of steps is drawn ([`sampled`](super::sampled)) and then repeated, so the expectation of both designs is
//! the mean over the period. A subset that broadcasts while none of its neighbours does has no edge and takes no slot;
//! the budget still counts it when the heuristic draws.
//!
//! Without a budget, a step takes 60 % of the slots in which all nodes would broadcast: \[NH\] section 6 compares BASS
//! at 18 of 28 and 14 of 28.

mod importance;
mod mixture;
mod subsets;

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use self::{
    mixture::{Candidate, Free, Mixture},
    subsets::Subsets,
};
use super::{
    Design, DesignError, DesignRequest, Method,
    contraction::LaplacianMoments,
    sampled::{self, Edge, Period},
};
use crate::{
    mixing_matrix::MixingMatrix,
    plan::{Medium, MixingStep, Parameter, StepDraft},
};

/// Number of sets of subsets that `bass-optimised` chooses from, as in the experiments of the paper.
const CANDIDATES: usize = 100;

/// The default budget, as a fraction of the subsets.
const DEFAULT_BUDGET: f64 = 0.6;

/// Eigenvalue decompositions in the search for probabilities and weights, at the default effort.
const SPECTRA: usize = 300;

/// Eigenvalue decompositions in the search for the weights of a drawn period, at the default effort.
const FINAL_SPECTRA: usize = 90;

/// Number of periods drawn from the optimised probabilities, of which the best is taken.
const DRAWS: usize = 8;

/// Draws a period of steps.
pub(super) fn design(request: &DesignRequest<'_>) -> Result<Design, DesignError> {
    if request.options.medium == Medium::PointToPoint {
        return Err(DesignError::BroadcastOnly { method: request.method });
    }
    sampled::check_size(request)?;
    let topology = request.degree_limited()?;
    let request = DesignRequest { topology: &topology, ..*request };
    let subsets = Subsets::new(&topology);
    let budget = request.options.budget_slots.unwrap_or_else(|| {
        let share = (DEFAULT_BUDGET * subsets.len() as f64).round() as usize;
        // With one subset at a time no edge would ever be active.
        share.max(2)
    });
    let sampler = Sampler { request: &request, budget: budget.min(subsets.len()), subsets };
    let heuristic = sampler.heuristic()?;
    let chosen = if request.method == Method::BassOptimised { sampler.optimised(heuristic)? } else { heuristic };
    sampler.design(&chosen)
}

struct Sampler<'r> {
    request: &'r DesignRequest<'r>,
    subsets: Subsets<'r>,
    /// Slots per step, on average.
    budget: usize,
}

/// A period: for each step, the number of a matrix of the mixture.
struct Sample {
    mixture: Mixture,
    steps: Vec<usize>,
}

impl Sampler<'_> {
    /// The heuristic design.
    fn heuristic(&self) -> Result<Sample, DesignError> {
        let Some(period) = self.draw(self.budget) else {
            return Err(self.budget_too_small());
        };
        let nodes = self.request.topology.node_count();
        let steps: Vec<Vec<Edge>> = period.iter().map(|active| self.subsets.edges(active)).collect();
        let most = 1.0 / sampled::max_degree(nodes, steps.iter()).max(1) as f64;
        let weight = sampled::planned_weight(LaplacianMoments::of_steps(nodes, &steps).best_weight(most)?);
        Ok(self.sample(period, weight))
    }

    /// A period in which every subset broadcasts about as often as its probability requires; `None` if no such period
    /// joins all nodes.
    fn draw(&self, budget: usize) -> Option<Period> {
        let topology = self.request.topology;
        let probabilities = importance::probabilities(topology, &self.subsets, budget as f64);
        let mut of_node = vec![0.0; topology.node_count()];
        for (subset, &probability) in self.subsets.iter().zip(&probabilities) {
            subset.iter().for_each(|&node| of_node[node] = probability);
        }
        let expected_links: f64 = topology.edges().iter().map(|&(u, v)| 2.0 * of_node[u] * of_node[v]).sum();
        let draw = |steps: usize, rng: &mut _| sampled::independent(&probabilities, steps, rng);
        sampled::draw_joined(self.request, expected_links, draw, |active| self.subsets.edges(active))
    }

    /// The least larger budget that joins all nodes.
    fn budget_too_small(&self) -> DesignError {
        let larger = (self.budget + 1..self.subsets.len()).find(|&budget| self.draw(budget).is_some());
        let needed = larger.unwrap_or(self.subsets.len());
        DesignError::BudgetSlots { method: self.request.method, budget: self.budget, needed }
    }

    /// The period, as a mixture of its different steps with one weight on all edges.
    fn sample(&self, period: Period, weight: f64) -> Sample {
        let mut number_of: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let mut candidates = Vec::new();
        let mut steps = Vec::with_capacity(period.len());
        for active in period {
            let number = *number_of.entry(active.clone()).or_insert(candidates.len());
            if number == candidates.len() {
                candidates.push(self.candidate(active, weight));
            }
            steps.push(number);
        }
        let shares = shares_of(&steps, candidates.len());
        let nodes = self.request.topology.node_count();
        Sample { mixture: Mixture::new(nodes, self.budget as f64, candidates, shares), steps }
    }

    /// A step with one weight on all edges, reduced where a node could not give that much to all its neighbours.
    fn candidate(&self, active: Vec<usize>, weight: f64) -> Candidate {
        let edges = self.subsets.edges(&active);
        let degree = sampled::max_degree(self.request.topology.node_count(), std::iter::once(&edges));
        let weight = weight.min(sampled::planned_weight(1.0 / degree.max(1) as f64));
        Candidate { weights: vec![weight; edges.len()], cost: self.subsets.cost(&active), edges, active }
    }

    /// The better of two periods, both with optimised weights: one drawn from optimised probabilities, and that of the
    /// heuristic.
    fn optimised(&self, heuristic: Sample) -> Result<Sample, DesignError> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.request.options.seed ^ 1);
        let spectra = sampled::spectra(self.request, SPECTRA);
        let mixture = self.with_more_candidates(&heuristic, &mut rng).improved(spectra, Free::WeightsAndShares)?;
        let mut best = self.polished(heuristic)?;
        if let Some(drawn) = self.best_draw(&mixture, best.steps.len(), &mut rng)? {
            let drawn = self.polished(drawn)?;
            if drawn.mixture.norm()? < best.mixture.norm()? && self.joins_all(&drawn) {
                best = drawn;
            }
        }
        Ok(best)
    }

    /// The steps of the heuristic and others up to [`CANDIDATES`]: half of them drawn with its probabilities, half with
    /// equal ones.
    fn with_more_candidates(&self, heuristic: &Sample, rng: &mut ChaCha8Rng) -> Mixture {
        let mut candidates = heuristic.mixture.candidates().to_vec();
        let weights = candidates.iter().flat_map(|candidate| &candidate.weights);
        let weight = weights.copied().next().unwrap_or(0.0);
        let missing = CANDIDATES.saturating_sub(candidates.len());
        let central = importance::probabilities(self.request.topology, &self.subsets, self.budget as f64);
        let even = vec![self.budget as f64 / self.subsets.len() as f64; self.subsets.len()];
        for (probabilities, count) in [(central, missing.div_ceil(2)), (even, missing / 2)] {
            let drawn = sampled::independent(&probabilities, count.max(1), rng);
            candidates.extend(drawn.into_iter().take(count).map(|active| self.candidate(active, weight)));
        }
        let mut shares = heuristic.mixture.shares().to_vec();
        shares.resize(candidates.len(), 0.0);
        Mixture::new(self.request.topology.node_count(), self.budget as f64, candidates, shares)
    }

    /// Of `DRAWS` periods drawn by the shares of a mixture, the one that contracts most within the budget; `None` if
    /// none fits.
    fn best_draw(&self, mixture: &Mixture, length: usize, rng: &mut ChaCha8Rng) -> Result<Option<Sample>, DesignError> {
        // In the order of their costs: rounding then exchanges candidates for ones with similar slots.
        let candidates = mixture.candidates();
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        order.sort_by_key(|&number| candidates[number].cost);
        let ordered: Vec<f64> = order.iter().map(|&number| mixture.shares()[number]).collect();
        let mut best: Option<(f64, Sample)> = None;
        for _ in 0..DRAWS {
            let counts = sampled::rounded_counts(&ordered, length, rng);
            let mut steps: Vec<usize> =
                order.iter().zip(counts).flat_map(|(&number, count)| std::iter::repeat_n(number, count)).collect();
            let slots: usize = steps.iter().map(|&number| candidates[number].cost).sum();
            if steps.len() != length || slots > self.budget * length {
                continue;
            }
            sampled::shuffle(&mut steps, rng);
            let drawn = mixture.with_shares(shares_of(&steps, candidates.len()));
            let norm = drawn.norm()?;
            if best.as_ref().is_none_or(|(least, _)| norm < *least) {
                best = Some((norm, Sample { mixture: drawn, steps }));
            }
        }
        Ok(best.map(|(_, sample)| sample))
    }

    /// The sample with the best weights for the frequencies that its steps really have, rounded as a plan holds them.
    fn polished(&self, mut sample: Sample) -> Result<Sample, DesignError> {
        let spectra = sampled::spectra(self.request, FINAL_SPECTRA);
        sample.mixture.map_weights(sampled::planned_weight);
        let mut mixture = sample.mixture.clone().improved(spectra, Free::Weights)?;
        mixture.map_weights(sampled::planned_weight);
        let polished = Sample { mixture, steps: sample.steps.clone() };
        let is_better = polished.mixture.norm()? <= sample.mixture.norm()? && self.joins_all(&polished);
        Ok(if is_better { polished } else { sample })
    }

    fn joins_all(&self, sample: &Sample) -> bool {
        let used = sample.mixture.candidates().iter().zip(sample.mixture.shares()).filter(|(_, share)| **share > 0.0);
        let edges = used.flat_map(|(candidate, _)| candidate.edges.iter().copied().zip(&candidate.weights));
        let nodes = self.request.topology.node_count();
        sampled::joins_all(nodes, edges.filter(|(_, weight)| **weight > 0.0).map(|(edge, _)| edge))
    }

    fn design(&self, sample: &Sample) -> Result<Design, DesignError> {
        let candidates = sample.mixture.candidates();
        let used = sample.mixture.shares().iter().filter(|share| **share > 0.0).count();
        let mut parameters = vec![
            ("effort", Parameter::Whole(self.request.options.effort.into())),
            ("budget", Parameter::Whole(self.budget as u64)),
            ("subsets", Parameter::Whole(self.subsets.len() as u64)),
            ("sampled_steps", Parameter::Whole(sample.steps.len() as u64)),
            ("different_steps", Parameter::Whole(used as u64)),
            ("contraction", Parameter::Real(sampled::reported(sample.mixture.norm()?))),
        ];
        if self.request.method == Method::BassHeuristic {
            let weight = candidates.iter().flat_map(|candidate| &candidate.weights).next();
            parameters.push(("weight", Parameter::Real(weight.copied().unwrap_or(0.0))));
        }
        let steps = sample.steps.iter().map(|&number| MixingStep::sorted(self.step(&candidates[number]))).collect();
        Ok(Design { steps, round_length: Some(1), parameters })
    }

    fn step(&self, candidate: &Candidate) -> StepDraft {
        let weighted: Vec<(Edge, f64)> =
            candidate.edges.iter().copied().zip(candidate.weights.iter().copied()).collect();
        let (keep, links) = MixingMatrix::symmetric(self.request.topology.node_count(), &weighted).into_parts();
        let is_used = |link| links.binary_search_by_key(&link, |known| known.link()).is_ok();
        let slots = self.subsets.slots(&candidate.active, is_used);
        StepDraft { keep, links, slots }
    }
}

/// For each number, the fraction of the steps that have it.
fn shares_of(steps: &[usize], count: usize) -> Vec<f64> {
    let mut shares = vec![0.0; count];
    let share = 1.0 / steps.len() as f64;
    steps.iter().for_each(|&number| shares[number] += share);
    shares
}
