//! One graph of interactions dealt to clients: spectral co-clustering.
//!
//! Dhillon, "Co-clustering documents and words using bipartite spectral graph partitioning", KDD 2001: users and items lie in the
//! space of the eigenvectors 2 .. k of the normalised adjacency, divided by the roots of their degrees, and k-means groups them
//! together. Interactions between parts are dropped. Every peer computes the same parts from the same file and seed.

use mingle_spectra::{LanczosOptions, smallest_of_laplacian};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::error::RecommendError;
use crate::generator::share;
use crate::interactions::{Interactions, bipartite_graph};

/// Clients that one graph is dealt to, at most.
pub const MOST_PARTS: usize = 256;
/// Lloyd's iterations at most, and beginnings of which the best is taken.
const ITERATIONS: usize = 100;
const BEGINNINGS: usize = 8;

/// The parts of a graph, one for each client.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// By client.
    pub parts: Vec<Interactions>,
    /// Interactions between users and items of different parts, which no client has.
    pub dropped: usize,
}

/// Deals interactions to clients by co-clustering.
///
/// # Errors
/// [`RecommendError::Option`] for no or too many parts, [`RecommendError::EmptyPart`], [`RecommendError::Spectrum`].
pub fn co_cluster(interactions: &Interactions, clients: usize, seed: u64) -> Result<Parts, RecommendError> {
    if clients == 0 || clients > MOST_PARTS {
        let (option, value, bounds) = ("clients", clients as f64, "1 to 256");
        return Err(RecommendError::Option { option, value, bounds });
    }
    if clients == 1 {
        return Ok(Parts { parts: vec![interactions.clone()], dropped: 0 });
    }
    let (users, items) = (interactions.users().len(), interactions.items().len());
    let of_user: Vec<Vec<u32>> = (0..users).map(|user| interactions.of_user(user).to_vec()).collect();
    let graph = bipartite_graph(users, items, &of_user)?;
    let wanted = clients.min(graph.node_count());
    let pairs = smallest_of_laplacian(&graph, wanted, &LanczosOptions { seed, tolerance: 1e-6, ..Default::default() })?;
    let place = |node: usize| -> Vec<f64> {
        let point: Vec<f64> = (0..wanted).map(|at| pairs.vector(at)[node] / graph.degree(node).sqrt()).collect();
        let length = point.iter().map(|value| value * value).sum::<f64>().sqrt();
        point.into_iter().map(|value| value / length.max(f64::MIN_POSITIVE)).collect()
    };
    let points: Vec<Vec<f64>> = (0..graph.node_count()).map(place).collect();
    let labels = k_means(&points, clients, seed);
    let (user_part, item_part) = labels.split_at(users);
    let parts: Vec<Interactions> = (0..clients).map(|part| interactions.part(user_part, item_part, part)).collect();
    if let Some(part) = parts.iter().position(|part| part.count() == 0) {
        return Err(RecommendError::EmptyPart { part, parts: clients });
    }
    let kept: usize = parts.iter().map(Interactions::count).sum();
    Ok(Parts { parts, dropped: interactions.count() - kept })
}

/// Lloyd's algorithm from several beginnings of k-means++ (Arthur and Vassilvitskii 2007).
fn k_means(points: &[Vec<f64>], clusters: usize, seed: u64) -> Vec<usize> {
    let run = |beginning: usize| {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        dice.set_stream(beginning as u64);
        let mut centres = spread(points, clusters, &mut dice);
        let mut labels = vec![0; points.len()];
        for _ in 0..ITERATIONS {
            let next: Vec<usize> = points.iter().map(|point| nearest(point, &centres).0).collect();
            let has_moved = next != labels;
            labels = next;
            if !has_moved {
                break;
            }
            move_centres(points, &labels, &mut centres);
        }
        let cost: f64 = points.iter().map(|point| nearest(point, &centres).1).sum();
        (cost, labels)
    };
    let best = (0..BEGINNINGS).map(run).reduce(|best, next| if next.0 < best.0 { next } else { best });
    best.map_or_else(Vec::new, |best| best.1)
}

fn spread(points: &[Vec<f64>], clusters: usize, dice: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
    let mut centres: Vec<Vec<f64>> = Vec::new();
    while centres.len() < clusters {
        let distances: Vec<f64> = match centres.is_empty() {
            true => vec![1.0; points.len()],
            false => points.iter().map(|point| nearest(point, &centres).1).collect(),
        };
        let mut left = share(dice) * distances.iter().sum::<f64>();
        let chosen = distances.iter().position(|distance| {
            left -= distance;
            left < 0.0
        });
        centres.push(points[chosen.unwrap_or(points.len() - 1)].clone());
    }
    centres
}

/// The nearest centre, the first of equals, and its squared distance.
fn nearest(point: &[f64], centres: &[Vec<f64>]) -> (usize, f64) {
    let distance = |centre: &Vec<f64>| centre.iter().zip(point).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let distances = centres.iter().map(distance).enumerate();
    distances.reduce(|best, next| if next.1 < best.1 { next } else { best }).unwrap_or((0, 0.0))
}

/// A cluster that nobody is in keeps its centre.
fn move_centres(points: &[Vec<f64>], labels: &[usize], centres: &mut [Vec<f64>]) {
    let dimension = centres.first().map_or(0, Vec::len);
    let mut sums = vec![(0_usize, vec![0.0; dimension]); centres.len()];
    for (point, label) in points.iter().zip(labels) {
        let (count, sum) = &mut sums[*label];
        *count += 1;
        sum.iter_mut().zip(point).for_each(|(sum, value)| *sum += value);
    }
    for (centre, (count, sum)) in centres.iter_mut().zip(sums) {
        if count > 0 {
            *centre = sum.into_iter().map(|sum| sum / count as f64).collect();
        }
    }
}
