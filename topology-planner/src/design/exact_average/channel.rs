//! The links of an exact average: pairs of nodes that may exchange mass, and nodes that interfere.

use crate::topology::Topology;

/// A topology of which perhaps only the edges of a spanning tree may be used; the others still interfere.
pub(super) struct Channel<'t> {
    topology: &'t Topology,
    /// The neighbours that each node may exchange with, ascending, if not all.
    allowed: Option<Vec<Vec<usize>>>,
}

impl<'t> Channel<'t> {
    pub(super) const fn new(topology: &'t Topology) -> Self {
        Self { topology, allowed: None }
    }

    /// A channel on which only the given edges carry mass.
    pub(super) fn restricted(topology: &'t Topology, edges: &[(usize, usize)]) -> Self {
        let mut allowed = vec![Vec::new(); topology.node_count()];
        for &(u, v) in edges {
            allowed[u].push(v);
            allowed[v].push(u);
        }
        allowed.iter_mut().for_each(|row| row.sort_unstable());
        Self { topology, allowed: Some(allowed) }
    }

    pub(super) fn node_count(&self) -> usize {
        self.topology.node_count()
    }

    /// The nodes that may exchange mass with the node.
    pub(super) fn partners(&self, node: usize) -> &[usize] {
        self.allowed.as_ref().map_or_else(|| self.topology.neighbors(node), |allowed| &allowed[node])
    }

    /// The nodes that a transmission of the node reaches, intended or not; without the node.
    pub(super) fn interferers(&self, node: usize) -> &'t [usize] {
        self.topology.interferers(node)
    }

    /// Returns `true` if one node may exchange mass with another, which must be one of its interferers.
    pub(super) fn delivers(&self, from: usize, to: usize) -> bool {
        match &self.allowed {
            Some(allowed) => allowed[from].binary_search(&to).is_ok(),
            None => self.topology.interference_edges().is_none() || self.topology.has_edge(from, to),
        }
    }

    /// The hops from a node to all others, and the nodes in the order they are reached.
    pub(super) fn hops_from(&self, root: usize) -> Hops {
        let mut hops = vec![usize::MAX; self.node_count()];
        hops[root] = 0;
        let mut order = vec![root];
        let mut at = 0;
        while let Some(&node) = order.get(at) {
            at += 1;
            for &next in self.partners(node) {
                if hops[next] == usize::MAX {
                    hops[next] = hops[node] + 1;
                    order.push(next);
                }
            }
        }
        Hops { hops, order }
    }
}

/// The result of a breadth-first search.
pub(super) struct Hops {
    pub(super) hops: Vec<usize>,
    pub(super) order: Vec<usize>,
}

impl Hops {
    /// The largest distance.
    pub(super) fn eccentricity(&self) -> usize {
        self.order.last().map_or(0, |&last| self.hops[last])
    }

    /// For each node, the most hops by which some shortest path from the root goes on beyond it.
    pub(super) fn heights(&self, channel: &Channel<'_>) -> Vec<usize> {
        let mut heights = vec![0; self.hops.len()];
        for &node in self.order.iter().rev() {
            for &before in channel.partners(node) {
                if self.hops[before] + 1 == self.hops[node] {
                    heights[before] = heights[before].max(heights[node] + 1);
                }
            }
        }
        heights
    }
}
