//! Vanilla SGP (Assran et al., "Stochastic Gradient Push for Distributed Deep Learning", 2019): all links, uniform
//! columns.

use super::{Design, DesignRequest};
use crate::{
    digraph::{Digraph, Link},
    mixing_matrix::MixingMatrix,
};

/// Every edge of the topology in both directions; each node splits its mass evenly over itself and its neighbours.
pub(super) fn design(request: &DesignRequest<'_>) -> Design {
    let topology = request.topology;
    let links = topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]);
    let graph = Digraph::new(topology.node_count(), links);
    Design::fixed(request.scheduled_step(MixingMatrix::uniform_columns(&graph)))
}
