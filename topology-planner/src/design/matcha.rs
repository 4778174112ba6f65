//! MATCHA (Wang, Sahu, Joshi and Kar, "MATCHA: A matching-based link scheduling strategy to speed up distributed
//! optimization", IEEE Transactions on Signal Processing 70, 2022): the base graph is split into matchings, each of which
//! is active in a step with a probability of its own.
//!
//! The probabilities `p` maximise `lambda_2(sum_j p_j L_j)`, the connectivity of the expected graph, within a budget
//! `sum_j p_j <= C M`, `M` the number of matchings: concave, climbed by projected supergradients. The weight `a` of
//! `W = I - a L` then minimises the expected contraction `|| E[W W] - J || = || I - 2 a L + a^2 (L L + 2 L') - J ||` with
//! `L = sum_j p_j L_j` and `L' = sum_j p_j (1 - p_j) L_j`. Matchings do not know of interference: on a broadcast medium
//! the budget is the fraction `C` of the cost, as \[NH\] section 6.2 compares it, and lowered until the slots fit.

use faer::Mat;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    Design, DesignError, Request,
    sampled::{self, DRAWS, Drawn, STEPS},
};
use crate::{
    edge_coloring::matchings,
    plan::{Medium, Parameter},
    spectrum,
};

/// The communication budget `C` when no slots are given: half of all matchings per step.
const DEFAULT_BUDGET: f64 = 0.5;

/// Supergradient steps for a unit of effort.
const CLIMBS_PER_EFFORT: usize = 20;

/// Draws a period of steps.
pub(super) fn design(request: &Request<'_>) -> Result<Design, DesignError> {
    sampled::check_size(request)?;
    let nodes = request.topology.node_count();
    let matchings = matchings(request.topology);
    let budget_slots = request.options.budget_slots.filter(|_| request.options.medium == Medium::Broadcast);
    let mut budget = budget_slots.map_or(DEFAULT_BUDGET, |slots| {
        (slots as f64 / sampled::all_links_slots(request, request.topology) as f64).min(1.0)
    });
    let mut rng = ChaCha8Rng::seed_from_u64(request.options.seed);
    for _ in 0..DRAWS {
        let probabilities = best_probabilities(request, &matchings, budget)?;
        let drawn = draw(&matchings, &probabilities, &mut rng);
        if !sampled::joins_all(nodes, &drawn) {
            continue;
        }
        let weight = best_weight(nodes, &matchings, &probabilities, sampled::max_degree(nodes, &drawn))?;
        let parameters = vec![
            ("budget", Parameter::Real(budget)),
            ("effort", Parameter::Whole(request.options.effort.into())),
            ("matchings", Parameter::Whole(matchings.len() as u64)),
        ];
        let design = sampled::design(request, drawn, weight, parameters);
        let mean = design.steps.iter().map(|step| step.slots.len()).sum::<usize>() as f64 / STEPS as f64;
        match budget_slots.filter(|&slots| slots as f64 + 1e-9 < mean) {
            None => return Ok(design),
            Some(slots) => budget *= 0.98 * slots as f64 / mean,
        }
    }
    Err(DesignError::SampleDisconnected {
        method: request.method,
        steps: STEPS,
        budget: budget_slots.unwrap_or(usize::MAX),
    })
}

/// Which matchings are active in each step.
fn draw(matchings: &[Vec<(usize, usize)>], probabilities: &[f64], rng: &mut ChaCha8Rng) -> Vec<Drawn> {
    let mut step = || {
        let active = matchings.iter().zip(probabilities).filter(|&(_, &probability)| unit(rng) < probability);
        let mut edges: Vec<_> = active.flat_map(|(matching, _)| matching.iter().copied()).collect();
        edges.sort_unstable();
        Drawn { edges, slots: None }
    };
    (0..STEPS).map(|_| step()).collect()
}

/// Activation probabilities within the budget.
fn best_probabilities(
    request: &Request<'_>,
    matchings: &[Vec<(usize, usize)>],
    budget: f64,
) -> Result<Vec<f64>, DesignError> {
    let nodes = request.topology.node_count();
    let total = budget * matchings.len() as f64;
    let mut probabilities = vec![budget; matchings.len()];
    let (mut best, mut best_connectivity) = (probabilities.clone(), f64::NEG_INFINITY);
    for climb in 0..=CLIMBS_PER_EFFORT * request.options.effort as usize {
        let (connectivity, slopes) = connectivity(nodes, matchings, &probabilities)?;
        if connectivity > best_connectivity {
            (best_connectivity, best) = (connectivity, probabilities.clone());
        }
        let length = slopes.iter().map(|slope| slope * slope).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        let step = 0.5 / (1.0 + climb as f64).sqrt() / length;
        probabilities.iter_mut().zip(&slopes).for_each(|(probability, slope)| *probability += step * slope);
        project(&mut probabilities, total);
    }
    Ok(best)
}

/// `lambda_2` of the expected Laplacian, and a supergradient of it: what each matching adds along the Fiedler vector.
fn connectivity(
    nodes: usize,
    matchings: &[Vec<(usize, usize)>],
    probabilities: &[f64],
) -> Result<(f64, Vec<f64>), DesignError> {
    let mut expected = Mat::zeros(nodes, nodes);
    for (matching, &probability) in matchings.iter().zip(probabilities) {
        sampled::add_laplacian(&mut expected, matching, probability);
    }
    let (values, vectors) = spectrum::symmetric_eigen(&expected).map_err(DesignError::Spectrum)?;
    let stretch = |&(u, v): &(usize, usize)| (vectors[(u, 1)] - vectors[(v, 1)]).powi(2);
    Ok((values[1], matchings.iter().map(|matching| matching.iter().map(stretch).sum()).collect()))
}

/// The nearest point with all entries in [0, 1] and a sum of at most `total`.
fn project(point: &mut [f64], total: f64) {
    let sum_at = |shift: f64| point.iter().map(|x| (x - shift).clamp(0.0, 1.0)).sum::<f64>();
    let (mut low, mut high) = (0.0, point.iter().copied().fold(0.0, f64::max));
    if sum_at(0.0) > total {
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if sum_at(middle) > total { low = middle } else { high = middle }
        }
    } else {
        high = 0.0;
    }
    point.iter_mut().for_each(|x| *x = (*x - high).clamp(0.0, 1.0));
}

/// The weight with the least expected contraction under which no node gives more than it has.
fn best_weight(
    nodes: usize,
    matchings: &[Vec<(usize, usize)>],
    probabilities: &[f64],
    max_degree: usize,
) -> Result<f64, DesignError> {
    let (mut expected, mut spread) = (Mat::zeros(nodes, nodes), Mat::zeros(nodes, nodes));
    for (matching, &probability) in matchings.iter().zip(probabilities) {
        sampled::add_laplacian(&mut expected, matching, probability);
        sampled::add_laplacian(&mut spread, matching, 2.0 * probability * (1.0 - probability));
    }
    let square = &expected * &expected;
    sampled::minimise(0.0, 1.0 / max_degree.max(1) as f64, |weight| {
        let matrix = Mat::from_fn(nodes, nodes, |row, column| {
            let at = (row, column);
            f64::from(u8::from(row == column)) - 2.0 * weight * expected[at]
                + weight * weight * (square[at] + spread[at])
        });
        Ok(sampled::top_of_disagreement(&matrix)?.0)
    })
}

fn unit(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projection_keeps_the_box_and_the_budget() {
        let mut point = vec![1.5, 0.9, 0.2, -0.3];
        project(&mut point, 1.2);
        assert!((point.iter().sum::<f64>() - 1.2).abs() < 1e-12 && point.iter().all(|x| (0.0..=1.0).contains(x)));
        assert!(point[0] > point[1] && point[1] > point[2] && point[3] == 0.0, "{point:?}");
        let mut inside = vec![0.5, 0.25];
        project(&mut inside, 1.0);
        assert_eq!(inside, [0.5, 0.25]);
    }
}
