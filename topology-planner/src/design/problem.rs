//! Why there is no plan.

use super::Method;
use crate::{plan::PlanError, topology::TopologyError};

use super::MAX_ALGORITHM_1_NODES;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DesignError {
    /// More nodes than [`MAX_ALGORITHM_1_NODES`].
    #[error(
        "{nodes} nodes are too many for {method}, which takes {MAX_ALGORITHM_1_NODES}: use exact-average, or another that \
         does not start from Algorithm 1"
    )]
    TooManyNodes {
        /// How many there are.
        nodes: usize,
        /// The method.
        method: Method,
    },
    /// `K` is larger than the number of edges left.
    #[error("{asked} extra edges are too many: a spanning tree leaves {available} of this topology")]
    TooManyExtraEdges {
        /// The `K` asked for.
        asked: usize,
        /// The largest possible.
        available: usize,
    },
    /// A number of extra edges was given to a method that has none.
    #[error(
        "method {method} does not take a number of extra edges: it is a choice of nguyen-he only, leave it at auto"
    )]
    NoExtraEdges {
        /// The method.
        method: Method,
    },
    /// The slots of a round exceed the budget.
    #[error(
        "method {method} found no plan within {budget} slots: the least it found takes {needed}; raise the budget or the \
         effort, or try another method"
    )]
    BudgetSlots {
        /// The method.
        method: Method,
        /// The slots allowed.
        budget: usize,
        /// The fewest slots found.
        needed: usize,
    },
    /// A node needs more receivers than it may have.
    #[error(
        "method {method} found no plan in which no node has more than {limit} receivers: it needs {needed}; raise the \
         limit, or try another method"
    )]
    DegreeLimit {
        /// The method.
        method: Method,
        /// The receivers allowed.
        limit: usize,
        /// The least that is enough.
        needed: usize,
    },
    /// A text is not a number of extra edges.
    #[error("{text:?} is not a number of extra edges: write \"auto\" or a whole number")]
    NotExtraEdges {
        /// The text.
        text: String,
    },
    /// The design does not make a plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The renumbered topology is refused.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}
