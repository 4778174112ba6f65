//! Solvers that run all nodes in one process.

use std::collections::BTreeMap;

use crate::{
    CliqueMessage, CliqueNode, CliqueOptimality, CliqueTerm, ConsensusTerms, Descent, DistanceMetric, MixedNode,
    Mixing, NidsNode, Nonsmooth, ProjectedNode, Smooth, SolverNode, optimality,
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

/// One iteration of nodes that mix over a matrix: NIDS and both diffusions.
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

/// The distance of each node of CD-DYS from the optimum, at the variables and gradients in `messages`. `cliques` are
/// those of which the nodes were made.
///
/// # Errors
///
/// A node that a clique names and that does not exist.
pub fn clique_optimality(
    nodes: &[CliqueNode],
    cliques: &[CliqueTerm],
    messages: &BTreeMap<usize, CliqueMessage>,
) -> Result<Vec<CliqueOptimality>, usize> {
    let taken = nodes.iter().map(|node| node.multipliers(messages)).collect::<Result<Vec<_>, usize>>()?;
    let is_in = |node: usize| move |clique: &&CliqueTerm| clique.members.contains(&node);
    let of_node = |node: usize| {
        let mine = cliques.iter().enumerate().filter(|(_, clique)| clique.members.contains(&node));
        let of_clique = |(at, clique): (usize, &CliqueTerm)| {
            let of_member = |&member: &usize| {
                let place = cliques[..at].iter().filter(is_in(member)).count();
                taken.get(member).and_then(|taken| taken.get(place)).cloned().unwrap_or_default()
            };
            clique.members.iter().map(of_member).collect::<Vec<_>>()
        };
        nodes[node].optimality(messages, &mine.map(of_clique).collect::<Vec<_>>())
    };
    (0..nodes.len()).map(of_node).collect()
}

/// The nodes of a problem of projections onto the constraints of cliques, for [`projected_iteration`].
///
/// # Panics
///
/// When a node is in no clique.
#[must_use]
pub fn projected_nodes(smooth: Vec<Box<dyn Smooth>>, cliques: &[CliqueTerm], descent: Descent) -> Vec<ProjectedNode> {
    let of = |node: usize| cliques.iter().filter(|clique| clique.members.contains(&node)).cloned().collect();
    let nodes = smooth.into_iter().enumerate();
    nodes.map(|(node, smooth)| ProjectedNode::new(node, smooth, of(node), descent)).collect()
}

/// One iteration of CPGD with this step size.
///
/// # Errors
///
/// A node that a clique names and that does not exist.
pub fn projected_iteration(nodes: &mut [ProjectedNode], step: f64) -> Result<(), usize> {
    let messages: BTreeMap<usize, Vec<f64>> =
        nodes.iter_mut().enumerate().map(|(node, state)| (node, state.message(step))).collect();
    nodes.iter_mut().try_for_each(|node| node.absorb(&messages))
}

/// The bound below which steps of CD-DYS converge: `2 / (max L_l + max Lh_i / q_i)`, or in the metric of memberships
/// `2 / (max q_j L_l + max Lh_i)`. `smoothness` are the constants of the nodes.
#[must_use]
pub fn largest_clique_step(smoothness: &[f64], cliques: &[CliqueTerm], metric: DistanceMetric) -> f64 {
    let memberships = |node: usize| cliques.iter().filter(|clique| clique.members.contains(&node)).count();
    let own = smoothness.iter().enumerate().map(|(node, own)| metric.own_smoothness(*own, memberships(node)));
    let coupled = cliques.iter().map(|clique| metric.coupled_smoothness(clique));
    2.0 / (own.fold(0.0, f64::max) + coupled.fold(0.0, f64::max))
}
