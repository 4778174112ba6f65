//! Errors of graphs and of the search for eigenpairs.

use thiserror::Error;

/// The reason why there is no graph, or no spectrum of it.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum SpectrumError {
    /// More nodes than 32 bits can count.
    #[error("{nodes} nodes are too many: at most {}", u32::MAX)]
    TooManyNodes { nodes: usize },
    /// An edge to a node that does not exist.
    #[error("edge {edge} joins {a} and {b}, but the nodes are 0..{nodes}")]
    UnknownNode {
        /// The number of the edge, counted from 0.
        edge: usize,
        /// One end.
        a: u32,
        /// The other end.
        b: u32,
        /// The number of nodes.
        nodes: usize,
    },
    /// A weight that is not a positive, finite number.
    #[error("edge {edge} has weight {weight}; weights are positive numbers")]
    Weight {
        /// The number of the edge, counted from 0.
        edge: usize,
        /// The weight.
        weight: f64,
    },
    /// More eigenpairs are wanted than the space has dimensions.
    #[error("{wanted} eigenpairs are wanted of a space of {dimension} dimensions")]
    TooManyWanted { wanted: usize, dimension: usize },
    /// The iteration did not converge.
    #[error(
        "the block Lanczos method has a residual of {residual:.1e} after {restarts} restarts, {tolerance:.0e} is wanted: raise the subspace or the restarts"
    )]
    NotConverged {
        /// The largest residual of a wanted pair.
        residual: f64,
        /// The largest residual allowed.
        tolerance: f64,
        /// The number of restarts so far.
        restarts: usize,
    },
    /// The small dense eigenproblem of an iteration has no solution, since the operator gave a number that is not
    /// finite.
    #[error("the operator gave numbers that are not finite")]
    NotFinite,
}
