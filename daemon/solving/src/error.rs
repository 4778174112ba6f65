//! What can be wrong with a plan, and what can go wrong on the way to the solution.

use mingle_planner::plan::MethodMismatch;
use mingle_protocol::NodeId;
use mingle_protocol::collective::CollectiveError;
use mingle_robust::RobustError;
use mingle_solver::AllocationError;
use thiserror::Error;

use crate::learning::LearningError;

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
    /// A support that the columns of this site's table do not fit.
    #[error("the support does not fit the columns: {reason}")]
    Support {
        /// Why not.
        reason: String,
    },
    /// The robust model is none, or a cone program was not solved.
    #[error(transparent)]
    Robust(RobustError),
    /// Another site's samples do not fit.
    #[error("site {finder} found that its samples do not fit the problem, and says there what is wrong")]
    SamplesElsewhere {
        /// Who found it.
        finder: NodeId,
    },
    /// Subproblems of a site failed again and again.
    #[error(
        "the subproblem of site {site} failed {times} times in a row, up to iteration {iteration} ({reason}): bring its columns to one size with scaling = \"standard\" or \"range\", look for absurd numbers in its table, or try another penalty",
        times = mingle_robust::MOST_FAILURES
    )]
    Subproblem {
        /// The site.
        site: NodeId,
        /// Iterations so far.
        iteration: u64,
        /// What its solver says, where this is the site.
        reason: String,
    },
    /// Two sites that computed the same differently.
    #[error("nodes {one} and {other} are in different states after iteration {iteration}, though both heard the same")]
    StatesDiffer {
        /// A node.
        one: NodeId,
        /// The first that differs from it.
        other: NodeId,
        /// Iterations so far.
        iteration: u64,
    },
    /// This node cannot learn.
    #[error(transparent)]
    Learning(LearningError),
    /// Another node cannot learn.
    #[error("node {finder} cannot go on learning, and says there why")]
    LearningElsewhere {
        /// Who found it.
        finder: NodeId,
    },
    /// Two nodes have numbers, such as lengths of what they share, that ought to be the same.
    #[error("nodes {one} and {other} do not learn the same: where one has {} numbers the other has {}", numbers[0], numbers[1])]
    Unlike {
        /// A node.
        one: NodeId,
        /// Another.
        other: NodeId,
        /// What they have.
        numbers: [u64; 2],
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
