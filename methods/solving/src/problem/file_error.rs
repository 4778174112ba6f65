//! Faults of the text of a problem file.

use mingle_robust::RobustError;
use mingle_solver::{AllocationError, RegressionError};
use thiserror::Error;

use super::NODE;
use super::kinds::CONVEX_KINDS;

/// The finest tolerance: near the rounding error of an f64.
pub(super) const FINEST_TOLERANCE: f64 = 1e-15;

/// Faults of the text of a problem file.
#[derive(Debug, Error)]
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
    NodeNumber {
        /// The entry that has it.
        place: String,
        /// The number.
        number: usize,
        /// The largest number of a node.
        last: usize,
    },
    /// No node has this name.
    #[error("{place}: the plan has no node called `{name}`")]
    NodeName {
        /// The entry that has it.
        place: String,
        /// The name.
        name: String,
    },
    /// A clique names a node twice.
    #[error("clique {0} names a node twice")]
    MemberTwice(String),
    /// Two cliques have one name.
    #[error("two cliques are called {0}")]
    CliqueTwice(String),
    /// Two entries are for one node.
    #[error("there are two [[node]] for {0}")]
    NodeTwice(String),
    /// The tolerance is too fine, or not a number below 1.
    #[error("tolerance = {0}: give a number that is at least {FINEST_TOLERANCE:e} and below 1")]
    Tolerance(f64),
    /// A number of a robust model is invalid.
    #[error(transparent)]
    Robust(#[from] RobustError),
    /// The loss is not known, or not for this kind of problem.
    #[error("loss = \"{name}\": choose one of {known}")]
    Loss {
        /// The name.
        name: String,
        /// The losses of the kind.
        known: String,
    },
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
