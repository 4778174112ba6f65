//! Faults of the text of a problem file.

use mingle_robust::RobustError;
use mingle_solver::{AllocationError, RegressionError};
use thiserror::Error;

use super::NODE;
use super::coupling_error::CouplingError;
use super::kinds::CONVEX_KINDS;

/// The finest tolerance: near the rounding error of an f64.
pub(super) const FINEST_TOLERANCE: f64 = 1e-15;

/// Faults of the text of a problem file.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum FileError {
    /// It is not TOML, or has unknown entries.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// A kind of problem that is not known.
    #[error("kind = \"{0}\" is no convex problem: choose one of {known}", known = CONVEX_KINDS.join(", "))]
    Kind(String),
    /// `deal` is set, and `data` names a table for each node.
    #[error("deal = true deals out one table: data = \"{0}\" names one for each node")]
    DealtTwice(String),
    /// One table for all nodes, and `deal` is not set.
    #[error("data = \"{0}\" is the same table at each node: put {NODE} in its name, or deal = true to deal it out")]
    SameTable(String),
    /// A weight makes the problem non-convex.
    #[error(transparent)]
    Regression(#[from] RegressionError),
    /// Budgets or weights are invalid.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// No node has this number.
    #[error("{place}: there is no node {number}: those of the plan are 0 to {last}")]
    NodeNumber { place: String, number: usize, last: usize },
    /// No node has this name.
    #[error("{place}: the plan has no node called `{name}`")]
    NodeName { place: String, name: String },
    /// A clique names a node twice.
    #[error("clique {0} names a node twice")]
    MemberTwice(String),
    /// Two cliques have one name.
    #[error("two cliques are called {0}")]
    CliqueTwice(String),
    /// Two entries are for one node.
    #[error("there are two [[node]] for {0}")]
    NodeTwice(String),
    /// Cliques or their couplings do not fit together.
    #[error(transparent)]
    Coupling(#[from] CouplingError),
    /// A coupling lacks a key, or has one that is not its own.
    #[error("{place}: coupling = \"{coupling}\" {} {key}", if *is_needed { "needs" } else { "has no" })]
    CouplingKey { place: String, coupling: &'static str, key: &'static str, is_needed: bool },
    /// A number of a coupling is not finite, or makes the problem non-convex.
    #[error(
        "{place}: {key} is {number:?}; give a number up to 1e100 in magnitude, and for weights and distances none below zero"
    )]
    CouplingNumber { place: String, key: &'static str, number: f64 },
    /// A list has a number for more or fewer components than there are.
    #[error("{place}: {key} has {numbers} numbers: give one for each of {}, or one number for all", components.join(", "))]
    Components { place: String, key: &'static str, numbers: usize, components: Vec<String> },
    /// A formation has offsets for more or fewer members than it has.
    #[error("{place}: offsets has {offsets} entries: give one for each of its {members} members, in their order")]
    Offsets { place: String, offsets: usize, members: usize },
    /// A node has no weight on its wish, so that no point of its own is best.
    #[error("{place}: weight is 0; give a positive one, so that its variables have a best place")]
    NoWeight { place: String },
    /// A node of a network lasso is linked to no other both ways.
    #[error("the plan links node {0} to no other both ways: make one with mingle plan make --method clique-phi")]
    NoLinkBothWays(String),
    /// A link of a network lasso is none of the plan.
    #[error(
        "[[link]]: the plan does not link {one} and {other} both ways: leave it out, or make a plan that links them"
    )]
    NotLinked { one: String, other: String },
    /// Two entries are for one link.
    #[error("there are two [[link]] for {one} and {other}")]
    LinkTwice { one: String, other: String },
    /// A clique has fewer members than its coupling couples.
    #[error("clique {0} has too few members for its coupling: name at least two nodes, or one for a budget or a mean")]
    FewMembers(String),
    /// A node is in no clique.
    #[error("node {0} is in no clique: put it into a [[clique]], or nothing couples it to the others")]
    Uncoupled(String),
    /// The tolerance is too fine, or not a number below 1.
    #[error("tolerance = {0}: give a number that is at least {FINEST_TOLERANCE:e} and below 1")]
    Tolerance(f64),
    /// A number of a robust model is invalid.
    #[error(transparent)]
    Robust(#[from] RobustError),
    /// The loss is not known, or not for this kind of problem.
    #[error("loss = \"{name}\": choose one of {known}")]
    Loss { name: String, known: String },
    /// A classification lacks two different labels.
    #[error(
        "labels = [\"absent\", \"present\"] has to name the two different labels of the target, as the tables have them"
    )]
    Labels,
    /// A regression has labels.
    #[error("labels are for kind = \"robust-classification\"")]
    LabelsOfTargets,
    /// There are half-spaces, and the support is not made of them.
    #[error("[[half-space]] needs support = \"half-spaces\"")]
    HalfSpaces,
    /// A half-space bounds the labels of a classification.
    #[error("a [[half-space]] of a classification has no target: labels are not bounded")]
    TargetOfLabels,
    /// A box as support is combined with a scaling that moves samples out of it.
    #[error("scaling = \"standard\" takes samples out of a box: choose range or none")]
    ScalingOfBox,
    /// Two entries are for one site.
    #[error("there are two [[site]] for {0}")]
    SiteTwice(String),
    /// The number of iterations is 0.
    #[error("iterations = 0 solves nothing: give at least 1")]
    NoIterations,
}
