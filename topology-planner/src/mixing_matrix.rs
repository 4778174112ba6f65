//! Mixing matrices: the weights of one mixing step, column-stochastic and kept as columns.
//!
//! `W_ij` is the share of its mass that node `j` gives to node `i`. Each column sums to 1, so mixing moves mass but
//! neither makes nor loses any.

use std::collections::BTreeMap;

use crate::{
    cliques::Cliques,
    digraph::{Digraph, Link},
    step::WeightedLink,
    topology::Topology,
};

/// A mixing matrix: the share that each node keeps, and the share that each link carries.
#[derive(Debug, Clone, PartialEq)]
pub struct MixingMatrix {
    keep: Vec<f64>,
    links: Vec<WeightedLink>,
}

impl MixingMatrix {
    /// Uniform columns: a node with `d` out-neighbours keeps `1 / (d + 1)` and gives each of them as much. The best
    /// choice for the bound of \[NH\] (Lemma 4.1).
    ///
    /// ```
    /// use mingle_planner::{Link, digraph::Digraph, mixing_matrix::MixingMatrix};
    /// let graph = Digraph::new(3, [Link::new(0, 1), Link::new(0, 2), Link::new(1, 0), Link::new(2, 0)]);
    /// assert_eq!(MixingMatrix::uniform_columns(&graph).keep(), [1.0 / 3.0, 0.5, 0.5]);
    /// ```
    #[must_use]
    pub fn uniform_columns(graph: &Digraph) -> Self {
        let share = |node: usize| 1.0 / (graph.successors(node).len() + 1) as f64;
        Self {
            keep: (0..graph.node_count()).map(share).collect(),
            links: graph.links().map(|link| WeightedLink::new(link, share(link.from))).collect(),
        }
    }

    /// Metropolis-Hastings weights on every edge of the topology, both ways: `1 / (1 + max(d_i, d_j))`, and a node
    /// keeps the rest. Symmetric, hence doubly stochastic: push-sum weights stay 1 and the method is plain D-PSGD (Xiao
    /// and Boyd, "Fast linear iterations for distributed averaging", 2004).
    ///
    /// ```
    /// use mingle_planner::{Topology, mixing_matrix::MixingMatrix};
    /// let star = Topology::generate("star:n=4")?;
    /// assert_eq!(MixingMatrix::metropolis_hastings(&star).keep(), [0.25, 0.75, 0.75, 0.75]);
    /// # Ok::<(), mingle_planner::TopologyError>(())
    /// ```
    #[must_use]
    pub fn metropolis_hastings(topology: &Topology) -> Self {
        let degree = |node: usize| topology.neighbors(node).len();
        let weight = |u: usize, v: usize| 1.0 / (1 + degree(u).max(degree(v))) as f64;
        let nodes = 0..topology.node_count();
        let given = |node: usize| topology.neighbors(node).iter().map(|&other| weight(node, other)).sum::<f64>();
        let links = nodes.clone().flat_map(|u| topology.neighbors(u).iter().map(move |&v| Link::new(u, v)));
        Self {
            // With all weights equal the sum can exceed 1 by a rounding error.
            keep: nodes.map(|node| (1.0 - given(node)).max(0.0)).collect(),
            links: links.map(|link| WeightedLink::new(link, weight(link.from, link.to))).collect(),
        }
    }

    /// The mixing matrix of cliques: `Phi_ij = 1 / (q_i q_j) sum 1 / s_l` over the cliques `l` that `i` and `j` are
    /// both in, where node `i` is in `q_i` cliques and `s_l` sums `1 / q` over the members of `l` (\[WS\], section
    /// 3.3). Symmetric and doubly stochastic, with eigenvalues between 0 and 1; nodes that share no clique have no
    /// link. Every node can compute its row from its neighbours' lists of neighbours. O(sum of the squares of the
    /// cliques' sizes).
    ///
    /// The cliques are those of a topology in which every node has a neighbour.
    ///
    /// ```
    /// use mingle_planner::{Topology, cliques::{CliqueKind, Cliques}, mixing_matrix::MixingMatrix};
    /// let path = Topology::generate("grid:rows=1,cols=3")?;
    /// let phi = MixingMatrix::phi(&Cliques::find(&path, CliqueKind::Edges)?);
    /// let expected = [2.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0];
    /// assert!(phi.keep().iter().zip(expected).all(|(keep, expected)| (keep - expected).abs() < 1e-15));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn phi(cliques: &Cliques) -> Self {
        let inverse: Vec<f64> =
            (0..cliques.node_count()).map(|node| 1.0 / cliques.of_node(node).len() as f64).collect();
        let mut shared: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for members in cliques.members() {
            let weight = 1.0 / members.iter().map(|&node| inverse[node]).sum::<f64>();
            for (at, &u) in members.iter().enumerate() {
                members[at + 1..].iter().for_each(|&v| *shared.entry((u, v)).or_default() += weight);
            }
        }
        let edges: Vec<_> =
            shared.into_iter().map(|((u, v), weight)| ((u, v), inverse[u] * inverse[v] * weight)).collect();
        Self::symmetric(cliques.node_count(), &edges)
    }

    /// `I - weight * L` with the Laplacian `L` of the topology: every edge has the same weight. A node of degree `d`
    /// keeps something only at weights below `1 / d`.
    #[must_use]
    pub fn laplacian(topology: &Topology, weight: f64) -> Self {
        let edges: Vec<_> = topology.edges().iter().map(|&edge| (edge, weight)).collect();
        Self::symmetric(topology.node_count(), &edges)
    }

    /// `(I + W) / 2`: the same links with half the shares. A symmetric matrix has no negative eigenvalue then, as
    /// methods such as NIDS need it.
    #[must_use]
    pub fn lazy(mut self) -> Self {
        self.keep.iter_mut().for_each(|share| *share = f64::midpoint(1.0, *share));
        self.links.iter_mut().for_each(|link| link.weight /= 2.0);
        self
    }

    /// A symmetric matrix from edges with a weight each: both ends give each other that share and keep the rest.
    /// Doubly stochastic: push-sum weights stay 1. Edges of weight 0 are left out.
    ///
    /// The sum of the weights at a node must not exceed 1. Weights that are multiples of 2^-24 give columns that sum to
    /// 1 exactly.
    pub(crate) fn symmetric(node_count: usize, edges: &[((usize, usize), f64)]) -> Self {
        let mut given = vec![0.0; node_count];
        let mut links = Vec::with_capacity(2 * edges.len());
        for &((u, v), weight) in edges.iter().filter(|(_, weight)| *weight > 0.0) {
            links.extend([Link::new(u, v), Link::new(v, u)].map(|link| WeightedLink::new(link, weight)));
            given[u] += weight;
            given[v] += weight;
        }
        links.sort_unstable_by_key(|link| link.link());
        Self { keep: given.into_iter().map(|given| (1.0 - given).max(0.0)).collect(), links }
    }

    /// The matrix with the given shares, each column divided by its sum. Links in any order.
    ///
    /// A column without a share keeps everything.
    pub(crate) fn normalised(mut keep: Vec<f64>, mut links: Vec<WeightedLink>) -> Self {
        links.sort_unstable_by_key(|link| link.link());
        let mut sums = keep.clone();
        links.iter().for_each(|link| sums[link.from] += link.weight);
        for (share, sum) in keep.iter_mut().zip(&sums) {
            *share = if *sum > 0.0 { *share / sum } else { 1.0 };
        }
        links.iter_mut().for_each(|link| link.weight /= sums[link.from]);
        Self { keep, links }
    }

    /// `W_ii`: the share that each node keeps.
    #[must_use]
    pub fn keep(&self) -> &[f64] {
        &self.keep
    }

    /// The links with their weights, ordered by transmitter, then receiver.
    #[must_use]
    pub fn links(&self) -> &[WeightedLink] {
        &self.links
    }

    /// The two parts: the share that each node keeps, and the weighted links.
    #[must_use]
    pub fn into_parts(self) -> (Vec<f64>, Vec<WeightedLink>) {
        (self.keep, self.links)
    }
}
