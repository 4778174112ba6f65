//! Why there is no plan.

use super::Method;
use crate::{plan::PlanError, topology::TopologyError};

use super::MAX_DESIGN_NODES;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DesignError {
    /// More nodes than [`MAX_DESIGN_NODES`].
    #[error("{nodes} nodes are too many to design for: the limit is {MAX_DESIGN_NODES}")]
    TooManyNodes {
        /// How many there are.
        nodes: usize,
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
