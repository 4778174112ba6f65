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
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum CommunicationPlanError {
    /// Some node never receives anything from some other node, not even through others.
    #[error("not every node of the plan can hear of every other")]
    NotConnected,
    /// The matrices are not those of the method: methods for solvers promise that no eigenvalue is negative.
    #[error("the plan is none of method {method}")]
    Method { method: String, source: MethodMismatch },
    /// A disagreement never fades.
    #[error("the plan cannot average")]
    CannotAverage(#[source] CollectiveError),
    /// A disagreement fades too slowly.
    #[error("the plan averages so slowly that how many steps an iteration needs cannot be found out")]
    TooSlow,
}

/// The reason for which a node found no solution.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
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
    Diverged { least: f64, since: u64, residual: f64, iteration: u64, remedy: &'static str },
    /// The tables of two nodes have different columns.
    #[error("the tables of nodes {one} and {other} do not fit together; this one has {columns}")]
    Columns { one: NodeId, other: NodeId, columns: String },
    /// A member of one of this node's cliques sent nothing: a complete exchange rules that out.
    #[error("node {member} is in a clique with this one and said nothing")]
    Unheard { member: usize },
    /// The columns of this site's table do not fit the support.
    #[error("the support does not fit the columns: {reason}")]
    Support { reason: String },
    /// The robust model is invalid, or a cone program was not solved.
    #[error(transparent)]
    Robust(RobustError),
    /// The samples of another site do not fit.
    #[error("site {finder} found that its samples do not fit the problem, and says there what is wrong")]
    SamplesElsewhere { finder: NodeId },
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
    StatesDiffer { one: NodeId, other: NodeId, iteration: u64 },
    /// This node cannot learn.
    #[error(transparent)]
    Learning(LearningError),
    /// Another node cannot learn.
    #[error("node {finder} cannot go on learning, and says there why")]
    LearningElsewhere { finder: NodeId },
    /// A number that ought to be the same at all nodes, such as the length of a shared vector, differs between two.
    #[error("nodes {one} and {other} do not learn the same: where one has {} numbers the other has {}", numbers[0], numbers[1])]
    Unlike { one: NodeId, other: NodeId, numbers: [u64; 2] },
    /// The bounds of the members rule out a budget of a clique of this node.
    #[error(transparent)]
    Budget(AllocationError),
    /// Another node found that the bounds of the members rule out a budget.
    #[error("node {finder} found that clique {clique} cannot share out its budget between the bounds of its members")]
    BudgetElsewhere { finder: NodeId, clique: String },
}
