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
    /// A cost or coupling is for other members or components.
    #[error("clique {clique}: its cost or coupling is not for {members} members with {components} components each")]
    Unfit { clique: String, members: usize, components: usize },
    /// Two cliques have one name.
    #[error("two cliques are called {clique}")]
    Twice { clique: String },
    /// A node's own terms are of another number of variables.
    #[error("the own terms of node {node} are not of {components} variables, one for each component")]
    Dimension { node: usize, components: usize },
    /// A node is in no clique.
    #[error("node {node} is in no clique: nothing couples it to the others")]
    Uncoupled { node: usize },
}
