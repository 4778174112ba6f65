//! Exponential graphs: node `i` sends to `i + 2^k` modulo `n`.
//!
//! `exponential` uses all `k` in every step (Assran et al., "Stochastic Gradient Push for Distributed Deep Learning",
//! 2019). `one-peer-exponential` uses one `k` per step, so that a node sends one payload per gradient step; its period is
//! `ceil(log2 n)` steps, and averages exactly when `n` is a power of two (Ying et al., "Exponential graph is provably
//! efficient for decentralized deep training", 2021). Both are made for media where any two nodes can talk.

use super::{Design, DesignError, Method, Request};
use crate::{
    digraph::{Digraph, Link},
    mixing_matrix::MixingMatrix,
};

/// All offsets at once, or one per step.
pub(super) fn design(request: &Request<'_>) -> Result<Design, DesignError> {
    let nodes = request.topology.node_count();
    let offsets = || std::iter::successors(Some(1), |offset| Some(2 * offset)).take_while(|&offset| offset < nodes);
    if let Some(link) = offsets().flat_map(|offset| shifted(nodes, offset)).find(|link| !request.has_edge(*link)) {
        return Err(request.missing_link(link));
    }
    if request.method == Method::Exponential {
        let graph = Digraph::new(nodes, offsets().flat_map(|offset| shifted(nodes, offset)));
        return Ok(Design::fixed(request.scheduled_step(MixingMatrix::uniform_columns(&graph))));
    }
    let step = |offset| MixingMatrix::uniform_columns(&Digraph::new(nodes, shifted(nodes, offset)));
    let steps = offsets().map(|offset| request.scheduled_step(step(offset))).collect();
    Ok(Design { steps, round_length: Some(1), parameters: Vec::new() })
}

fn shifted(nodes: usize, offset: usize) -> impl Iterator<Item = Link> {
    (0..nodes).map(move |node| Link::new(node, (node + offset) % nodes))
}

impl Request<'_> {
    fn has_edge(&self, link: Link) -> bool {
        self.topology.has_edge(link.from, link.to)
    }

    fn missing_link(&self, link: Link) -> DesignError {
        let name = |node: usize| self.topology.names()[node].clone();
        DesignError::MissingLink { method: self.method, from: name(link.from), to: name(link.to) }
    }
}
