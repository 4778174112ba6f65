//! Errors of plans that solvers cannot use, and of nodes on the way to a solution.

use mingle_masking::MaskingError;
use mingle_planner::design::MethodMismatch;
use mingle_protocol::NodeId;
use mingle_protocol::collective::CollectiveError;
use mingle_robust::RobustError;
use mingle_solver::AllocationError;
use thiserror::Error;

use crate::learning::LearningError;

/// A plan along which no problem can be solved.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CommunicationPlanError {
    /// Some node never receives anything from some other node, not even through others.
    #[error("not every node of the plan can hear of every other")]
    NotConnected,
    /// The matrices are not those of the method: methods for solvers promise that no eigenvalue is negative.
    #[error("the plan is none of method {method}")]
    Method {
        /// The method that the plan names.
        method: String,
        /// The difference.
        source: MethodMismatch,
    },
    /// A disagreement never fades.
    #[error("the plan cannot average")]
    CannotAverage(#[source] CollectiveError),
    /// A disagreement fades too slowly.
    #[error("the plan averages so slowly that how many steps an iteration needs cannot be found out")]
    TooSlow,
}

/// The reason for which a node found no solution.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SolveError {
    /// A number is not finite, or absurdly large.
    #[error("the numbers run off")]
    NotFinite(#[source] CollectiveError),
    /// A neighbour sent a message that no correct neighbour sends.
    #[error(transparent)]
    Neighbour(CollectiveError),
    /// A collective cannot be made.
    #[error(transparent)]
    Collective(CollectiveError),
    /// A sum cannot be masked as all nodes agreed.
    #[error(transparent)]
    Masking(#[from] MaskingError),
    /// The task bounds what a sum of all nodes reveals, and sums are not masked.
    #[error(
        "the noise of this problem is shared by all members, so that each part of a sum has too little of it: sums have to be masked, which takes 3 members or more, and no --plain-sums"
    )]
    SumsInClear,
    /// A member asks for another scale of a sum than the one that all members have.
    #[error(
        "the scale of a sum is not the one that this problem gives to all members: one of them has another problem file, or sends what no sound member sends"
    )]
    OtherScale,
    /// A collective is complete and has no result.
    #[error("a collective ended without its result")]
    NoResult,
    /// The residual has grown by so much that the iteration does not recover.
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
        /// The advice to give.
        remedy: &'static str,
    },
    /// The tables of two nodes have different columns.
    #[error("the tables of nodes {one} and {other} do not fit together; this one has {columns}")]
    Columns {
        /// A node.
        one: NodeId,
        /// Another.
        other: NodeId,
        /// The columns of this node's table.
        columns: String,
    },
    /// A member of one of this node's cliques sent nothing: a complete exchange rules that out.
    #[error("node {member} is in a clique with this one and said nothing")]
    Unheard {
        /// The member.
        member: usize,
    },
    /// The columns of this site's table do not fit the support.
    #[error("the support does not fit the columns: {reason}")]
    Support {
        /// The reason.
        reason: String,
    },
    /// The robust model is invalid, or a cone program was not solved.
    #[error(transparent)]
    Robust(RobustError),
    /// The samples of another site do not fit.
    #[error("site {finder} found that its samples do not fit the problem, and says there what is wrong")]
    SamplesElsewhere {
        /// The site that found it.
        finder: NodeId,
    },
    /// Subproblems of a site failed several times in a row.
    #[error(
        "the subproblem of site {site} failed {times} times in a row, up to iteration {iteration} ({reason}): bring its columns to one size with scaling = \"standard\" or \"range\", look for absurd numbers in its table, or try another penalty",
        times = mingle_robust::MOST_FAILURES
    )]
    Subproblem {
        /// The site.
        site: NodeId,
        /// Iterations so far.
        iteration: u64,
        /// The message of its solver, where this is the site; else a reference to it.
        reason: String,
    },
    /// Two sites computed different states from the same messages.
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
        /// The node that found it.
        finder: NodeId,
    },
    /// A number that ought to be the same at all nodes, such as the length of a shared vector, differs between two.
    #[error("nodes {one} and {other} do not learn the same: where one has {} numbers the other has {}", numbers[0], numbers[1])]
    Unlike {
        /// A node.
        one: NodeId,
        /// Another.
        other: NodeId,
        /// Their numbers, in that order.
        numbers: [u64; 2],
    },
    /// The bounds of the members rule out a budget of a clique of this node.
    #[error(transparent)]
    Budget(AllocationError),
    /// Another node found that the bounds of the members rule out a budget.
    #[error("node {finder} found that clique {clique} cannot share out its budget between the bounds of its members")]
    BudgetElsewhere {
        /// The node that found it.
        finder: NodeId,
        /// The clique.
        clique: String,
    },
}
