//! Cliques of a topology: groups of nodes that are all neighbours of one another, and the duplication of variables over
//! them.
//!
//! Clique-wise coupled problems (Watanabe and Sakurama, "Distributed Optimization of Clique-Wise Coupled Problems via
//! Three-Operator Splitting", cited as \[WS\]) give each chosen clique a copy of its members' variables. Their mixing
//! matrix [`phi`](crate::mixing_matrix::MixingMatrix::phi) depends only on the members of the cliques `C_l` and on the
//! number `q_i` of cliques that each node is in.

use crate::{bit_set::BitSet, topology::Topology};

/// The most cliques that are listed for one node. A graph of 50 nodes can have more than 900 maximal ones, and their
/// number can grow exponentially.
pub const MAX_CLIQUES_PER_NODE: usize = 5_000;

/// The kind of cliques that are chosen in a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CliqueKind {
    /// Every edge.
    Edges,
    /// Every clique that no other node can join.
    Maximal,
    /// Every clique of two or more nodes.
    All,
}

/// Chosen cliques and their members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cliques {
    /// Each with its nodes ascending; in lexicographic order.
    members: Vec<Vec<usize>>,
    /// For each node, the numbers of the cliques it is in, ascending.
    of_node: Vec<Vec<usize>>,
}

/// The error for a node that is in more cliques than are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("node {node} is in more than {limit} cliques: choose the edges instead, which are never too many")]
pub struct TooManyCliques {
    /// The first such node.
    pub node: usize,
    /// The most that are listed for a node.
    pub limit: usize,
}

impl Cliques {
    /// The cliques of one kind in a topology. Maximal ones are found by the algorithm of Bron and Kerbosch with the
    /// pivots of Tomita, Tanaka and Takahashi ("The worst-case time complexity for generating all maximal cliques",
    /// 2006): O(3^(d/3)) for each node of degree `d` in the worst case, which the limit bounds.
    ///
    /// The cliques of a node depend only on the edges among its neighbours, so every node can find its own.
    ///
    /// # Errors
    ///
    /// [`TooManyCliques`] beyond [`MAX_CLIQUES_PER_NODE`].
    ///
    /// ```
    /// use mingle_planner::{Topology, cliques::{CliqueKind, Cliques}};
    /// let topology = Topology::generate("windmill:cliques=2,size=3")?;
    /// let cliques = Cliques::find(&topology, CliqueKind::Maximal)?;
    /// assert_eq!(cliques.members(), [vec![0, 1, 2], vec![0, 3, 4]]);
    /// assert_eq!(cliques.of_node(0), [0, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find(topology: &Topology, kind: CliqueKind) -> Result<Self, TooManyCliques> {
        Self::find_at_most(topology, kind, MAX_CLIQUES_PER_NODE)
    }

    /// The maximal cliques, or the edges where a node is in too many maximal ones; also the kind taken: all nodes have
    /// to choose alike.
    #[must_use]
    pub fn maximal_or_edges(topology: &Topology) -> (Self, CliqueKind) {
        match Self::find(topology, CliqueKind::Maximal) {
            Ok(cliques) => (cliques, CliqueKind::Maximal),
            Err(TooManyCliques { .. }) => (Self::edges(topology), CliqueKind::Edges),
        }
    }

    fn find_at_most(topology: &Topology, kind: CliqueKind, limit: usize) -> Result<Self, TooManyCliques> {
        if kind == CliqueKind::Edges {
            return Ok(Self::edges(topology));
        }
        let mut search = Search::new(topology, kind, limit);
        for node in 0..topology.node_count() {
            search.from(node)?;
        }
        Ok(Self::of(topology.node_count(), search.found))
    }

    /// Every edge.
    #[must_use]
    pub fn edges(topology: &Topology) -> Self {
        Self::of(topology.node_count(), topology.edges().iter().map(|&(u, v)| vec![u.min(v), u.max(v)]).collect())
    }

    fn of(nodes: usize, mut members: Vec<Vec<usize>>) -> Self {
        members.sort_unstable();
        let mut of_node = vec![Vec::new(); nodes];
        for (number, clique) in members.iter().enumerate() {
            clique.iter().for_each(|&node| of_node[node].push(number));
        }
        Self { members, of_node }
    }

    /// The nodes of each clique, ascending.
    #[must_use]
    pub fn members(&self) -> &[Vec<usize>] {
        &self.members
    }

    /// The numbers of the cliques that a node is in, ascending: `Q_i`, of which there are `q_i`.
    #[must_use]
    pub fn of_node(&self, node: usize) -> &[usize] {
        &self.of_node[node]
    }

    /// The number of nodes of the topology.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.of_node.len()
    }
}

/// A search for cliques. Each is found once: from the least of its nodes.
struct Search {
    neighbors: Vec<BitSet>,
    kind: CliqueKind,
    limit: usize,
    /// For each node, the number of found cliques it is in.
    counts: Vec<usize>,
    found: Vec<Vec<usize>>,
}

impl Search {
    fn new(topology: &Topology, kind: CliqueKind, limit: usize) -> Self {
        let nodes = topology.node_count();
        let set = |node: usize| {
            let mut set = BitSet::new(nodes);
            topology.neighbors(node).iter().for_each(|&other| set.insert(other));
            set
        };
        let neighbors = (0..nodes).map(set).collect();
        Self { neighbors, kind, limit, counts: vec![0; nodes], found: Vec::new() }
    }

    /// Finds the cliques whose least node is this one.
    fn from(&mut self, node: usize) -> Result<(), TooManyCliques> {
        let later = self.neighbors[node].iter().filter(|&other| other > node).collect();
        let earlier = self.neighbors[node].iter().filter(|&other| other < node).collect();
        self.extend(&mut vec![node], later, earlier)
    }

    /// Extends a clique: `candidates` may join it; the `excluded` could too, but were already tried.
    fn extend(
        &mut self,
        clique: &mut Vec<usize>,
        mut candidates: Vec<usize>,
        mut excluded: Vec<usize>,
    ) -> Result<(), TooManyCliques> {
        let is_maximal = candidates.is_empty() && excluded.is_empty();
        if clique.len() > 1 && (is_maximal || self.kind == CliqueKind::All) {
            self.note(clique)?;
        }
        let pivot = (self.kind == CliqueKind::Maximal).then(|| self.pivot(&candidates, &excluded)).flatten();
        let is_worth_trying = |node: &usize| pivot.is_none_or(|pivot| !self.neighbors[pivot].contains(*node));
        let branches: Vec<usize> = candidates.iter().copied().filter(is_worth_trying).collect();
        for node in branches {
            let among =
                |nodes: &[usize]| nodes.iter().copied().filter(|&other| self.neighbors[node].contains(other)).collect();
            let further = among(&candidates);
            let before = among(&excluded);
            clique.push(node);
            self.extend(clique, further, before)?;
            clique.pop();
            candidates.retain(|&other| other != node);
            excluded.push(node);
        }
        Ok(())
    }

    /// The node with the most neighbours among the candidates: cliques without it and without those are not maximal.
    fn pivot(&self, candidates: &[usize], excluded: &[usize]) -> Option<usize> {
        let known = |node: usize| candidates.iter().filter(|&&other| self.neighbors[node].contains(other)).count();
        candidates.iter().chain(excluded).copied().max_by_key(|&node| (known(node), std::cmp::Reverse(node)))
    }

    fn note(&mut self, clique: &[usize]) -> Result<(), TooManyCliques> {
        for &node in clique {
            self.counts[node] += 1;
            if self.counts[node] > self.limit {
                return Err(TooManyCliques { node, limit: self.limit });
            }
        }
        let mut clique = clique.to_vec();
        clique.sort_unstable();
        self.found.push(clique);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use petgraph::{algo::maximal_cliques, graph::UnGraph};

    use super::*;

    const GRAPHS: [&str; 6] = [
        "ring:n=8",
        "grid:rows=3,cols=4",
        "windmill:cliques=3,size=5",
        "rg:n=30,r=0.4,seed=3",
        "erdos-renyi:n=24,p=0.5,seed=1",
        "complete:n=6",
    ];

    fn sets(cliques: &Cliques) -> BTreeSet<Vec<usize>> {
        cliques.members().iter().cloned().collect()
    }

    #[test]
    fn maximal_cliques_are_those_that_petgraph_finds() {
        for expression in GRAPHS {
            let topology = Topology::generate(expression).unwrap();
            let found = Cliques::find(&topology, CliqueKind::Maximal).unwrap();
            let edges = topology.edges().iter().map(|&(u, v)| (u32::try_from(u).unwrap(), u32::try_from(v).unwrap()));
            let graph = UnGraph::<(), ()>::from_edges(edges);
            let theirs = maximal_cliques(&graph).into_iter().map(|clique| {
                let mut nodes: Vec<usize> = clique.into_iter().map(petgraph::graph::NodeIndex::index).collect();
                nodes.sort_unstable();
                nodes
            });
            assert_eq!(sets(&found), theirs.collect(), "{expression}");
            assert_eq!(found.members().len(), sets(&found).len(), "{expression}: one was found twice");
        }
    }

    #[test]
    fn all_cliques_are_the_subsets_of_the_maximal_ones() {
        for expression in GRAPHS {
            let topology = Topology::generate(expression).unwrap();
            let maximal = Cliques::find(&topology, CliqueKind::Maximal).unwrap();
            let mut subsets = BTreeSet::new();
            for clique in maximal.members() {
                for choice in 1_u32..1 << clique.len() {
                    let subset = (0..clique.len()).filter(|&at| choice >> at & 1 == 1).map(|at| clique[at]);
                    subsets.insert(subset.collect::<Vec<_>>());
                }
            }
            subsets.retain(|subset| subset.len() > 1);
            assert_eq!(sets(&Cliques::find(&topology, CliqueKind::All).unwrap()), subsets, "{expression}");
        }
    }

    #[test]
    fn who_is_in_a_clique_and_which_cliques_a_node_is_in_agree() {
        let topology = Topology::generate("rg:n=30,r=0.4,seed=3").unwrap();
        for kind in [CliqueKind::Edges, CliqueKind::Maximal] {
            let cliques = Cliques::find(&topology, kind).unwrap();
            for node in 0..cliques.node_count() {
                let expected: Vec<usize> =
                    (0..cliques.members().len()).filter(|&number| cliques.members()[number].contains(&node)).collect();
                assert_eq!(cliques.of_node(node), expected);
            }
        }
        let edges = Cliques::find(&topology, CliqueKind::Edges).unwrap();
        assert_eq!(edges.members().len(), topology.edges().len());
        assert_eq!(edges.of_node(4).len(), topology.neighbors(4).len());
    }

    #[test]
    fn a_graph_with_too_many_cliques_is_refused_and_its_edges_are_taken() {
        // Moon and Moser: every choice of one node from each of eight triples is a maximal clique.
        let links = |u: usize, v: usize| u / 3 != v / 3;
        let text: Vec<String> =
            (0..27).flat_map(|u| (0..u).filter(move |&v| links(u, v)).map(move |v| format!("{v} {u}"))).collect();
        let topology = Topology::parse(&text.join("\n")).unwrap();
        let refused = Cliques::find(&topology, CliqueKind::Maximal).unwrap_err();
        assert_eq!(refused.limit, MAX_CLIQUES_PER_NODE);
        let (cliques, kind) = Cliques::maximal_or_edges(&topology);
        assert_eq!((cliques.members().len(), kind), (topology.edges().len(), CliqueKind::Edges));
    }
}
