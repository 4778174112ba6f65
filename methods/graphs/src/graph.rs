//! Undirected simple graphs, as lists of neighbours.

use thiserror::Error;

/// An undirected graph without self-loops and without parallel edges; its nodes are `0..node_count`.
///
/// ```
/// use mingle_graphs::Graph;
///
/// let (path, dropped) = Graph::from_edges(3, [(0, 1), (1, 2), (2, 1), (2, 2)])?;
/// assert_eq!((path.edge_count(), path.neighbours(1)), (2, &[0, 2][..]));
/// assert_eq!((dropped.duplicates, dropped.self_loops), (1, 1));
/// # Ok::<(), mingle_graphs::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The index at which the neighbours of each node begin; one entry more than there are nodes.
    starts: Vec<usize>,
    /// Neighbours, ascending within a node.
    neighbours: Vec<u32>,
}

/// The edges of a list that a simple graph cannot have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Edges from a node to itself.
    pub self_loops: usize,
    /// Edges that repeat another, in either direction.
    pub duplicates: usize,
}

/// Errors of making a graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum GraphError {
    /// An edge names a node that does not exist.
    #[error("edge {edge} names node {node}, but the nodes are 0 to {}", nodes.saturating_sub(1))]
    NoSuchNode { edge: usize, node: u32, nodes: usize },
    /// There are more nodes than are accepted.
    #[error("a graph of {nodes} nodes is larger than the {} accepted", Graph::NODES_MAX)]
    TooLarge { nodes: usize },
}

impl Graph {
    /// The most nodes of a graph.
    pub const NODES_MAX: usize = 1 << 24;

    /// The graph of these edges. Self-loops, repeated edges and edges given in both directions are dropped and counted.
    /// `O(edges log edges)`.
    ///
    /// # Errors
    ///
    /// An edge names a node that does not exist, or there are too many nodes.
    pub fn from_edges(
        nodes: usize,
        edges: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<(Self, Dropped), GraphError> {
        if nodes > Self::NODES_MAX {
            return Err(GraphError::TooLarge { nodes });
        }
        let mut dropped = Dropped::default();
        let mut links = Vec::new();
        for (edge, (one, other)) in edges.into_iter().enumerate() {
            if let Some(node) = [one, other].into_iter().find(|&node| node as usize >= nodes) {
                return Err(GraphError::NoSuchNode { edge: edge + 1, node, nodes });
            }
            if one == other {
                dropped.self_loops += 1;
            } else {
                links.push((one.min(other), one.max(other)));
            }
        }
        let before = links.len();
        links.sort_unstable();
        links.dedup();
        dropped.duplicates = before - links.len();
        Ok((Self::of_sorted(nodes, &links), dropped))
    }

    /// The graph of distinct edges, ascending, each with its smaller node first.
    fn of_sorted(nodes: usize, links: &[(u32, u32)]) -> Self {
        let mut starts = vec![0; nodes + 1];
        for &(one, other) in links {
            starts[one as usize + 1] += 1;
            starts[other as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut neighbours = vec![0; 2 * links.len()];
        let mut put = |from: u32, to: u32| {
            neighbours[next[from as usize]] = to;
            next[from as usize] += 1;
        };
        // A node's smaller neighbours come before its larger ones, each in ascending order.
        links.iter().for_each(|&(one, other)| put(other, one));
        links.iter().for_each(|&(one, other)| put(one, other));
        Self { starts, neighbours }
    }

    /// The number of nodes.
    pub fn node_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of edges, each counted once.
    pub fn edge_count(&self) -> usize {
        self.neighbours.len() / 2
    }

    /// The neighbours of a node, ascending.
    pub fn neighbours(&self, node: usize) -> &[u32] {
        &self.neighbours[self.starts[node]..self.starts[node + 1]]
    }

    /// The number of neighbours of a node.
    pub fn degree(&self, node: usize) -> usize {
        self.starts[node + 1] - self.starts[node]
    }

    /// Every edge once, its smaller node first, ascending.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.node_count()).flat_map(move |node| {
            let larger = self.neighbours(node).iter().map(|&other| other as usize).filter(move |&other| other > node);
            larger.map(move |other| (node, other))
        })
    }

    /// The number of nodes without neighbours.
    pub fn isolated(&self) -> usize {
        (0..self.node_count()).filter(|&node| self.degree(node) == 0).count()
    }

    /// The graph induced by distinct nodes of this one, numbered in their order.
    pub fn induced(&self, nodes: &[u32]) -> Self {
        let mut place = vec![u32::MAX; self.node_count()];
        for (new, &old) in nodes.iter().enumerate() {
            place[old as usize] = new as u32;
        }
        let mut links = Vec::new();
        for (new, &old) in nodes.iter().enumerate() {
            let new = new as u32;
            let others = self.neighbours(old as usize).iter().map(|&other| place[other as usize]);
            links.extend(others.filter(|&other| other != u32::MAX && other > new).map(|other| (new, other)));
        }
        links.sort_unstable();
        Self::of_sorted(nodes.len(), &links)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn self_loops_and_repeated_edges_are_dropped_and_counted() {
        let (graph, dropped) = Graph::from_edges(4, [(3, 0), (0, 3), (0, 3), (1, 1), (2, 0)]).unwrap();
        assert_eq!(dropped, Dropped { self_loops: 1, duplicates: 2 });
        assert_eq!(graph.edges().collect::<Vec<_>>(), [(0, 2), (0, 3)]);
        assert_eq!((graph.isolated(), graph.degree(0), graph.neighbours(3)), (1, 2, &[0][..]));
    }

    #[test]
    fn an_edge_to_a_node_that_is_not_there_is_named() {
        let error = Graph::from_edges(3, [(0, 1), (1, 3)]).unwrap_err();
        assert_eq!(error.to_string(), "edge 2 names node 3, but the nodes are 0 to 2");
    }

    #[test]
    fn an_induced_graph_has_the_edges_among_its_nodes_and_their_new_numbers() {
        let (graph, _) = Graph::from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]).unwrap();
        let part = graph.induced(&[4, 0, 3]);
        assert_eq!(part.edges().collect::<Vec<_>>(), [(0, 1), (0, 2)]);
        assert_eq!(part.neighbours(0), [1, 2]);
    }
}
