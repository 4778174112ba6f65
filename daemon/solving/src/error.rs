//! What can be wrong with a plan, and what can go wrong on the way to the solution.

use mingle_planner::plan::MethodMismatch;
use mingle_protocol::NodeId;
use mingle_protocol::collective::CollectiveError;
use mingle_solver::AllocationError;
use thiserror::Error;

/// A plan along which no problem can be solved.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CommunicationPlanError {
    /// Somebody never hears of somebody else.
    #[error("not every node of the plan can hear of every other")]
    NotConnected,
    /// The matrices are not those of the method: methods for solvers promise that no eigenvalue is negative.
    #[error("the plan is none of method {method}")]
    Method {
        /// What the plan says.
        method: String,
        /// What is different.
        source: MethodMismatch,
    },
    /// A disagreement never fades.
    #[error("the plan cannot average")]
    CannotAverage(#[source] CollectiveError),
    /// A disagreement fades too slowly.
    #[error("the plan averages so slowly that how many steps an iteration needs cannot be found out")]
    TooSlow,
}

/// Why a node found no solution.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SolveError {
    /// A number that is none, or absurdly large.
    #[error("the numbers run off")]
    NotFinite(#[source] CollectiveError),
    /// A neighbour sent what no sound neighbour would.
    #[error(transparent)]
    Neighbour(CollectiveError),
    /// A collective that cannot be made.
    #[error(transparent)]
    Collective(CollectiveError),
    /// A collective that is complete and has no result.
    #[error("a collective ended without its result")]
    NoResult,
    /// The residual has grown by so much that the iteration will not come back.
    #[error(
        "the iteration diverges: the residual was {least:.1e} after {since} iterations and is {residual:.1e} after {iteration}"
    )]
    Diverged {
        /// The smallest residual.
        least: f64,
        /// Iterations after which it was that.
        since: u64,
        /// The residual now.
        residual: f64,
        /// Iterations so far.
        iteration: u64,
        /// What helps.
        remedy: &'static str,
    },
    /// Two nodes' tables have other columns.
    #[error("the tables of nodes {one} and {other} do not fit together; this one has {columns}")]
    Columns {
        /// A node.
        one: NodeId,
        /// Another.
        other: NodeId,
        /// The columns of this node's table.
        columns: String,
    },
    /// A member of one's cliques said nothing: an exchange that is complete rules that out.
    #[error("node {member} is in a clique with this one and said nothing")]
    Unheard {
        /// The member.
        member: usize,
    },
    /// A budget of this node's that the bounds of its members rule out.
    #[error(transparent)]
    Budget(AllocationError),
    /// A budget that another node found to be ruled out.
    #[error("node {finder} found that clique {clique} cannot share out its budget between the bounds of its members")]
    BudgetElsewhere {
        /// Who found it.
        finder: NodeId,
        /// The clique.
        clique: String,
    },
}
