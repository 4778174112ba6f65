//! Similarity of a client's graph to a random graph of the mean size: by the Kullback-Leibler divergence between their
//! low frequencies.
//!
//! ```text
//!   K(i) = lambda_i / sum of all lambda        rho = sum_i K_R(i) log( K_R(i) / max(K(i), eps) )        0 log 0 = 0
//!   similarity = 1 - (rho - min rho) / (max rho - min rho), over all clients; 1 where all are equal
//! ```
//!
//! (Sim and Park, section 3.2 and Theorem 3.1.) An eigenvalue 0 where the reference has none costs
//! `K_R(i) log(K_R(i) / eps)`, so with the paper's kernel the divergence depends mostly on the number of components.
//! [`Kernel::Connected`] takes the largest component.

use mingle_spectra::{LanczosOptions, SpectrumError, WeightedGraph, smallest_of_laplacian};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use crate::error::RecommendError;
use crate::generator::below;

/// The least frequency in the divergence: the paper asks for smoothing and gives no value.
pub const EPSILON: f64 = 1e-6;
/// The inverse of the unit to which reference frequencies are rounded, so that peers agree whatever the last bits.
const ROUNDED: f64 = 1e9;

/// The graph whose frequencies are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kernel {
    /// The whole graph, as in the paper.
    #[default]
    Paper,
    /// The largest component of the graph.
    Connected,
}

impl std::str::FromStr for Kernel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "paper" => Ok(Self::Paper),
            "connected" => Ok(Self::Connected),
            _ => Err(format!("unknown kernel {text:?}: write paper or connected")),
        }
    }
}

impl std::fmt::Display for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Paper => "paper",
            Self::Connected => "connected",
        })
    }
}

/// The size of a client: users, items, interactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Users.
    pub users: usize,
    /// Items.
    pub items: usize,
    /// Interactions.
    pub edges: usize,
}

impl Size {
    /// The mean of several, rounded; the same everywhere.
    pub fn mean(sizes: &[Self]) -> Self {
        let count = sizes.len().max(1);
        let mean = |of: fn(&Self) -> usize| (sizes.iter().map(of).sum::<usize>() + count / 2) / count;
        Self { users: mean(|size| size.users), items: mean(|size| size.items), edges: mean(|size| size.edges) }
    }
}

/// The reference: a bipartite graph of this size, uniform among those with so many edges. It is the same everywhere for
/// one seed.
///
/// # Errors
/// A graph with more nodes than can be counted.
pub fn reference_graph(size: Size, seed: u64) -> Result<WeightedGraph, SpectrumError> {
    let users = size.users.max(1);
    let items = size.items.max(1);
    let pairs = users.saturating_mul(items);
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut chosen = std::collections::BTreeSet::new();
    // Floyd's sampling without replacement: one draw for each edge.
    for last in pairs - size.edges.min(pairs)..pairs {
        let drawn = below(&mut dice, last + 1);
        if !chosen.insert(drawn) {
            chosen.insert(last);
        }
    }
    let edge = |pair: usize| ((pair / items) as u32, (users + pair % items) as u32, 1.0);
    WeightedGraph::new(users + items, chosen.into_iter().map(edge))
}

/// The share of each eigenvalue in their sum; all are 0 if the sum is 0.
pub fn shares(eigenvalues: &[f64]) -> Vec<f64> {
    let total: f64 = eigenvalues.iter().sum();
    eigenvalues.iter().map(|value| if total > 0.0 { value / total } else { 0.0 }).collect()
}

/// The `frequencies` eigenvalues by which a graph is compared. If the largest component has fewer, its last is
/// repeated.
///
/// # Errors
/// [`RecommendError::FewNodes`], [`RecommendError::Spectrum`].
pub fn compared_eigenvalues(
    graph: &WeightedGraph,
    kernel: Kernel,
    frequencies: usize,
) -> Result<Vec<f64>, RecommendError> {
    let nodes = graph.node_count();
    if frequencies >= nodes {
        return Err(RecommendError::FewNodes { nodes, filters: frequencies });
    }
    let of = |graph: &WeightedGraph, wanted| smallest_of_laplacian(graph, wanted, &LanczosOptions::default());
    if kernel == Kernel::Paper {
        return Ok(of(graph, frequencies)?.values);
    }
    let component = largest_component(graph)?;
    let mut values = of(&component, frequencies.min(component.node_count()))?.values;
    values.resize(frequencies, values.last().copied().unwrap_or(0.0));
    Ok(values)
}

/// The component of a graph with the most nodes.
fn largest_component(graph: &WeightedGraph) -> Result<WeightedGraph, SpectrumError> {
    let components = graph.components();
    let largest = components.largest().unwrap_or(0);
    let mut number = vec![0_u32; graph.node_count()];
    let mut nodes = 0_u32;
    for (node, place) in number.iter_mut().enumerate() {
        if components.of_node(node) == largest {
            *place = nodes;
            nodes += 1;
        }
    }
    let inside = (0..graph.node_count()).filter(|node| components.of_node(*node) == largest);
    let edges = inside.flat_map(|node| {
        let up = graph.neighbours(node).filter(move |(other, _)| *other as usize >= node);
        up.map(move |(other, weight)| (node, other, weight))
    });
    WeightedGraph::new(nodes as usize, edges.map(|(a, b, weight)| (number[a], number[b as usize], weight)))
}

/// The reference's frequencies, rounded so that every peer computes the same values.
///
/// # Errors
/// As [`compared_eigenvalues`].
pub fn reference_shares(size: Size, kernel: Kernel, frequencies: usize, seed: u64) -> Result<Vec<f64>, RecommendError> {
    let values = compared_eigenvalues(&reference_graph(size, seed)?, kernel, frequencies)?;
    Ok(shares(&values).into_iter().map(|share| (share * ROUNDED).round() / ROUNDED).collect())
}

/// `rho`: the divergence of a client's frequencies from those of the reference.
pub fn divergence(reference: &[f64], own: &[f64]) -> f64 {
    let term = |(reference, own): (&f64, &f64)| match *reference > 0.0 {
        true => reference * (reference / own.max(EPSILON)).ln(),
        false => 0.0,
    };
    reference.iter().zip(own).map(term).sum()
}

/// The similarity of a client among all, in [0, 1], and at least `floor`.
pub fn similarity(own: f64, all: &[f64], floor: f64) -> f64 {
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let similarity = if most > least { 1.0 - (own - least) / (most - least) } else { 1.0 };
    similarity.clamp(floor, 1.0)
}
