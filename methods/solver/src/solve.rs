//! Solvers that run all nodes in one process.

use std::collections::BTreeMap;

use crate::{
    CliqueMessage, CliqueNode, CliqueTerm, ConsensusTerms, DistanceMetric, MixedNode, Mixing, NidsNode, Nonsmooth,
    Smooth, SolverNode, optimality,
};

/// Solves a problem in one place: minimises `smooth + nonsmooth` by proximal gradient descent with momentum (Beck and
/// Teboulle, FISTA, 2009), which restarts after an overshoot (O'Donoghue and Candes, 2015). Ends when the
/// [`optimality`] is at most `tolerance`, or after `most` steps; returns the solution and the number of steps.
#[must_use]
pub fn alone(smooth: &dyn Smooth, nonsmooth: &dyn Nonsmooth, tolerance: f64, most: usize) -> (Vec<f64>, usize) {
    let step = if smooth.smoothness() > 0.0 { 1.0 / smooth.smoothness() } else { 1.0 };
    let mut x = vec![0.0; smooth.dimension()];
    let mut momentum = 1.0_f64;
    let mut ahead = x.clone();
    let mut gradient = x.clone();
    for taken in 0..most {
        smooth.gradient(&x, &mut gradient);
        if optimality(nonsmooth, &x, &gradient, step) <= tolerance {
            return (x, taken);
        }
        smooth.gradient(&ahead, &mut gradient);
        let mut next = ahead.clone();
        crate::vector::add(&mut next, -step, &gradient);
        nonsmooth.prox(step, &mut next);
        let uphill: f64 = (0..x.len()).map(|at| (ahead[at] - next[at]) * (next[at] - x[at])).sum();
        let further = f64::midpoint(1.0, (1.0 + 4.0 * momentum * momentum).sqrt());
        let factor = if uphill > 0.0 { 0.0 } else { (momentum - 1.0) / further };
        momentum = if uphill > 0.0 { 1.0 } else { further };
        ahead = next.iter().zip(&x).map(|(next, x)| next + factor * (next - x)).collect();
        x = next;
    }
    (x, most)
}

/// Runs NIDS for `iterations` iterations; returns the solution of each node.
#[must_use]
pub fn nids(terms: Vec<ConsensusTerms>, mixing: &Mixing, step: f64, iterations: usize) -> Vec<Vec<f64>> {
    let mut nodes: Vec<NidsNode> = terms.into_iter().map(|terms| NidsNode::new(terms, step)).collect();
    (0..iterations).for_each(|_| mixed_iteration(&mut nodes, mixing));
    nodes.iter().map(|node| node.solution().to_vec()).collect()
}

/// One iteration of nodes that mix over a matrix.
pub fn mixed_iteration(nodes: &mut [impl MixedNode], mixing: &Mixing) {
    iteration(nodes, |messages| (0..messages.len()).map(|node| mixing.mix(node, &messages)).collect());
}

/// One iteration; `mix` returns each node's mixture of all messages, such as its estimate of their mean.
pub fn iteration(nodes: &mut [impl MixedNode], mix: impl FnOnce(Vec<Vec<f64>>) -> Vec<Vec<f64>>) {
    let messages = nodes.iter_mut().map(MixedNode::message).collect();
    nodes.iter_mut().zip(mix(messages)).for_each(|(node, mixed)| node.absorb(&mixed));
}

/// The nodes of a problem over cliques, for [`clique_iteration`]. `cliques` name nodes by their place in `terms`.
///
/// # Panics
///
/// When a node is in no clique.
#[must_use]
pub fn clique_nodes(
    terms: Vec<ConsensusTerms>,
    cliques: &[CliqueTerm],
    step: f64,
    metric: DistanceMetric,
) -> Vec<CliqueNode> {
    let of = |node: usize| cliques.iter().filter(|clique| clique.members.contains(&node)).cloned().collect();
    let nodes = terms.into_iter().enumerate();
    nodes.map(|(node, terms)| CliqueNode::new(node, terms, of(node), step, metric)).collect()
}

/// One iteration of CD-DYS.
///
/// # Errors
///
/// A node that a clique names and that does not exist.
pub fn clique_iteration(nodes: &mut [CliqueNode]) -> Result<(), usize> {
    let messages: BTreeMap<usize, CliqueMessage> =
        nodes.iter_mut().enumerate().map(|(node, state)| (node, state.message())).collect();
    nodes.iter_mut().try_for_each(|node| node.absorb(&messages))
}
