//! Exponential graphs: node `i` sends to `i + 2^k` modulo `n`, for all powers of two below `n`.
//!
//! `exponential` uses all `k` in every step, with uniform columns (Assran et al., "Stochastic Gradient Push for
//! Distributed Deep Learning", 2019). `one-peer-exponential` uses one `k` per step, half kept and half sent, so that a
//! node sends one payload per gradient step; its period is `ceil(log2 n)` steps, which average exactly when `n` is a
//! power of two (Ying et al., "Exponential graph is provably efficient for decentralized deep training", 2021). Both
//! are made for media on which any two nodes can exchange messages; on a broadcast medium the links of each step are
//! put into slots like any others.
//!
//! Nodes are taken in the order of the topology, whatever the seed.

use super::{Design, DesignError, DesignRequest, Method};
use crate::{
    digraph::{Digraph, Link},
    mixing_matrix::MixingMatrix,
    plan::MixingStep,
};

/// All offsets at once, or one per step. O(n log^2 n) on a point-to-point medium.
pub(super) fn design(request: &DesignRequest<'_>) -> Result<Design, DesignError> {
    let nodes = request.topology.node_count();
    let offsets = offsets(nodes);
    let circle = Circle::new(request);
    if let Some(link) = offsets.iter().flat_map(|&offset| circle.links(offset)).find(|link| !request.has_edge(*link)) {
        return Err(request.missing_link(link));
    }
    if let Some(limit) = request.options.max_out_degree.filter(|&limit| limit < offsets.len()) {
        return Err(DesignError::DegreeLimit { method: request.method, limit, needed: offsets.len() });
    }
    let step = |offsets: &[usize]| {
        let graph = Digraph::new(nodes, offsets.iter().flat_map(|&offset| circle.links(offset)));
        MixingStep::sorted(request.scheduled_step(MixingMatrix::uniform_columns(&graph)))
    };
    let design = match request.method {
        Method::Exponential => Design { steps: vec![step(&offsets)], round_length: None, parameters: Vec::new() },
        _ => Design {
            steps: offsets.iter().map(|&offset| step(&[offset])).collect(),
            round_length: Some(1),
            parameters: Vec::new(),
        },
    };
    request.check_slots(&design.steps)?;
    Ok(design)
}

/// The powers of two below the number of nodes.
pub(crate) fn offsets(nodes: usize) -> Vec<usize> {
    std::iter::successors(Some(1), |offset| Some(2 * offset)).take_while(|&offset| offset < nodes).collect()
}

/// The matrix of these offsets together, on nodes in their own order, with uniform columns.
pub(crate) fn step(nodes: usize, offsets: &[usize]) -> MixingMatrix {
    let links = |&offset: &usize| (0..nodes).map(move |node| Link::new(node, (node + offset) % nodes));
    MixingMatrix::uniform_columns(&Digraph::new(nodes, offsets.iter().flat_map(links)))
}

/// The nodes in the order of the topology that was given.
struct Circle {
    nodes: Vec<usize>,
}

impl Circle {
    fn new(request: &DesignRequest<'_>) -> Self {
        Self { nodes: request.places() }
    }

    /// The links from every node to the one `offset` places on.
    fn links(&self, offset: usize) -> impl Iterator<Item = Link> {
        let places = 0..self.nodes.len();
        places.map(move |place| Link::new(self.nodes[place], self.nodes[(place + offset) % self.nodes.len()]))
    }
}

impl DesignRequest<'_> {
    fn has_edge(&self, link: Link) -> bool {
        self.topology.has_edge(link.from, link.to)
    }

    pub(super) fn missing_link(&self, link: Link) -> DesignError {
        let name = |node: usize| self.topology.names()[node].clone();
        let nodes = self.topology.node_count();
        DesignError::MissingLink { method: self.method, from: name(link.from), to: name(link.to), nodes }
    }

    /// Checks that no step takes more slots than the budget: each step is a round.
    pub(super) fn check_slots(&self, steps: &[MixingStep]) -> Result<(), DesignError> {
        let needed = steps.iter().map(|step| step.slots().len()).max().unwrap_or(0);
        match self.options.budget_slots {
            Some(budget) if budget < needed => Err(DesignError::BudgetSlots { method: self.method, budget, needed }),
            _ => Ok(()),
        }
    }
}
