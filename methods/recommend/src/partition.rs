//! Partition of one graph of interactions among clients: spectral co-clustering.
//!
//! Dhillon, "Co-clustering documents and words using bipartite spectral graph partitioning", KDD 2001: users and items lie in the
//! space of the eigenvectors 2 .. k of the normalised adjacency, divided by the roots of their degrees, and k-means groups them
//! together. Interactions between parts are dropped. Every peer computes the same parts from the same file and seed.
//!
//! k-means goes by density alone, and for many graphs it takes most nodes into one part. The balanced variant has
//! capacities: the users of one part have no more than [`SLACK`] beyond an equal share of all interactions, and neither
//! have its items. Each of its steps assigns by regret: first the nodes whose second nearest centre is farthest beyond
//! the nearest, as the greedy starts of capacitated clustering do (e.g. Mulvey and Beck 1984). It is a heuristic whose
//! cost may rise in a step, so the cheapest labels seen are kept.

mod balanced;

use mingle_spectra::{LanczosOptions, WeightedGraph, smallest_of_laplacian};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use crate::error::RecommendError;
use crate::generator::share;
use crate::interactions::{Interactions, bipartite_graph};
use balanced::Capacities;

pub use balanced::SLACK;

/// The most clients that one graph is dealt to.
pub const MOST_PARTS: usize = 256;
/// The most iterations of Lloyd's algorithm, and the number of starts of which the best is taken.
const ITERATIONS: usize = 100;
const BEGINNINGS: usize = 8;

/// The options of dealing interactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DealOptions {
    /// `true` if parts must have about as many interactions each.
    pub balanced: bool,
    /// The seed of the eigenvectors' start and of k-means.
    pub seed: u64,
}

/// The parts of a graph, one for each client.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphParts {
    /// The interactions of each client.
    pub parts: Vec<Interactions>,
    /// Interactions between users and items of different parts, which no client has.
    pub dropped: usize,
}

/// Deals interactions to clients by co-clustering.
///
/// # Complexity
/// That of `clients` eigenpairs, and for each of at most 800 steps of k-means `n * clients^2`, with a factor `log n` if
/// balanced.
///
/// # Errors
/// [`RecommendError::Option`] for no or too many parts, [`RecommendError::EmptyPart`], [`RecommendError::Spectrum`].
pub fn co_cluster(
    interactions: &Interactions,
    clients: usize,
    options: DealOptions,
) -> Result<GraphParts, RecommendError> {
    let labels = co_cluster_labels(interactions, clients, options)?;
    parts_of(interactions, clients, &labels)
}

/// The part of every user, then that of every item.
pub(crate) fn co_cluster_labels(
    interactions: &Interactions,
    clients: usize,
    options: DealOptions,
) -> Result<Vec<u32>, RecommendError> {
    if clients == 0 || clients > MOST_PARTS {
        return Err(RecommendError::Option { option: "clients", value: clients as f64, bounds: "1 to 256" });
    }
    let users = interactions.users().len();
    let items = interactions.items().len();
    if clients == 1 {
        return Ok(vec![0; users + items]);
    }
    let of_user: Vec<Vec<u32>> = (0..users).map(|user| interactions.of_user(user).to_vec()).collect();
    let graph = bipartite_graph(users, items, &of_user)?;
    let points = points(&graph, clients, options.seed)?;
    let capacities = options.balanced.then(|| Capacities::of(&graph, users, clients));
    Ok(k_means(&points, clients, options.seed, capacities.as_ref()))
}

/// The interactions within each part.
///
/// # Errors
/// [`RecommendError::EmptyPart`].
pub(crate) fn parts_of(
    interactions: &Interactions,
    clients: usize,
    labels: &[u32],
) -> Result<GraphParts, RecommendError> {
    if clients == 1 {
        return Ok(GraphParts { parts: vec![interactions.clone()], dropped: 0 });
    }
    let (user_part, item_part) = labels.split_at(interactions.users().len());
    let parts: Vec<Interactions> =
        (0..clients as u32).map(|part| interactions.part(user_part, item_part, part)).collect();
    if let Some(part) = parts.iter().position(|part| part.count() == 0) {
        return Err(RecommendError::EmptyPart { part, parts: clients });
    }
    let kept: usize = parts.iter().map(Interactions::count).sum();
    Ok(GraphParts { parts, dropped: interactions.count() - kept })
}

/// The position of each node: a direction in the space of the lowest eigenvectors.
fn points(graph: &WeightedGraph, clients: usize, seed: u64) -> Result<Vec<Vec<f64>>, RecommendError> {
    let wanted = clients.min(graph.node_count());
    let pairs = smallest_of_laplacian(graph, wanted, &LanczosOptions { seed, tolerance: 1e-6, ..Default::default() })?;
    let place = |node: usize| -> Vec<f64> {
        let point: Vec<f64> = (0..wanted).map(|at| pairs.vector(at)[node] / graph.degree(node).sqrt()).collect();
        let length = point.iter().map(|value| value * value).sum::<f64>().sqrt();
        point.into_iter().map(|value| value / length.max(f64::MIN_POSITIVE)).collect()
    };
    Ok((0..graph.node_count()).map(place).collect())
}

/// Lloyd's algorithm from several starts of k-means++ (Arthur and Vassilvitskii 2007).
fn k_means(points: &[Vec<f64>], clusters: usize, seed: u64, capacities: Option<&Capacities>) -> Vec<u32> {
    let assign = |centres: &[Vec<f64>]| match capacities {
        Some(capacities) => capacities.assign(points, centres),
        None => points.iter().map(|point| nearest(point, centres).0 as u32).collect(),
    };
    let run = |beginning: usize| {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        dice.set_stream(beginning as u64);
        let mut centres = spread(points, clusters, &mut dice);
        let mut best: Option<(f64, Vec<u32>)> = None;
        let mut labels = Vec::new();
        for _ in 0..ITERATIONS {
            let next = assign(&centres);
            let has_moved = next != labels;
            labels = next;
            let cost: f64 =
                points.iter().zip(&labels).map(|(point, label)| distance(point, &centres[*label as usize])).sum();
            if best.as_ref().is_none_or(|best| cost < best.0) {
                best = Some((cost, labels.clone()));
            }
            if !has_moved {
                break;
            }
            move_centres(points, &labels, &mut centres);
        }
        best.unwrap_or_default()
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

/// The squared distance.
fn distance(point: &[f64], centre: &[f64]) -> f64 {
    centre.iter().zip(point).map(|(a, b)| (a - b).powi(2)).sum()
}

/// The nearest centre, the first of equals, and its squared distance.
fn nearest(point: &[f64], centres: &[Vec<f64>]) -> (usize, f64) {
    let distances = centres.iter().map(|centre| distance(point, centre)).enumerate();
    distances.reduce(|best, next| if next.1 < best.1 { next } else { best }).unwrap_or((0, 0.0))
}

/// Moves each centre to the mean of its cluster; that of an empty cluster stays.
fn move_centres(points: &[Vec<f64>], labels: &[u32], centres: &mut [Vec<f64>]) {
    let dimension = centres.first().map_or(0, Vec::len);
    let mut sums = vec![(0_usize, vec![0.0; dimension]); centres.len()];
    for (point, label) in points.iter().zip(labels) {
        let (count, sum) = &mut sums[*label as usize];
        *count += 1;
        sum.iter_mut().zip(point).for_each(|(sum, value)| *sum += value);
    }
    for (centre, (count, sum)) in centres.iter_mut().zip(sums) {
        if count > 0 {
            *centre = sum.into_iter().map(|sum| sum / count as f64).collect();
        }
    }
}
