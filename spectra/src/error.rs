//! What can be wrong with a graph, and why an eigenpair was not found.

use thiserror::Error;

/// Why there is no graph, or no spectrum of it.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SpectrumError {
    /// Nodes are counted with 32 bits.
    #[error("{nodes} nodes are too many: at most {}", u32::MAX)]
    TooManyNodes {
        /// How many there are.
        nodes: usize,
    },
    /// An edge to a node that is not there.
    #[error("edge {edge} joins {a} and {b}, but the nodes are 0..{nodes}")]
    UnknownNode {
        /// Which edge, counted from 0.
        edge: usize,
        /// One end.
        a: u32,
        /// The other.
        b: u32,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A weight that is none.
    #[error("edge {edge} has weight {weight}; weights are positive numbers")]
    Weight {
        /// Which edge, counted from 0.
        edge: usize,
        /// The weight.
        weight: f64,
    },
    /// There are not so many eigenpairs.
    #[error("{wanted} eigenpairs are wanted of a space of {dimension} dimensions")]
    TooManyWanted {
        /// How many are wanted.
        wanted: usize,
        /// The dimension of the space.
        dimension: usize,
    },
    /// The iteration came to no end.
    #[error(
        "the block Lanczos method has a residual of {residual:.1e} after {restarts} restarts, {tolerance:.0e} is wanted: raise the subspace or the restarts"
    )]
    NotConverged {
        /// The largest residual of a wanted pair.
        residual: f64,
        /// What it should be.
        tolerance: f64,
        /// Restarts so far.
        restarts: usize,
    },
    /// The small dense eigenproblem of an iteration has no solution: the operator gave a number that is none.
    #[error("the operator gave numbers that are not finite")]
    NotFinite,
}
