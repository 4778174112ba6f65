//! MATCHA (Wang, Sahu, Joshi and Kar, "MATCHA: A matching-based link scheduling strategy to speed up distributed
//! optimization", IEEE Transactions on Signal Processing 70, 2022): the base graph is split into matchings, and each is
//! active in a step with a probability of its own.
//!
//! 1. Edge colouring gives `M <= Delta + 1` matchings with Laplacians `L_j` ([`crate::edge_coloring`]).
//! 2. Their probabilities `p_j` connect the expected graph best within a budget `sum_j p_j <= C M` ([`activation`]).
//! 3. `W = I - a sum_{active j} L_j`, where `a` minimises the contraction `|| E[W W] - J ||`. Because a matching has
//!    `L_j L_j = 2 L_j` and matchings are active independently, `E[L L] = E[L]^2 + 2 sum_j p_j (1 - p_j) L_j`.
//! 4. A period of steps is drawn ([`sampled`](super::sampled)).
//!
//! Matchings are meant to be active at the same time and take no account of interference. On a broadcast medium the
//! links of a step are put into slots like any others; a budget of slots is turned into the largest `C` whose drawn
//! steps need no more on average. (\[NH\] section 6.1.2 instead gives MATCHA the percentage of its own full cost that
//! the other design has of its own, whatever slots result.)

mod activation;

use faer::Mat;

use self::activation::Activation;
use super::{
    Design, DesignError, DesignRequest,
    contraction::{LaplacianMoments, add_laplacian},
    sampled::{self, Edge, Period},
};
use crate::{
    coloring,
    conflict_graph::ConflictGraph,
    digraph::Link,
    edge_coloring::matchings,
    mixing_matrix::MixingMatrix,
    plan::{MixingStep, Parameter},
};

/// The communication budget `C` when no slots are given: half of all matchings per step.
const DEFAULT_BUDGET: f64 = 0.5;

/// Eigenvalue decompositions in the search for probabilities, at the default effort.
const SPECTRA: usize = 200;

/// Halvings of the interval in which the largest budget within the slots lies.
const HALVINGS: usize = 10;

/// The fraction of the allowed slots from which on a period is accepted.
const NEAR_BUDGET: f64 = 0.98;

/// Draws a period of steps.
pub(super) fn design(request: &DesignRequest<'_>) -> Result<Design, DesignError> {
    sampled::check_size(request)?;
    let topology = request.degree_limited()?;
    let request = DesignRequest { topology: &topology, ..*request };
    let sampler = Sampler { request: &request, matchings: matchings(&topology) };
    match request.options.budget_slots {
        None => sampler.design(sampler.sample(DEFAULT_BUDGET)?.ok_or_else(|| sampler.nothing_joins_all())?),
        Some(slots) => sampler.design(sampler.largest_within(slots)?),
    }
}

struct Sampler<'r> {
    request: &'r DesignRequest<'r>,
    matchings: Vec<Vec<Edge>>,
}

/// A drawn period, with the budget and the probabilities it was drawn from.
struct Sample {
    budget: f64,
    activation: Activation,
    period: Period,
}

impl Sampler<'_> {
    /// A period within a communication budget; `None` if its edges never join all nodes.
    fn sample(&self, budget: f64) -> Result<Option<Sample>, DesignError> {
        let nodes = self.request.topology.node_count();
        let spectra = sampled::spectra(self.request, SPECTRA);
        let activation = Activation::best(nodes, &self.matchings, budget, spectra).map_err(DesignError::Spectrum)?;
        let probabilities = &activation.probabilities;
        let expected = self.matchings.iter().zip(probabilities).map(|(matching, p)| 2.0 * p * matching.len() as f64);
        let draw = |steps: usize, rng: &mut _| sampled::independent(probabilities, steps, rng);
        let period = sampled::draw_joined(self.request, expected.sum(), draw, |active| self.edges(active));
        Ok(period.map(|period| Sample { budget, activation, period }))
    }

    /// A period with about the largest communication budget whose steps take at most `slots` on average.
    fn largest_within(&self, slots: usize) -> Result<Sample, DesignError> {
        let mut low = 0.0;
        let mut high = 1.0;
        let mut best = None;
        let mut needed = f64::INFINITY;
        // All matchings in every step first: where that fits, no other budget is better.
        let mut budget = high;
        for _ in 0..=HALVINGS {
            match self.sample(budget)? {
                Some(sample) => {
                    let mean = self.mean_slots(&sample.period);
                    if mean > slots as f64 {
                        high = budget;
                        needed = needed.min(mean);
                    } else if budget == 1.0 || mean >= NEAR_BUDGET * slots as f64 {
                        return Ok(sample);
                    } else {
                        low = budget;
                        best = Some(sample);
                    }
                }
                None => low = budget,
            }
            budget = f64::midpoint(low, high);
        }
        let method = self.request.method;
        let needed = needed.ceil() as usize;
        best.ok_or(DesignError::BudgetSlots { method, budget: slots, needed })
    }

    fn edges(&self, active: &[usize]) -> Vec<Edge> {
        active.iter().flat_map(|&matching| self.matchings[matching].iter().copied()).collect()
    }

    /// The average slots of a step. The final steps may take fewer, by searched colourings.
    fn mean_slots(&self, period: &Period) -> f64 {
        let slots = |active: &Vec<usize>| {
            let edges = self.edges(active);
            let links = edges.iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]).collect();
            let colors = coloring::dsatur(&ConflictGraph::new(self.request.topology, links));
            colors.into_iter().max().map_or(0, |last| last + 1)
        };
        period.iter().map(slots).sum::<usize>() as f64 / period.len() as f64
    }

    /// The expected Laplacian and its square.
    fn moments(&self, probabilities: &[f64]) -> LaplacianMoments {
        let nodes = self.request.topology.node_count();
        let mut mean = Mat::zeros(nodes, nodes);
        let mut variance = Mat::zeros(nodes, nodes);
        for (matching, &probability) in self.matchings.iter().zip(probabilities) {
            add_laplacian(&mut mean, matching, probability);
            add_laplacian(&mut variance, matching, 2.0 * probability * (1.0 - probability));
        }
        let square = &mean * &mean + variance;
        LaplacianMoments::new(mean, square)
    }

    fn design(&self, sample: Sample) -> Result<Design, DesignError> {
        let Sample { budget, activation, period } = sample;
        let steps: Vec<Vec<Edge>> = period.iter().map(|active| self.edges(active)).collect();
        let nodes = self.request.topology.node_count();
        let moments = self.moments(&activation.probabilities);
        let most = 1.0 / sampled::max_degree(nodes, steps.iter()).max(1) as f64;
        let weight = sampled::planned_weight(moments.best_weight(most)?);
        let real = |number: f64| Parameter::Real(sampled::reported(number));
        let extreme = |pick: fn(f64, f64) -> f64| activation.probabilities.iter().copied().reduce(pick).unwrap_or(0.0);
        let parameters = vec![
            ("budget", real(budget)),
            ("effort", Parameter::Whole(self.request.options.effort.into())),
            ("matchings", Parameter::Whole(self.matchings.len() as u64)),
            ("sampled_steps", Parameter::Whole(period.len() as u64)),
            ("probability_min", real(extreme(f64::min))),
            ("probability_max", real(extreme(f64::max))),
            ("connectivity", real(activation.connectivity)),
            ("connectivity_bound", real(activation.bound)),
            ("contraction", real(moments.contraction(weight)?)),
            ("weight", Parameter::Real(weight)),
        ];
        let step = |edges: &Vec<Edge>| {
            let weighted: Vec<(Edge, f64)> = edges.iter().map(|&edge| (edge, weight)).collect();
            self.request.scheduled_step(MixingMatrix::symmetric(nodes, &weighted))
        };
        Ok(Design {
            steps: steps.iter().map(step).map(MixingStep::sorted).collect(),
            round_length: Some(1),
            parameters,
        })
    }

    /// The error for a period with the default budget that does not join all nodes; only a search that is cut very
    /// short can fail so.
    fn nothing_joins_all(&self) -> DesignError {
        DesignError::SampleDisconnected { method: self.request.method, steps: sampled::MOST_STEPS }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{DesignOptions, Method, Topology, design};

    #[test]
    fn the_expected_square_is_that_of_all_subsets_of_matchings_weighed_by_their_chance() {
        let topology = Topology::generate("rg:n=9,r=0.6,seed=2").unwrap();
        let options = DesignOptions::default();
        let order: Vec<usize> = (0..9).collect();
        let request = DesignRequest { topology: &topology, order: &order, method: Method::Matcha, options: &options };
        let sampler = Sampler { request: &request, matchings: matchings(&topology) };
        let count = sampler.matchings.len();
        let probabilities: Vec<f64> = (0..count).map(|j| (j as f64 + 0.5) / count as f64).collect();
        let moments = sampler.moments(&probabilities);
        for weight in [0.05, 0.13] {
            let mut expected = Mat::<f64>::zeros(9, 9);
            for set in 0_u32..1 << count {
                let is_active = |j: &usize| set >> j & 1 == 1;
                let active: Vec<usize> = (0..count).filter(is_active).collect();
                let chance: f64 =
                    (0..count).map(|j| if is_active(&j) { probabilities[j] } else { 1.0 - probabilities[j] }).product();
                let mut matrix = Mat::<f64>::identity(9, 9);
                add_laplacian(&mut matrix, &sampler.edges(&active), -weight);
                expected += faer::Scale(chance) * (&matrix * &matrix);
            }
            let centered = Mat::from_fn(9, 9, |r, c| expected[(r, c)] - 1.0 / 9.0);
            let norm = crate::spectrum::symmetric_moduli(&centered).unwrap()[0];
            assert!((moments.contraction(weight).unwrap() - norm).abs() < 1e-12);
        }
    }

    #[test]
    fn the_drawn_period_contracts_about_as_the_probabilities_promise() {
        for expression in ["rg:n=33,r=0.5,seed=0", "grid:rows=5,cols=5"] {
            let plan =
                design(&Topology::generate(expression).unwrap(), Method::Matcha, &DesignOptions::default()).unwrap();
            let real = |name: &str| match plan.parameters()[name] {
                Parameter::Real(real) => real,
                ref other => panic!("{name}: {other:?}"),
            };
            let edges = |step: &crate::MixingStep| {
                step.links().iter().filter(|link| link.from < link.to).map(|link| (link.from, link.to)).collect()
            };
            let steps: Vec<Vec<Edge>> = plan.steps().iter().map(edges).collect();
            let drawn = LaplacianMoments::of_steps(plan.node_count(), &steps).contraction(real("weight")).unwrap();
            let promised = real("contraction");
            assert!((drawn.ln() / promised.ln() - 1.0).abs() < 0.25, "{expression}: {drawn} instead of {promised}");
        }
    }
}
