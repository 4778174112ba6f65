//! An undirected graph with weights, in compressed rows.

use crate::components::Components;
use crate::error::SpectrumError;
use crate::operator::SparseSymmetric;

/// An undirected graph whose edges have positive weights.
///
/// An edge that is given twice has the sum of both weights. A loop counts once in the degree of its node.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedGraph {
    adjacency: SparseSymmetric,
    degrees: Vec<f64>,
    edges: usize,
}

impl WeightedGraph {
    /// The graph of `nodes` nodes with these edges: two ends and a weight each.
    ///
    /// # Errors
    /// [`SpectrumError::TooManyNodes`], [`SpectrumError::UnknownNode`], [`SpectrumError::Weight`].
    ///
    /// # Complexity
    /// O(n + e log e).
    pub fn new(nodes: usize, edges: impl IntoIterator<Item = (u32, u32, f64)>) -> Result<Self, SpectrumError> {
        let Ok(bound) = u32::try_from(nodes) else { return Err(SpectrumError::TooManyNodes { nodes }) };
        let mut entries: Vec<(u32, u32, f64)> = Vec::new();
        for (edge, (a, b, weight)) in edges.into_iter().enumerate() {
            if a >= bound || b >= bound {
                return Err(SpectrumError::UnknownNode { edge, a, b, nodes });
            }
            if !(weight > 0.0 && weight.is_finite()) {
                return Err(SpectrumError::Weight { edge, weight });
            }
            entries.push((a.min(b), a.max(b), weight));
        }
        entries.sort_unstable_by_key(|entry| (entry.0, entry.1));
        entries.dedup_by(|next, kept| {
            let is_same = (next.0, next.1) == (kept.0, kept.1);
            if is_same {
                kept.2 += next.2;
            }
            is_same
        });
        let adjacency = SparseSymmetric::from_upper(nodes, &entries);
        let degrees = (0..nodes).map(|node| adjacency.row(node).map(|entry| entry.1).sum()).collect();
        Ok(Self { adjacency, degrees, edges: entries.len() })
    }

    /// The number of nodes.
    pub fn node_count(&self) -> usize {
        self.degrees.len()
    }

    /// The number of edges, each counted once.
    pub fn edge_count(&self) -> usize {
        self.edges
    }

    /// The sum of the weights at a node; 0 if it is isolated.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn degree(&self, node: usize) -> f64 {
        self.degrees[node]
    }

    /// The neighbours of a node, ascending, and the weights of the edges to them.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.adjacency.row(node)
    }

    /// The connected components of the graph.
    ///
    /// # Complexity
    /// O(n + e).
    pub fn components(&self) -> Components {
        Components::of(self.node_count(), |node| self.neighbours(node).map(|(next, _)| next))
    }

    /// The adjacency matrix `A`.
    pub fn adjacency(&self) -> &SparseSymmetric {
        &self.adjacency
    }

    /// `B = D^-1/2 A D^-1/2`, where `D^-1/2` of an isolated node is 0.
    pub fn normalized_adjacency(&self) -> SparseSymmetric {
        let scale: Vec<f64> =
            self.degrees.iter().map(|degree| if *degree > 0.0 { 1.0 / degree.sqrt() } else { 0.0 }).collect();
        self.adjacency.scaled(&scale)
    }
}
