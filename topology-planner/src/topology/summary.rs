//! Summaries of topologies: degrees, diameter, bridges and cut nodes.

use petgraph::{
    algo::{articulation_points::articulation_points, bridges::bridges},
    graph::UnGraph,
    visit::EdgeRef,
};

use super::Topology;
use crate::{
    digraph::{Digraph, Link},
    distance,
};

/// The most nodes times edges for which the diameter is computed: some seconds.
const MOST_DIAMETER_WORK: usize = 4_000_000_000;

/// The size, degrees, diameter, bridges and cut nodes of a topology.
#[derive(Debug, Clone, PartialEq)]
pub struct TopologySummary {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of edges.
    pub edges: usize,
    /// The fewest neighbours of a node.
    pub min_degree: usize,
    /// The mean number of neighbours.
    pub mean_degree: f64,
    /// The most neighbours of a node.
    pub max_degree: usize,
    /// The largest distance in hops; none for topologies too large to search from every node.
    pub diameter: Option<usize>,
    /// Edges whose loss would split the topology, ascending.
    pub bridges: Vec<(usize, usize)>,
    /// Nodes whose loss would split the rest, ascending.
    pub cut_nodes: Vec<usize>,
}

impl Topology {
    /// Degrees, diameter, bridges (Tarjan 1974) and cut nodes (Hopcroft and Tarjan 1973). O(n m) for the diameter, the
    /// rest O(n + m).
    ///
    /// ```
    /// use mingle_planner::Topology;
    /// let path = Topology::parse("ana ben\nben cho\n")?.summary();
    /// assert_eq!((path.diameter, path.bridges, path.cut_nodes), (Some(2), vec![(0, 1), (1, 2)], vec![1]));
    /// # Ok::<(), mingle_planner::TopologyError>(())
    /// ```
    #[must_use]
    pub fn summary(&self) -> TopologySummary {
        let nodes = self.node_count();
        let edges = self.edges().len();
        let degrees = || (0..nodes).map(|node| self.neighbors(node).len());
        let mut graph = UnGraph::<(), (), usize>::with_capacity(nodes, edges);
        for _ in 0..nodes {
            graph.add_node(());
        }
        for &(u, v) in self.edges() {
            graph.add_edge(u.into(), v.into(), ());
        }
        let mut bridges: Vec<(usize, usize)> =
            bridges(&graph).map(|edge| (edge.source().index(), edge.target().index())).collect();
        bridges.sort_unstable();
        let mut cut_nodes: Vec<usize> =
            articulation_points(&graph).into_iter().map(petgraph::graph::NodeIndex::index).collect();
        cut_nodes.sort_unstable();
        TopologySummary {
            nodes,
            edges,
            min_degree: degrees().min().unwrap_or(0),
            mean_degree: 2.0 * edges as f64 / nodes as f64,
            max_degree: degrees().max().unwrap_or(0),
            diameter: self.diameter(),
            bridges,
            cut_nodes,
        }
    }

    fn diameter(&self) -> Option<usize> {
        if self.node_count().saturating_mul(self.edges().len()) > MOST_DIAMETER_WORK {
            return None;
        }
        let both_ways = self.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]);
        distance::diameter(&Digraph::new(self.node_count(), both_ways))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Returns `true` if the topology is disconnected without a node or without an edge.
    fn splits(topology: &Topology, node: Option<usize>, edge: Option<(usize, usize)>) -> bool {
        let alive: Vec<usize> = (0..topology.node_count()).filter(|&other| Some(other) != node).collect();
        let mut seen = vec![alive[0]];
        let mut at = 0;
        while let Some(&here) = seen.get(at) {
            at += 1;
            for &next in topology.neighbors(here) {
                if Some((here.min(next), here.max(next))) != edge && Some(next) != node && !seen.contains(&next) {
                    seen.push(next);
                }
            }
        }
        seen.len() < alive.len()
    }

    #[test]
    fn bridges_and_cut_nodes_are_those_whose_loss_splits_the_rest() {
        let mut found = (0, 0);
        for seed in 0..40 {
            let topology = Topology::generate(&format!("erdos-renyi:n=12,p=0.22,seed={seed}")).unwrap();
            let summary = topology.summary();
            let edges = topology.edges().iter().copied();
            let bridges: Vec<_> = edges.filter(|&edge| splits(&topology, None, Some(edge))).collect();
            let cut_nodes: Vec<_> = (0..12).filter(|&node| splits(&topology, Some(node), None)).collect();
            assert_eq!((&summary.bridges, &summary.cut_nodes), (&bridges, &cut_nodes), "seed {seed}");
            found = (found.0 + bridges.len(), found.1 + cut_nodes.len());
        }
        assert!(found.0 > 20 && found.1 > 20, "{found:?}");
    }

    #[test]
    fn a_grid_has_the_diameter_and_degrees_of_a_grid() {
        let summary = Topology::generate("grid:rows=3,cols=5").unwrap().summary();
        assert_eq!((summary.min_degree, summary.max_degree, summary.diameter), (2, 4, Some(6)));
        assert_eq!((summary.nodes, summary.edges, summary.mean_degree), (15, 22, 44.0 / 15.0));
        assert!(summary.bridges.is_empty() && summary.cut_nodes.is_empty());
    }
}
