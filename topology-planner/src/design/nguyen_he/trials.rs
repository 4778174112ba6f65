//! Trials of all `K` of Algorithm 1, with as few diameters as the choice of the best needs.
//!
//! Eq. 19 after step 3 depends on the degrees of the oriented graph, which are cheap, and on its diameter, which takes
//! a search from every node. It grows with the diameter, and two or three searches from nodes at the rim give a lower
//! bound on that. So all `K` get a lower bound first; then exact values are computed, the least bound first, until no
//! bound that is left is below the best value.

use crate::{
    digraph::{Digraph, Link},
    distance,
    extra_edges::FarthestEdges,
    minimum_degree_spanning_tree::minimum_degree_spanning_tree,
    objective::ln_objective_19,
    orientation::orient,
    topology::Topology,
};

/// Number of searches for nodes that are far apart.
const RIM_SEARCHES: usize = 4;

/// The most visits of pairs of nodes or of candidates by all `K` together: some seconds.
const MAX_VISITS: usize = 12_000_000_000;

/// For each `K`, the degrees after step 3 and a bound on eq. 19.
pub(super) struct Trials<'t> {
    topology: &'t Topology,
    /// The spanning tree, and the extra edges in the order in which they are added.
    edges: Vec<(usize, usize)>,
    trials: Vec<Trial>,
    is_bounded: bool,
}

#[derive(Debug, Clone, Copy)]
struct Trial {
    max_out_degree: usize,
    max_in_degree: usize,
    /// Eq. 19, or a lower bound on it.
    ln_objective_19: f64,
    is_exact: bool,
}

impl<'t> Trials<'t> {
    /// Takes steps 1 to 3 for every `K` from 0 to `limit`, or until [`MAX_VISITS`] are spent.
    ///
    /// O(m + n^2) for each `K`, and less in practice: rows of distances without change are passed over.
    pub(super) fn new(topology: &'t Topology, limit: usize) -> Self {
        let edges = minimum_degree_spanning_tree(topology);
        let mut farthest = FarthestEdges::new(topology, &edges);
        let mut trials = Self { topology, edges, trials: Vec::new(), is_bounded: false };
        let mut rim = 0;
        loop {
            let (trial, farther) = trials.bounded(rim);
            trials.trials.push(trial);
            rim = farther;
            match farthest.next() {
                Some(_) if farthest.visits() > MAX_VISITS => {
                    trials.is_bounded = true;
                    return trials;
                }
                Some(edge) if trials.trials.len() <= limit => trials.edges.push(edge),
                _ => return trials,
            }
        }
    }

    /// Returns `true` if larger `K` were left out because `MAX_VISITS` were spent.
    pub(super) const fn is_bounded(&self) -> bool {
        self.is_bounded
    }

    /// The number of `K` that were tried.
    pub(super) fn len(&self) -> usize {
        self.trials.len()
    }

    /// The links after step 3 for this `K`.
    pub(super) fn oriented(&self, extra_edges: usize) -> Vec<Link> {
        let nodes = self.topology.node_count();
        orient(nodes, &self.edges[..nodes - 1 + extra_edges])
    }

    /// The `K` with the least eq. 19 among those whose `D+` is accepted, the lowest among equals.
    pub(super) fn best(&mut self, accept: impl Fn(usize) -> bool) -> Option<usize> {
        let accepted = |trial: &Trial| accept(trial.max_out_degree);
        let mut order: Vec<usize> = (0..self.trials.len()).filter(|&at| accepted(&self.trials[at])).collect();
        let value = |trials: &[Trial], at: usize| trials[at].ln_objective_19;
        order.sort_by(|&a, &b| value(&self.trials, a).total_cmp(&value(&self.trials, b)).then(a.cmp(&b)));
        let mut best: Option<(f64, usize)> = None;
        for at in order {
            if best.is_some_and(|(least, k)| (least, k) < (value(&self.trials, at), at)) {
                break;
            }
            let exact = self.exact(at);
            if best.is_none_or(|before| (exact, at) < before) {
                best = Some((exact, at));
            }
        }
        best.map(|(_, at)| at)
    }

    /// `D+` after step 3; 1 for a directed ring.
    pub(super) fn max_out_degree(&self, extra_edges: usize) -> usize {
        self.trials[extra_edges].max_out_degree
    }

    /// The exact value of eq. 19 for this `K`.
    fn exact(&mut self, extra_edges: usize) -> f64 {
        let trial = self.trials[extra_edges];
        if trial.is_exact {
            return trial.ln_objective_19;
        }
        let graph = Digraph::new(self.topology.node_count(), self.oriented(extra_edges));
        let diameter = distance::diameter(&graph).unwrap_or(usize::MAX);
        let exact = ln_objective_19(trial.max_out_degree, trial.max_in_degree, diameter);
        self.trials[extra_edges] = Trial { ln_objective_19: exact, is_exact: true, ..trial };
        exact
    }

    /// The trial of the next `K`, its diameter bounded by searches that start at `rim`; and the last node found at the
    /// rim.
    fn bounded(&self, rim: usize) -> (Trial, usize) {
        let graph = Digraph::new(self.topology.node_count(), self.oriented(self.trials.len()));
        let (diameter, rim) = diameter_at_least(&graph, rim);
        let max_out_degree = graph.max_out_degree();
        let max_in_degree = graph.max_in_degree();
        let ln_objective_19 = ln_objective_19(max_out_degree, max_in_degree, diameter);
        (Trial { max_out_degree, max_in_degree, ln_objective_19, is_exact: false }, rim)
    }
}

/// A distance between two nodes that are far apart, and the first of the two. Searches go forwards and backwards in
/// turn, each from the node that the one before found farthest away, so that distances never shrink.
fn diameter_at_least(graph: &Digraph, start: usize) -> (usize, usize) {
    let mut hops = 0;
    let mut from = start;
    for _ in 0..RIM_SEARCHES / 2 {
        let (_, to) = distance::farthest_from(graph, from);
        let (farther, rim) = distance::farthest_to(graph, to);
        from = rim;
        if farther <= hops {
            break;
        }
        hops = farther;
    }
    (hops, from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn eq_19_alone_is_least_for_a_directed_ring_on_a_complete_graph() {
        let complete = Topology::generate("complete:n=6").unwrap();
        let mut trials = Trials::new(&complete, usize::MAX);
        assert_eq!(trials.best(|_| true), Some(1));
        assert_eq!(trials.max_out_degree(1), 1);
    }

    #[test]
    fn a_ring_has_two_trials_a_path_and_the_ring() {
        let ring = Topology::generate("ring:n=8").unwrap();
        let trials = Trials::new(&ring, usize::MAX);
        assert_eq!((trials.len(), trials.max_out_degree(1)), (2, 1));
    }
}
