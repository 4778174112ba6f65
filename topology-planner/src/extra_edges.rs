//! Extra edges (step 2 of Algorithm 1 \[NH\]): those that shorten the spanning tree.

use crate::{
    digraph::{Digraph, Link},
    distance::Distances,
    topology::Topology,
};

/// Adds edges of the topology one at a time, each joining the two nodes that are farthest apart at that moment.
///
/// An iterator over the added edges `(u, v)`, `u < v`, until every edge of the topology is in. Distances are those of
/// the growing graph; among equally distant pairs the smallest `(u, v)` is taken. Each edge costs O(m + n^2).
///
/// ```
/// use mingle_planner::{Topology, extra_edges::FarthestEdges};
///
/// let ring = Topology::generate("ring:n=6")?;
/// let path = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)];
/// assert_eq!(FarthestEdges::new(&ring, &path).collect::<Vec<_>>(), [(0, 5)]);
/// # Ok::<(), mingle_planner::TopologyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FarthestEdges {
    candidates: Vec<(usize, usize)>,
    distances: Distances,
    visits: usize,
}

impl FarthestEdges {
    /// Starts from a spanning tree of the topology, or from any connected spanning subgraph, given by its edges.
    #[must_use]
    pub fn new(topology: &Topology, tree: &[(usize, usize)]) -> Self {
        let links = tree.iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]);
        let graph = Digraph::new(topology.node_count(), links);
        let outside = |&(u, v): &(usize, usize)| !graph.contains(Link::new(u, v));
        Self {
            candidates: topology.edges().iter().copied().filter(outside).collect(),
            distances: Distances::of(&graph),
            visits: 0,
        }
    }

    /// The cost of the edges so far: candidates, sources and distances that were looked at.
    pub(crate) const fn visits(&self) -> usize {
        self.visits
    }
}

impl Iterator for FarthestEdges {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        // Candidates are in ascending order: only a strictly greater distance replaces an earlier edge.
        let mut farthest: Option<(usize, u16)> = None;
        for (at, &(u, v)) in self.candidates.iter().enumerate() {
            let distance = self.distances.between(u, v);
            if farthest.is_none_or(|(_, best)| distance > best) {
                farthest = Some((at, distance));
            }
        }
        let (u, v) = self.candidates.remove(farthest?.0);
        let nodes = self.distances.node_count();
        let gaining = self.distances.insert_link(Link::new(u, v)) + self.distances.insert_link(Link::new(v, u));
        self.visits += self.candidates.len() + nodes * (2 + gaining);
        Some((u, v))
    }
}
