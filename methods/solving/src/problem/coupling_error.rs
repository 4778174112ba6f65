//! Errors of coupled variables.

use thiserror::Error;

/// Errors of a problem of variables that cliques couple.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum CouplingError {
    /// The variables of the nodes have no component.
    #[error("a node's variables need at least one component")]
    NoComponents,
    /// A clique has a member that does not exist.
    #[error("clique {clique} has a member {member}: the nodes are 0 to {last}")]
    Member { clique: String, member: usize, last: usize },
    /// A coupling is for another number of members.
    #[error("clique {clique} has {members} members, and its coupling is for {wanted}")]
    Members {
        /// The clique.
        clique: String,
        /// Its members.
        members: usize,
        /// The number of members that are coupled.
        wanted: usize,
    },
    /// A node is in no clique.
    #[error("node {node} is in no clique: nothing couples it to the others")]
    Uncoupled { node: usize },
}
