//! Weights by distances between signatures: the printed alternation, and one that does not degenerate.

use super::WeightMatrix;
use super::steps::{by_reciprocals, difference, distances, spreads, uniform, weights_of};

/// The number of alternations: the published code makes one a round for 15 rounds, and signatures do not change between
/// rounds.
const PASSES: usize = 15;
/// The term that keeps the printed reciprocals finite.
const EPSILON: f64 = 1e-10;

/// Weights by the printed alternation.
pub(super) fn paper(p: &[Vec<f64>], q: &[Vec<f64>], gamma: f64) -> WeightMatrix {
    let mut weights = uniform(p.len());
    for _ in 0..PASSES {
        let r = by_reciprocals(&spreads(p, &weights), EPSILON);
        let s = by_reciprocals(&spreads(q, &weights), EPSILON);
        weights = weights_of(&difference(&distances(p, &r), &distances(q, &s)), gamma);
    }
    weights
}

/// Weights over informative coordinates alone. R prefers those on which clients agree and S those on which they differ,
/// neither without bound. Both distances have mean one over pairs of different clients.
pub(super) fn robust(p: &[Vec<f64>], q: &[Vec<f64>], gamma: f64) -> WeightMatrix {
    let mut weights = uniform(p.len());
    for _ in 0..PASSES {
        let r = agreeing(&spreads(p, &weights));
        let s = differing(&spreads(q, &weights));
        weights = weights_of(&difference(&scaled(distances(p, &r)), &scaled(distances(q, &s))), gamma);
    }
    weights
}

/// A predicate of informative spreads: those above a tiny share of the largest.
fn informative(spreads: &[f64]) -> impl Fn(f64) -> bool {
    /// The least informative share of the largest spread.
    const TINY: f64 = 1e-6;
    let least = TINY * spreads.iter().copied().fold(0.0, f64::max);
    move |spread| spread > least
}

/// `1 / (e + mean e / 10)` at informative coordinates, else 0, with mean one over them.
pub(super) fn agreeing(spreads: &[f64]) -> Vec<f64> {
    let tells = informative(spreads);
    let (count, sum) = spreads.iter().filter(|&&e| tells(e)).fold((0, 0.0), |(count, sum), e| (count + 1, sum + e));
    let mean = sum / f64::from(count.max(1));
    mean_one(spreads.iter().map(|&e| if tells(e) { 1.0 / (e + 0.1 * mean) } else { 0.0 }).collect())
}

/// The spread at informative coordinates, else 0, with mean one over them.
pub(super) fn differing(spreads: &[f64]) -> Vec<f64> {
    let tells = informative(spreads);
    mean_one(spreads.iter().map(|&n| if tells(n) { n } else { 0.0 }).collect())
}

/// Scales the positive entries to mean one. If there are none, all clients are the same, and all entries are one.
fn mean_one(mut scales: Vec<f64>) -> Vec<f64> {
    let (count, sum) = scales.iter().filter(|&&s| s > 0.0).fold((0, 0.0), |(count, sum), s| (count + 1, sum + s));
    if sum == 0.0 {
        return vec![1.0; scales.len()];
    }
    let mean = sum / f64::from(count);
    scales.iter_mut().for_each(|scale| *scale /= mean);
    scales
}

/// Divides distances by their mean over pairs of different clients; leaves them if that is zero.
fn scaled(mut distances: WeightMatrix) -> WeightMatrix {
    let clients = distances.len() as f64;
    let mean = distances.iter().flatten().sum::<f64>() / (clients * (clients - 1.0)).max(1.0);
    if mean > 0.0 {
        distances.iter_mut().flatten().for_each(|distance| *distance /= mean);
    }
    distances
}
