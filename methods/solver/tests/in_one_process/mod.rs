//! Iterations of all nodes in one process.
#![allow(dead_code)] // not every suite has nodes of both kinds

use std::collections::BTreeMap;

use mingle_solver::{CliqueMessage, CliqueNode, CliqueTerm, ConsensusTerms, DistanceMetric, MixedNode, Mixing};

/// One iteration of nodes that mix over a matrix.
pub(crate) fn mixed_iteration(nodes: &mut [impl MixedNode], mixing: &Mixing) {
    iteration(nodes, |messages| (0..messages.len()).map(|node| mixing.mix(node, &messages)).collect());
}

/// One iteration; `mix` returns each node's mixture of all messages, such as its estimate of their mean.
pub(crate) fn iteration(nodes: &mut [impl MixedNode], mix: impl FnOnce(Vec<Vec<f64>>) -> Vec<Vec<f64>>) {
    let messages = nodes.iter_mut().map(MixedNode::message).collect();
    nodes.iter_mut().zip(mix(messages)).for_each(|(node, mixed)| node.absorb(&mixed));
}

/// The nodes of a problem over cliques, for [`clique_iteration`]. `cliques` name nodes by their place in `terms`; every
/// node is in one.
pub(crate) fn clique_nodes(
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
pub(crate) fn clique_iteration(nodes: &mut [CliqueNode]) -> Result<(), usize> {
    let messages: BTreeMap<usize, CliqueMessage> =
        nodes.iter_mut().enumerate().map(|(node, state)| (node, state.message())).collect();
    nodes.iter_mut().try_for_each(|node| node.absorb(&messages))
}
